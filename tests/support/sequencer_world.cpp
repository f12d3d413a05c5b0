// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sequencer_world.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/sequencer/answer.hpp"
#include "kinds/sequencer/offload/sequencer_host.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "tests/support/sequencer_history.hpp"

namespace espalier::test {
namespace {

constexpr int kAdders = 3;
constexpr int kAskers = 2;
constexpr std::uint32_t kAddsInFlight = 4;  // adds of one client
constexpr std::uint64_t kLastsNs = 2'000'000;
constexpr std::uint64_t kDrainNs = 400'000'000;

class SequencerWorld {
 public:
  SequencerWorld(std::uint64_t seed, const fabric::sim::Faults& faults, SequencerCounts& counts)
      : random_(seed), world_(seed, faults), node_(world_.add_node("n")), counts_(counts) {}

  std::string run() {
    if (!node_->listen("n")) return "cannot listen";
    for (int i = 0; i < kAdders; ++i) {
      auto adder = std::make_unique<Adder>(world_, *node_, i);
      // Where even connecting fails, there is one client less.
      if (connect(world_, adder->here, adder->there, "n")) adders_.push_back(std::move(adder));
    }
    for (int i = 0; i < kAskers; ++i) ask(1);
    end_epoch(1);
    ends_ns_ = world_.now_ns() + kLastsNs;
    while (world_.now_ns() < ends_ns_) turn();
    const std::uint64_t until = world_.now_ns() + kDrainNs;
    while (in_flight() && world_.now_ns() < until) turn();
    if (numbers_.facts().flags & wire::kSequencerOverwritten) {
      return "the node says that its word was written over";
    }
    return history_.wrong();
  }

 private:
  /// An add that was posted, and what for.
  struct Add {
    std::uint32_t epoch = 0;
    std::uint32_t count = 0;
    std::uint64_t posted_ns = 0;
  };
  struct Adder {
    Adder(fabric::sim::World& world, fabric::Endpoint& node, int number)
        : endpoint(world.add_node("c" + std::to_string(number))),
          here(*endpoint),
          there(node),
          host(node.regions(), static_cast<fabric::Domain>(number + 1)) {
      there.options.domain = static_cast<fabric::Domain>(number + 1);
    }
    std::unique_ptr<fabric::Endpoint> endpoint;
    fabric::sim::End here;
    fabric::sim::End there;
    offload::SequencerHost host;
    std::optional<wire::SequencerGrant> grant;
    bool asking = false;
    bool lost = false;
    std::map<std::uint64_t, Add> adds;
    std::uint64_t posted = 0;
  };

  [[nodiscard]] bool goes_on() const { return world_.now_ns() < ends_ns_; }
  [[nodiscard]] bool in_flight() const {
    return std::ranges::any_of(
        adders_, [](const auto& adder) { return !adder->lost && !adder->adds.empty(); });
  }
  [[nodiscard]] std::uint64_t way_ns() { return random_.between(300, 8'000); }
  std::uint32_t draw_count() {
    return static_cast<std::uint32_t>(1 + random_.below(random_.chance(0.5) ? 1 : 16));
  }
  void turn() {
    world_.step_until(world_.now_ns() + 500);
    for (const auto& adder : adders_) {
      if (!adder->lost) work(*adder);
    }
  }

  void work(Adder& adder) {
    adder.here.poll();
    for (const fabric::Completion& done : std::exchange(adder.here.completions, {}))
      take(adder, done);
    if (adder.here.pair->state() == fabric::QueuePair::State::error) {
      adder.lost = true;  // its adds may be done or not, with unknown numbers
      ++counts_.pairs_lost;
      return;
    }
    if (!goes_on()) return;
    if (!adder.grant) return ask_word(adder);
    if (adder.adds.size() >= kAddsInFlight || !random_.chance(0.3)) return;
    const Add add{adder.grant->epoch, draw_count(), world_.now_ns()};
    const auto request = fabric::WorkRequest::fetch_add(++adder.posted, adder.grant->key,
                                                        adder.grant->word, add.count);
    if (adder.here.pair->post(request).taken == 1) adder.adds.emplace(adder.posted, add);
  }
  void take(Adder& adder, const fabric::Completion& done) {
    const auto found = adder.adds.find(done.work_id);
    if (found == adder.adds.end()) return;
    const Add add = found->second;
    adder.adds.erase(found);
    if (done.status != fabric::Status::success) return;
    const auto range = sequencer::check_answer(done.old_value, add.epoch, add.count);
    if (!range) {
      ++counts_.refused_sealed;
      if (adder.grant && adder.grant->epoch == add.epoch) adder.grant.reset();
      return;
    }
    ++counts_.added;
    if (history_.seal_of(add.epoch) != nullptr) ++counts_.told_after_seal;
    history_.give({*range, add.posted_ns, world_.now_ns()});
  }
  void ask_word(Adder& adder) {
    if (std::exchange(adder.asking, true)) return;
    world_.after(way_ns(), [this, &adder] {
      const auto grant = adder.host.open(numbers_);
      world_.after(way_ns(), [&adder, grant] {
        adder.asking = false;
        if (grant) adder.grant = *grant;
      });
    });
  }

  void ask(std::uint32_t epoch) {
    const std::uint64_t begun_ns = world_.now_ns();
    world_.after(way_ns(), [this, epoch, begun_ns] {
      const auto taken = numbers_.take(epoch, draw_count());
      world_.after(way_ns(), [this, epoch, begun_ns, taken] {
        if (taken) {
          ++counts_.asked;
          history_.give({*taken, begun_ns, world_.now_ns()});
        } else {
          ++counts_.refused_asking;
        }
        if (goes_on()) ask(taken ? epoch : taken.error().detail);
      });
    });
  }

  void end_epoch(std::uint32_t epoch) {
    world_.after(random_.between(5'000, 150'000), [this, epoch] {
      world_.after(way_ns(), [this, epoch] {
        const auto sealed = numbers_.seal(epoch);
        world_.after(way_ns(), [this, epoch, sealed] {
          history_.seal(epoch, {world_.now_ns(), sealed->next});
          world_.after(random_.between(0, 30'000), [this, epoch] { begin_epoch(epoch + 1); });
        });
      });
    });
  }
  void begin_epoch(std::uint32_t epoch) {
    if (!numbers_.advance(epoch - 1, 0)) return;
    ++counts_.epochs;
    if (goes_on()) end_epoch(epoch);
  }

  base::Random random_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> node_;
  SequencerCounts& counts_;
  sequencer::Sequencer numbers_{1, "n", 0};
  std::vector<std::unique_ptr<Adder>> adders_;
  SequencerHistory history_;
  std::uint64_t ends_ns_ = ~std::uint64_t{0};
};

}  // namespace

std::string run_sequencer_world(std::uint64_t seed, fabric::sim::Faults faults,
                                SequencerCounts& counts) {
  // The node refuses its word where its own adds are not atomic with those of others.
  faults.split_atomic_ns = {};
  return SequencerWorld(seed, faults, counts).run();
}

}  // namespace espalier::test
