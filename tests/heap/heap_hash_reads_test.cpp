// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a thread that reads hash maps of a node by READs: each get
// completes once, with its value or an error, and interrupted ones start again. A pair without
// memory to post fails, with all that waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "channel/device/host_asker.hpp"
#include "channel/device/host_reads.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "channel/rings/thread_rings.hpp"
#include "espalier/hash_map.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/hash/device/host_hashes.hpp"
#include "kinds/hash/hash_map.hpp"
#include "node/node.hpp"
#include "reach/read_port.hpp"
#include "tests/heap/failing_heap.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

using ReadFailure = FailingHeap::Failure;
constexpr std::int64_t kReadAllocationsMax = 3'000;

// --- a port --------------------------------------------------------------------------------------

/// A lane with a READ of some words, and how often it was resumed.
struct ReadLane {
  ReadLane() {
    reads.ready = &ready;
    reads.walk = std::noop_coroutine();
  }
  void want(place::ReadPort& port, std::uint64_t offset) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      port.want(reads, offset + 8 * i, reinterpret_cast<std::byte*>(&words[i]), 8);
    }
  }
  [[nodiscard]] int times_resumed() {
    int times = 0;
    for (; !ready.empty(); ++times) static_cast<void>(ready.pop());
    return times;
  }
  base::ReadyQueue ready{4};
  place::LaneReads reads;
  std::array<std::uint64_t, 4> words{};
};

TEST(HeapReadPort, APairWithoutMemoryToPostEndsAndItsLanesGoOn) {
  for (const ReadFailure failure : {ReadFailure::once, ReadFailure::for_good}) {
    std::int64_t n = 0;
    for (bool failed = true; failed && n < kReadAllocationsMax; ++n) {
      fabric::sim::TwoEnds ends;
      ASSERT_TRUE(ends.connect());
      for (std::size_t i = 0; i < fabric::sim::kWords; ++i) ends.memory.set_word(8 * i, 100 + i);
      std::array<ReadLane, 3> lanes;
      place::ReadPort port(*ends.a.pair, ends.a.sends, ends.memory.region.remote(),
                           ends.a_endpoint->properties());
      for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].want(port, 32 * i);
      {
        FailingHeap heap(n, failure);
        for (ReadLane& lane : lanes) port.send(lane.reads);
        heap.stop();
        failed = heap.failed();
      }
      EXPECT_EQ(port.failed(), failed);
      EXPECT_EQ(ends.a.pair->state() == fabric::QueuePair::State::error, failed);
      const auto waits = [](const ReadLane& lane) { return lane.reads.waiting; };
      for (int turns = 0; turns < 1'000 && std::ranges::any_of(lanes, waits); ++turns) {
        port.poll();
        ends.world.run_for(10'000);
      }
      ends.world.run_for(1'000'000);  // nothing comes later
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        EXPECT_FALSE(lanes[i].reads.waiting);
        EXPECT_EQ(lanes[i].times_resumed(), 1);
        EXPECT_EQ(lanes[i].reads.failed, failed);
        EXPECT_EQ(lanes[i].words[1], failed ? 0 : 101 + 4 * i);
      }
      ASSERT_FALSE(HasFailure()) << n;
    }
    EXPECT_GT(n, 2);
    EXPECT_LT(n, kReadAllocationsMax);
  }
}

// --- gets ----------------------------------------------------------------------------------------

constexpr std::uint64_t kGets = 24;

std::string value_of_get(std::uint64_t i) {
  return std::string(i % 6 == 0 ? 3'000 + i : i, static_cast<char>('a' + i));
}

/// Records completions without the heap.
struct CountedGets final : Handler {
  void done(const Completion& completion) override {
    ++completed[completion.tag];
    const Code code = completion.ok ? Code::invalid : completion.error.code;
    if (completion.ok) {
      if (!completion.found || completion.value != values[completion.tag]) std::abort();
      ++right;
    } else if (code != Code::out_of_memory && code != Code::connection_lost) {
      std::abort();
    }
  }
  explicit CountedGets(const std::vector<std::string>& all) : values(all) {}
  const std::vector<std::string>& values;
  std::array<int, kGets> completed{};
  std::uint64_t right = 0;
};

class HeapHashReads : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    config_ = node_config(folder_);
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    // Sessions whose clients have lost them stay for a while.
    config_.clients.ring_bytes_max = std::uint64_t{4} << 30;
    config_.clients.resume_seconds = 1;
    config_.node.fabric = std::string(GetParam()) == "shm" ? "shm:" + (folder_ / "fabric").string()
                                                           : "roce://127.0.0.1:0/1";
    auto node = node::Node::start(config_);
    ASSERT_TRUE(node) << message(node.error());
    node_ = std::move(*node);
    auto store = Store::connect(node_->fabric_addresses().front(), {.access = Access::one_sided});
    ASSERT_TRUE(store) << message(store.error());
    store_.emplace(std::move(*store));
    auto map = store_->create_hash_map("h", {.partitions = 2});
    ASSERT_TRUE(map) << message(map.error());
    map_.emplace(std::move(*map));
    for (std::uint64_t i = 0; i < kGets; ++i) {
      keys_.push_back("key" + std::to_string(i));
      values_.push_back(value_of_get(i));
      ASSERT_TRUE(map_->put(keys_[i], values_[i]));
    }
    for (std::uint64_t i = 0; i < kGets; ++i) {
      requests_.push_back({Op::get, 0, i, keys_[i], {}, {}});
    }
  }
  /// The first allocations one by one, then some of the others: they are a handshake's.
  [[nodiscard]] static std::int64_t after(std::int64_t n) { return n + (n < 24 ? 1 : 11); }

  const base::TemporaryFolder folder_;
  node::Config config_;
  std::unique_ptr<node::Node> node_;
  std::optional<Store> store_;
  std::optional<HashMap> map_;
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::vector<Request> requests_;
};

TEST_P(HeapHashReads, EachGetOfAPipelineCompletesOnce) {
  for (const bool opened : {false, true}) {
    for (const ReadFailure failure : {ReadFailure::once, ReadFailure::for_good}) {
      std::int64_t n = 0;
      for (bool failed = true; failed && n < kReadAllocationsMax; n = after(n)) {
        SCOPED_TRACE("allocation " + std::to_string(n) + (opened ? ", opened before" : ""));
        auto pipeline = Pipeline::open(*map_, 8);
        ASSERT_TRUE(pipeline) << message(pipeline.error());
        CountedGets before(values_);
        if (opened) pipeline->run(requests_, before);
        EXPECT_EQ(before.right, opened ? kGets : 0);
        CountedGets counted(values_);
        {
          FailingHeap heap(n, failure);
          pipeline->run(requests_, counted);
          heap.stop();
          failed = heap.failed();
        }
        EXPECT_EQ(std::ranges::count(counted.completed, 1), static_cast<std::ptrdiff_t>(kGets));
        if (!failed) {
          EXPECT_EQ(counted.right, kGets);
        }
        ASSERT_FALSE(HasFailure());
      }
      EXPECT_GT(n, 2);
      EXPECT_LT(n, kReadAllocationsMax);
    }
  }
  CountedGets counted(values_);
  Pipeline::open(*map_, 8)->run(requests_, counted);
  EXPECT_EQ(counted.right, kGets);
}

// By a thread that has read before, and by new ones.
TEST_P(HeapHashReads, AGetIsRightOrHasNoMemory) {
  std::string value;
  ASSERT_TRUE(map_->get(keys_[0], value).value());
  for (const bool new_thread : {false, true}) {
    for (const ReadFailure failure : {ReadFailure::once, ReadFailure::for_good}) {
      std::int64_t n = 0;
      bool failed = true;
      const auto get = [&] {
        std::string brought;
        brought.reserve(8'000);
        Result<bool> found = false;
        FailingHeap heap(n, failure);
        found = map_->get(keys_[6], brought);
        heap.stop();
        failed = heap.failed();
        if (found) {
          EXPECT_TRUE(*found && brought == values_[6]);
        } else {
          const Code code = found.error().code;
          EXPECT_TRUE(code == Code::out_of_memory || code == Code::connection_lost);
          EXPECT_TRUE(failed);
        }
      };
      for (; failed && n < kReadAllocationsMax; n = after(n)) {
        SCOPED_TRACE("allocation " + std::to_string(n) + (new_thread ? ", on a new thread" : ""));
        if (new_thread) {
          std::thread(get).join();
        } else {
          get();
        }
        ASSERT_TRUE(map_->get(keys_[1], value).value());
        EXPECT_EQ(value, values_[1]);
        ASSERT_FALSE(HasFailure());
      }
      EXPECT_LT(n, kReadAllocationsMax);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, HeapHashReads, ::testing::Values("shm"),
                         [](const auto& each) { return std::string(each.param); });

// --- a device ------------------------------------------------------------------------------------

/// Calls a node on threads that have memory, and delivers its answers on request.
class NodeAsker final : public device::HostAsker {
 public:
  explicit NodeAsker(client::RemoteRequests& requests) : requests_(requests) {}
  void ask(const wire::CallMessage& message, OnAnswer on_answer) override {
    std::thread([&] {
      auto reply = requests_.ask(message);
      asked_.push_back({std::move(on_answer), std::move(reply)});
    }).join();
  }
  void deliver() {
    for (Asked& each : std::exchange(asked_, {})) {
      device::HostAnswer answer;
      if (each.reply) {
        answer.header = each.reply->header;
        answer.payload = each.reply->payload;
      } else {
        answer = device::failed_with(each.reply.error().error.code);
      }
      each.on_answer(answer);
    }
  }

 private:
  struct Asked {
    OnAnswer on_answer;
    std::expected<client::Reply, client::Refusal> reply;
  };
  client::RemoteRequests& requests_;
  std::vector<Asked> asked_;
};

class HeapHashDevice : public HeapHashReads {
 protected:
  using Gets = std::array<std::shared_ptr<device::DeviceHashGet>, 8>;

  void SetUp() override {
    HeapHashReads::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    const auto map = node_->catalog().open<hash::HashMap>("h");
    ASSERT_TRUE(map);
    number_ = (*map)->id();
    auto connection =
        client::connect_to(*client::parse_node_address(node_->fabric_addresses().front()));
    ASSERT_TRUE(connection) << message(connection.error());
    connection_ = std::move(*connection);
    auto rings = client::ThreadRings::open(connection_);
    ASSERT_TRUE(rings);
    rings_ = std::move(*rings);
    requests_.emplace(*rings_, 1);
    asker_.emplace(*requests_);
  }
  void TearDown() override {
    asker_.reset();
    requests_.reset();
    rings_.reset();
  }
  void begin(device::HostHashes& hashes, Gets& gets) {
    for (std::size_t i = 0; i < gets.size(); ++i) {
      if (!hashes.reads(number_)) continue;
      try {
        gets[i] = hashes.begin(number_, keys_[i]);
      } catch (const std::bad_alloc&) {  // its host answers it
      }
    }
  }
  /// Until all are over that were begun; so many turns at most.
  bool turn_until_over(device::HostHashes& hashes, const Gets& gets) {
    const auto waits = [](const auto& get) { return get != nullptr && !get->is_over(); };
    for (const base::Stopwatch watch; std::ranges::any_of(gets, waits);) {
      if (watch.elapsed_ns() > 120'000'000'000) return false;
      hashes.turn(base::monotonic_ns());
      asker_->deliver();
    }
    return true;
  }
  /// Those that the device has answered, rightly.
  [[nodiscard]] std::size_t answered(const Gets& gets) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < gets.size(); ++i) {
      if (gets[i] == nullptr || !gets[i]->is_answered()) continue;
      EXPECT_TRUE(gets[i]->found().found && gets[i]->found().value == values_[i]);
      ++count;
    }
    return count;
  }

  std::uint32_t number_ = 0;
  std::shared_ptr<client::NodeConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
  std::optional<client::RemoteRequests> requests_;
  std::optional<NodeAsker> asker_;
};

TEST_P(HeapHashDevice, EachGetIsAnsweredOrLeftToTheHost) {
  for (const ReadFailure failure : {ReadFailure::once, ReadFailure::for_good}) {
    std::int64_t n = 0;
    for (bool failed = true; failed && n < kReadAllocationsMax; n += n < 30 ? 1 : 9) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      auto link = connection_->open_beside(wire::LinkWay::reads);
      ASSERT_TRUE(link) << message(link.error());
      const auto reads = std::make_shared<device::HostReads>(std::move(*link));
      device::HostHashes hashes(64 << 10);
      hashes.ask_by(&*asker_);
      hashes.read_by(reads);
      Gets gets;
      {
        FailingHeap heap(n, failure);
        begin(hashes, gets);
        const bool over = turn_until_over(hashes, gets);
        heap.stop();
        failed = heap.failed();
        ASSERT_TRUE(over);
      }
      const std::size_t count = answered(gets);
      if (!failed) {
        EXPECT_EQ(count, gets.size());
      }
      hashes.turn(base::monotonic_ns());
      // What that did not end proceeds.
      Gets later;
      begin(hashes, later);
      ASSERT_TRUE(turn_until_over(hashes, later));
      static_cast<void>(answered(later));
      ASSERT_FALSE(HasFailure());
      hashes.stop_reading();
      hashes.ask_by(nullptr);
    }
    EXPECT_GT(n, 8);
    EXPECT_LT(n, kReadAllocationsMax);
  }
}

// Of 48 places.
TEST_P(HeapHashDevice, AMapThatItCouldNotAskForTakesNoPlace) {
  auto link = connection_->open_beside(wire::LinkWay::reads);
  ASSERT_TRUE(link) << message(link.error());
  device::HostHashes hashes(64 << 10);
  hashes.ask_by(&*asker_);
  hashes.read_by(std::make_shared<device::HostReads>(std::move(*link)));
  const auto begins = [&](std::uint32_t map, std::int64_t n) {
    FailingHeap heap(n, ReadFailure::once);
    try {
      static_cast<void>(hashes.begin(map, "key"));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  std::int64_t allocations = 0;
  while (!begins(1'000, allocations)) ++allocations;
  EXPECT_GT(allocations, 3);
  int begun = 1;
  for (std::uint32_t map = 1'001; map < 1'100; ++map) {
    for (std::int64_t n = 0; n < allocations; ++n) begun += begins(map, n) ? 1 : 0;
  }
  EXPECT_LT(begun, 10);
  EXPECT_TRUE(hashes.reads(number_));
  hashes.stop_reading();
  hashes.ask_by(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Ways, HeapHashDevice, ::testing::Values("shm"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace espalier::test
