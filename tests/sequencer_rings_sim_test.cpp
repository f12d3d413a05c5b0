// SPDX-License-Identifier: Apache-2.0
// Numbers that a client takes by calls through rings over a simulated fabric, while other clients
// add to the word themselves, and epochs are sealed and begun through the same rings: links are
// cut, the node pauses, messages are delayed, duplicated and reordered. ESPALIER_SEEDS sets how
// many seeds.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/testing/seeds.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "tests/support/sequencer_history.hpp"

namespace espalier::test {
namespace {

using client::LinkReached;
using client::LinkWorld;
using client::LinkWorldOptions;

constexpr std::uint32_t kWindow = 16;
constexpr std::uint64_t kGiveUpNs = 20'000'000'000;

struct RingsReached {
  LinkReached links;
  std::uint64_t asked = 0;  // ranges, by asking
  std::uint64_t added = 0;  // ranges, by adding
  std::uint64_t refused = 0;
  std::uint64_t adds_met_seal = 0;
  std::uint64_t epochs = 0;
  std::uint64_t batched = 0;  // requests beyond the adds that served them
};

class SequencerByRings {
 public:
  SequencerByRings(std::uint64_t seed, wire::LinkWay way, RingsReached& reached)
      : random_(seed), link_(seed, options_of(way)), reached_(reached) {}

  ~SequencerByRings() { over_ = true; }  // while the world still turns
  SequencerByRings(const SequencerByRings&) = delete;
  SequencerByRings& operator=(const SequencerByRings&) = delete;

  std::string run() {
    if (std::string wrong = link_.connect(); !wrong.empty()) return wrong;
    auto made = sequencer::create_sequencer(link_.node().catalog(), "n", 0);
    if (!made) return "no sequencer";
    numbers_ = std::move(*made);
    link_.plan_trouble(reached_.links);
    add_later();
    const std::uint64_t until = now() + kGiveUpNs;
    for (std::uint32_t sent = 0; sent < kRequests || !in_flight_.empty();) {
      if (now() > until) return "stuck, with " + std::to_string(in_flight_.size());
      if (link_.connection().lost()) return "lost";
      while (sent < kRequests && in_flight_.size() < kWindow && send()) ++sent;
      client::Incoming response;
      while (link_.rings().receive(response)) {
        if (std::string wrong = take(response); !wrong.empty()) return wrong;
      }
    }
    over_ = true;
    const wire::SequencerFacts facts = numbers_->facts();
    if ((facts.flags & wire::kSequencerOverwritten) != 0) return "the word was written over";
    reached_.batched += facts.requests - facts.adds;
    link_.count_resumed(reached_.links);
    return history_.wrong();
  }

 private:
  static constexpr std::uint32_t kRequests = 150;
  enum class Kind : std::uint8_t { take, seal, advance };
  struct Asked {
    Kind kind = Kind::take;
    std::uint32_t epoch = 0;  // as requested; 0: any
    std::uint32_t count = 0;
    std::uint64_t begun_ns = 0;
  };

  static LinkWorldOptions options_of(wire::LinkWay way) {
    LinkWorldOptions options;
    options.way = way;
    return options;
  }
  [[nodiscard]] std::uint64_t now() { return link_.world().now_ns(); }

  // Takes numbers, and sometimes ends the epoch, or begins the next one if there is none.
  Asked draw() {
    Asked asked;
    asked.begun_ns = now();
    if (!ending_ && random_.below(12) == 0) {
      ending_ = true;
      asked.kind = sealed_ ? Kind::advance : Kind::seal;
      asked.epoch = epoch_;
      return asked;
    }
    asked.epoch = random_.below(3) == 0 ? wire::kAnyEpoch : epoch_;
    asked.count = static_cast<std::uint32_t>(1 + random_.below(random_.chance(0.5) ? 1 : 16));
    return asked;
  }
  bool send() {
    if (!next_) next_ = draw();
    wire::CallMessage request;
    request.map = numbers_->id();
    const wire::SequencerAdvance advance{next_->epoch, 0, 0};
    switch (next_->kind) {
      case Kind::take: request.offload = wire::OffloadId::sequencer_take; break;
      case Kind::seal: request.offload = wire::OffloadId::sequencer_seal; break;
      case Kind::advance: request.offload = wire::OffloadId::sequencer_advance; break;
    }
    request.argument = next_->count;
    request.payload =
        next_->kind == Kind::advance ? base::bytes_of(advance) : base::bytes_of(next_->epoch);
    if (!link_.rings().send(request, tag_)) return false;
    link_.rings().ring();
    in_flight_.emplace(tag_++, *next_);
    next_.reset();
    return true;
  }

  std::string take(const client::Incoming& response) {
    const auto at = in_flight_.find(response.header.tag);
    if (at == in_flight_.end()) return "an answer that nobody waits for";
    const Asked asked = at->second;
    in_flight_.erase(at);
    const auto code = static_cast<Code>(response.header.code);
    switch (asked.kind) {
      case Kind::take: return take_numbers(asked, code, response.header);
      case Kind::seal: {
        if (code != Code::invalid) return "an epoch cannot be sealed";
        wire::SequencerFacts facts{};
        if (response.payload.size() != sizeof facts) return "a seal without facts";
        std::memcpy(&facts, response.payload.data(), sizeof facts);
        history_.seal(asked.epoch, {now(), facts.next});
        sealed_ = true;
        break;
      }
      case Kind::advance:
        if (code != Code::invalid) return "no epoch after a seal";
        sealed_ = false;
        ++epoch_;
        ++reached_.epochs;
        break;
    }
    ending_ = false;
    return {};
  }
  std::string take_numbers(const Asked& asked, Code code, const wire::ResponseHeader& header) {
    if (code == Code::sealed) {
      ++reached_.refused;
      return {};
    }
    if (code != Code::invalid) return "code " + std::to_string(header.code);
    const sequencer::Range range{header.version, asked.count,
                                 static_cast<std::uint32_t>(header.read_version)};
    if (asked.epoch != wire::kAnyEpoch && range.epoch != asked.epoch) return "another epoch";
    history_.give({range, asked.begun_ns, now()});
    ++reached_.asked;
    return {};
  }

  // A client that adds to the word itself: what its FETCH_ADD does there.
  void add_later() {
    link_.world().after(random_.between(2'000, 60'000), [this] {
      if (over_) return;
      add();
      add_later();
    });
  }
  void add() {
    if (!page_ || random_.below(4) == 0) {
      const auto window = numbers_->window();
      if (window) page_ = *window;
    }
    if (!page_) return;
    const auto count = static_cast<std::uint32_t>(1 + random_.below(8));
    const std::uint64_t before = page_->page->word().fetch_add(count);
    const auto range = sequencer::check_answer(before, page_->epoch, count);
    if (range) {
      history_.give({*range, now(), now()});
      ++reached_.added;
    } else {
      ++reached_.adds_met_seal;
      page_.reset();
    }
  }

  base::Random random_;
  LinkWorld link_;
  RingsReached& reached_;
  std::shared_ptr<sequencer::Sequencer> numbers_;
  SequencerHistory history_;
  std::map<std::uint32_t, Asked> in_flight_;
  std::optional<Asked> next_;
  std::optional<sequencer::Sequencer::Window> page_;
  std::uint32_t tag_ = 1;
  std::uint32_t epoch_ = 1;  // the last one that is known
  bool sealed_ = false;      // as far as is known
  bool ending_ = false;      // a seal or the next epoch is in flight
  bool over_ = false;
};

class SequencerRings : public ::testing::TestWithParam<wire::LinkWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, SequencerRings,
                         ::testing::Values(wire::LinkWay::write, wire::LinkWay::send),
                         [](const auto& way) {
                           return std::string(way.param == wire::LinkWay::write ? "Write" : "Send");
                         });

TEST_P(SequencerRings, NoNumberComesTwiceNorAfterItsSeal) {
  const std::uint64_t first = base::seed_from_environment(7000);
  base::Seeds seeds(20);
  RingsReached reached;
  const auto all_happened = [&] {
    return reached.asked > 20 * seeds.ended() && reached.added > seeds.ended() &&
           reached.refused != 0 && reached.adds_met_seal != 0 && reached.epochs > seeds.ended() &&
           reached.batched != 0 && reached.links.cuts != 0 && reached.links.resumed != 0;
  };
  for (; seeds.more(all_happened()); seeds.done()) {
    SequencerByRings world(first + seeds.ended(), GetParam(), reached);
    ASSERT_EQ(world.run(), "") << "seed " << first + seeds.ended();
  }
  seeds.report("ranges taken by asking", reached.asked);
  seeds.report("ranges taken by adding", reached.added);
  seeds.report("epochs", reached.epochs);
  EXPECT_GT(reached.asked, 20 * seeds.ended());
  EXPECT_GT(reached.added, seeds.ended());
  EXPECT_GT(reached.refused, 0u);
  EXPECT_GT(reached.adds_met_seal, 0u);
  EXPECT_GT(reached.epochs, seeds.ended());
  EXPECT_GT(reached.batched, 0u);
  EXPECT_GT(reached.links.cuts, 0u);
  EXPECT_GT(reached.links.resumed, 0u);
}

}  // namespace
}  // namespace espalier::test
