// SPDX-License-Identifier: Apache-2.0
// Sequencers of a node, over every transport: what handles report, threads that share one, and
// clients that overwrite the word to which they may add.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "espalier/sequencer.hpp"
#include "kinds/sequencer/answer.hpp"
#include "tests/support/node_fixture.hpp"
#include "wire/sequencer.hpp"

namespace espalier {
namespace {

constexpr const char* kSequencerWays[] = {
    "unix", "shm", "shm_one_sided", "roce", "roce_send", "roce_one_sided", "ofi", "device"};

Error sealed_in(std::uint32_t epoch) { return {Code::sealed, 0, epoch}; }

class SequencerNodes : public test::NodeOverEachWay {
 protected:
  void SetUp() override {
    start();
    store_.emplace(connect());
  }
  [[nodiscard]] bool adds_itself() const { return way_.ends_with("one_sided"); }

  std::optional<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(By, SequencerNodes, ::testing::ValuesIn(kSequencerWays), test::way_name);

TEST_P(SequencerNodes, HandlesTakeOfTheEpochThatTheyKnow) {
  auto numbers = store_->create_sequencer("n", 50);
  ASSERT_TRUE(numbers) << message(numbers.error());
  EXPECT_EQ(numbers->epoch(), 1u);
  EXPECT_EQ(numbers->take(16), (NumberRange{50, 16, 1}));
  EXPECT_EQ(numbers->take(0).error().code, Code::invalid_argument);
  Store elsewhere = connect();
  auto other = elsewhere.open_sequencer("n");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->take(), (NumberRange{66, 1, 1}));
  EXPECT_EQ(numbers->take(), (NumberRange{67, 1, 1}));
  const auto before = numbers->describe();
  ASSERT_TRUE(before);
  EXPECT_EQ(before->next, 68u);
  EXPECT_EQ(before->requests, adds_itself() ? 0u : 3u);
  EXPECT_FALSE(before->sealed);

  const auto sealed = other->seal();
  ASSERT_TRUE(sealed) << message(sealed.error());
  EXPECT_TRUE(sealed->sealed);
  EXPECT_EQ(sealed->next, 68u);
  EXPECT_EQ(numbers->take().error(), sealed_in(1));
  EXPECT_EQ(other->take(5).error(), sealed_in(1));
  const auto begun = other->advance();
  ASSERT_TRUE(begun) << message(begun.error());
  EXPECT_EQ(begun->epoch, 2u);
  EXPECT_EQ(other->epoch(), 2u);
  EXPECT_EQ(other->take(), (NumberRange{68, 1, 2}));
  // The first one knows nothing of it until it follows.
  EXPECT_EQ(numbers->take().error(), sealed_in(2));
  EXPECT_EQ(numbers->seal().error(), sealed_in(2));
  EXPECT_EQ(numbers->advance().error(), sealed_in(2));
  ASSERT_TRUE(numbers->follow());
  EXPECT_EQ(numbers->take(2), (NumberRange{69, 2, 2}));
  EXPECT_FALSE(numbers->describe()->overwritten);
}

TEST_P(SequencerNodes, AreListedAndDropped) {
  auto numbers = store_->create_sequencer("n");
  ASSERT_TRUE(numbers);
  EXPECT_EQ(store_->create_sequencer("n").error(), (Error{Code::already_exists, 0, 3}));
  EXPECT_EQ(store_->open_map("n").error(), (Error{Code::wrong_kind, 0, 3}));
  EXPECT_EQ(store_->open_sequencer("none").error().code, Code::not_found);
  EXPECT_EQ(store_->create_sequencer("").error().code, Code::invalid_argument);
  EXPECT_EQ(store_->create_sequencer("m", Sequencer::kEnd + 1).error().code,
            Code::invalid_argument);
  ASSERT_TRUE(store_->create_sequencer("a", 9));
  ASSERT_TRUE(numbers->take(3));
  const auto all = store_->sequencers();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "a");
  EXPECT_EQ((*all)[0].next, 9u);
  EXPECT_EQ((*all)[1].next, 3u);
  ASSERT_TRUE(store_->drop_sequencer("n"));
  EXPECT_EQ(numbers->take().error().code, Code::not_found);
  EXPECT_EQ(numbers->seal().error().code, Code::not_found);
  EXPECT_EQ(numbers->describe().error().code, Code::not_found);
  auto again = store_->create_sequencer("n");
  ASSERT_TRUE(again);
  EXPECT_EQ(numbers->take().error().code, Code::not_found);
  EXPECT_EQ(numbers->describe().error().code, Code::not_found);
  EXPECT_EQ(again->take(), (NumberRange{0, 1, 1}));
}

TEST_P(SequencerNodes, ThreadsGetNoNumberTwiceNorOfASealedEpoch) {
  constexpr int kThreads = 3;
  ASSERT_TRUE(store_->create_sequencer("n"));
  std::vector<std::vector<NumberRange>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &into = taken[static_cast<std::size_t>(i)]] {
      auto numbers = store_->open_sequencer("n");
      ASSERT_TRUE(numbers) << message(numbers.error());
      while (into.size() < 300) {
        const auto range = numbers->take(static_cast<std::uint32_t>(1 + i));
        if (range) {
          into.push_back(*range);
        } else {
          ASSERT_EQ(range.error().code, Code::sealed) << message(range.error());
          ASSERT_TRUE(numbers->follow());
        }
      }
    });
  }
  auto numbers = store_->open_sequencer("n");
  ASSERT_TRUE(numbers);
  for (std::uint32_t epoch = 1; epoch < 6; ++epoch) {
    while (numbers->describe()->next < epoch * 60) std::this_thread::yield();
    ASSERT_TRUE(numbers->seal());
    ASSERT_TRUE(numbers->advance());
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<NumberRange> all;
  for (const auto& some : taken) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all, {}, &NumberRange::first);
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_LE(all[i - 1].first + all[i - 1].count, all[i].first);
    ASSERT_LE(all[i - 1].epoch, all[i].epoch);
  }
  EXPECT_EQ(all.size(), 300u * kThreads);
  EXPECT_FALSE(numbers->describe()->overwritten);
}

/// A client by hand: rings, and a pair to add to what it was given.
class SequencerByHand {
 public:
  explicit SequencerByHand(const std::string& address)
      : connection_(*client::FabricConnection::open(*fabric::parse(address))),
        rings_(*client::ThreadRings::open(connection_)),
        requests_(*rings_, 1),
        link_(*connection_->open_beside(wire::LinkWay::writes)) {}

  std::uint32_t number_of(std::string_view name) {
    wire::CallMessage request;
    request.offload = wire::OffloadId::sequencer_open;
    request.key = name;
    const auto reply = requests_.ask(request);
    EXPECT_TRUE(reply) << message(reply.error());
    return reply ? static_cast<std::uint32_t>(reply->header.version) : 0;
  }
  wire::SequencerGrant word_of(std::string_view name) {
    wire::CallMessage request;
    request.offload = wire::OffloadId::one_sided_sequencer;
    request.map = number_of(name);
    const auto reply = requests_.ask(request);
    EXPECT_TRUE(reply) << message(reply.error());
    wire::SequencerGrant grant{};
    if (reply && reply->payload.size() == sizeof grant) {
      std::memcpy(&grant, reply->payload.data(), sizeof grant);
    }
    return grant;
  }
  fabric::Completion post(const fabric::WorkRequest& request) {
    link_->pair().post(request);
    fabric::Completion completion;
    while (link_->completions().poll({&completion, 1}) == 0) link_->endpoint().wait(1'000'000);
    return completion;
  }
  /// The word before.
  std::uint64_t add(const wire::SequencerGrant& grant, std::uint64_t amount) {
    const auto done = post(fabric::WorkRequest::fetch_add(1, grant.key, grant.word, amount));
    EXPECT_EQ(done.status, fabric::Status::success);
    return done.old_value;
  }
  void write(const wire::SequencerGrant& grant, std::uint64_t word) {
    add(grant, word - add(grant, 0));
  }
  void hang_up() { connection_->hang_up(); }

 private:
  std::shared_ptr<client::FabricConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
  client::RemoteRequests requests_;
  std::unique_ptr<client::SideLink> link_;
};

constexpr const char* kAddingWays[] = {"shm_one_sided", "roce_one_sided"};

class HostileSequencerNodes : public SequencerNodes {};
INSTANTIATE_TEST_SUITE_P(By, HostileSequencerNodes, ::testing::ValuesIn(kAddingWays),
                         test::way_name);

TEST_P(HostileSequencerNodes, AWordWrittenOverIsFoundOutAndTheNodeGivesNoNumberTwice) {
  auto numbers = store_->create_sequencer("n");
  ASSERT_TRUE(numbers);
  Store by_rings = *Store::connect("unix:" + socket());
  auto asking = by_rings.open_sequencer("n");
  ASSERT_TRUE(asking);
  SequencerByHand liar(address());
  const auto grant = liar.word_of("n");
  EXPECT_EQ(grant.epoch, 1u);
  EXPECT_EQ(liar.add(grant, 10), wire::sequencer_word(1, 0));
  EXPECT_EQ(asking->take(90), (NumberRange{10, 90, 1}));
  EXPECT_EQ(numbers->take(), (NumberRange{100, 1, 1}));
  liar.write(grant, wire::sequencer_word(1, 20));
  // A client that calls the node learns it immediately, and gets nothing; a client that adds itself
  // learns it afterwards.
  EXPECT_EQ(asking->take().error(), sealed_in(1));
  EXPECT_EQ(numbers->take().error(), sealed_in(1));
  const auto now = asking->describe();
  ASSERT_TRUE(now);
  EXPECT_TRUE(now->sealed && now->overwritten);
  EXPECT_EQ(asking->advance().error(), (Error{Code::invalid_argument, 0, 1}));
  const auto begun = asking->advance(1000);
  ASSERT_TRUE(begun) << message(begun.error());
  EXPECT_EQ(begun->first, 1000u);
  // The page of the previous epoch is not used any more: writes there have no effect.
  liar.write(grant, wire::sequencer_word(2, 5));
  EXPECT_EQ(asking->take(), (NumberRange{1000, 1, 2}));
  ASSERT_TRUE(numbers->follow());
  EXPECT_EQ(numbers->take(), (NumberRange{1001, 1, 2}));
  // A client that overwrites the seal does not undo it.
  const auto next = liar.word_of("n");
  EXPECT_NE(next.key, grant.key);
  ASSERT_TRUE(asking->seal());
  liar.write(next, wire::sequencer_word(2, 7));
  EXPECT_EQ(asking->take().error(), sealed_in(2));
  EXPECT_TRUE(asking->describe()->overwritten);
  EXPECT_EQ(numbers->take().error(), sealed_in(2));
}

TEST_P(HostileSequencerNodes, TheKeyIsForAtomicsOfItsSessionAlone) {
  ASSERT_TRUE(store_->create_sequencer("n"));
  const auto grant = SequencerByHand(address()).word_of("n");
  std::uint64_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  {
    SequencerByHand other(address());
    EXPECT_EQ(other.post(fabric::WorkRequest::fetch_add(1, grant.key, grant.word, 1)).status,
              fabric::Status::remote_access);
  }
  SequencerByHand writes(address());
  const auto own = writes.word_of("n");
  EXPECT_EQ(writes.post(fabric::WorkRequest::write(1, bytes, own.key, own.word)).status,
            fabric::Status::remote_access);
  SequencerByHand reads(address());
  const auto read = reads.word_of("n");
  EXPECT_EQ(reads.post(fabric::WorkRequest::read(1, bytes, read.key, read.word)).status,
            fabric::Status::remote_access);
  SequencerByHand beyond(address());
  const auto page = beyond.word_of("n");
  EXPECT_EQ(beyond.post(fabric::WorkRequest::fetch_add(1, page.key, page.word + 4096, 1)).status,
            fabric::Status::remote_access);
  auto numbers = store_->open_sequencer("n");
  EXPECT_EQ(numbers->take(), (NumberRange{0, 1, 1}));
}

using SequencersWithoutAtomics = test::NodeFixture;

TEST_F(SequencersWithoutAtomics, AreRefusedInWords) {
  reach_by("shm");  // and the node does not offer its memory
  start();
  Store store = connect();
  ASSERT_TRUE(store.create_sequencer("n"));
  const auto connection = *client::FabricConnection::open(*fabric::parse(address()));
  const auto rings = *client::ThreadRings::open(connection);
  client::RemoteRequests requests(*rings, 1);
  wire::CallMessage request;
  request.offload = wire::OffloadId::one_sided_sequencer;
  request.map = 2;
  const auto reply = requests.ask(request);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, Code::unsupported);
  EXPECT_NE(reply.error().words.find("by rpc"), std::string::npos) << reply.error().words;
}

}  // namespace
}  // namespace espalier
