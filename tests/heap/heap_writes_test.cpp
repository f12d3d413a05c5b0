// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a write: the write either happens completely, or is
// refused with out_of_memory and leaves everything as it was, nothing locked and nothing lost; and
// once there is memory again it succeeds. This does with the process's heap what
// write_faults_test.cpp does with the store's buffers.
//
// A course is a series of writes that one index repeats, and the event that it is made for. A run
// without failures finds the write that causes the event. Then, for n = 0, 1, 2, ... the (n+1)-th
// allocation of that write fails, alone or with all later ones, until the write needs at most n. A
// refused write has changed nothing, so the next n continues from there; after one that succeeds by
// a retry the result is checked, and the state is built again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "tests/heap/failing_heap.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

using Failure = FailingHeap::Failure;

/// What is written together: without a value a key is erased.
using HeapWrites = std::vector<std::pair<std::string, std::optional<std::string>>>;
using HeapContents = std::map<std::string, std::string>;

const MapOptions kSmallNodes{.node_bytes = 512, .log_bytes = 128};

/// A store with one map, and what the map must hold.
class HeapWorld {
 public:
  explicit HeapWorld(const MapOptions& options)
      : store_(open_store({.memory_bytes_max = std::uint64_t{256} << 20})),
        map_(*store_.create_map("map", options)) {}

  Map& map() { return map_; }
  [[nodiscard]] const HeapContents& contents() const { return contents_; }
  void hold_snapshot() { snapshots_.emplace_back(*map_.snapshot(), contents_); }

  /// Writes, and keeps what was written.
  Code write(const HeapWrites& writes) {
    const WriteBatch batch = batch_of(writes);
    return keep(writes, apply(writes, batch));
  }
  /// The same with a heap that fails, on a thread of its own or on this one, which has worked on
  /// the store before.
  Code write(const HeapWrites& writes, std::int64_t n, Failure failure, bool other_thread,
             bool& failed) {
    const WriteBatch batch = batch_of(writes);
    Result<Written> done = Written{};
    const auto work = [&] {
      FailingHeap heap(n, failure);
      done = apply(writes, batch);
      heap.stop();
      failed = heap.failed();
    };
    if (other_thread) {
      std::thread(work).join();
    } else {
      work();
    }
    return keep(writes, done);
  }

  /// The map and its snapshots hold what they should, and the audit finds all buffers.
  void expect_all_well() {
    EXPECT_TRUE(holds(map_, contents_));
    EXPECT_EQ(map_.stats()->items, contents_.size());
    for (const auto& [snapshot, contents] : snapshots_) EXPECT_TRUE(holds(snapshot, contents));
    const std::vector<std::string> wrong = map_.audit();
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }
  /// No memory is in use once the map is destroyed. Ends this world.
  void expect_no_leak() {
    memory::BufferPool& pool = client::EmbeddedMap::of(map_).core().store.pool;
    snapshots_.clear();
    ASSERT_TRUE(store_.drop_map("map"));
    for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
      EXPECT_EQ(pool.stats(cls).in_use, 0u) << memory::class_bytes(cls) << " bytes each";
    }
  }

 private:
  static WriteBatch batch_of(const HeapWrites& writes) {
    WriteBatch batch;
    if (writes.size() == 1) return batch;
    for (const auto& [key, value] : writes) {
      if (value) {
        batch.put(key, *value);
      } else {
        batch.erase(key);
      }
    }
    return batch.only_if_absent("none");
  }
  Result<Written> apply(const HeapWrites& writes, const WriteBatch& batch) {
    if (writes.size() != 1) return map_.write(batch);
    const auto& [key, value] = writes.front();
    return value ? map_.put(key, *value) : map_.erase(key);
  }
  Code keep(const HeapWrites& writes, const Result<Written>& done) {
    if (!done) return done.error().code;
    for (const auto& [key, value] : writes) {
      if (value) {
        contents_[key] = *value;
      } else {
        contents_.erase(key);
      }
    }
    return Code::invalid;
  }
  template <class Readable>
  static bool holds(const Readable& readable, const HeapContents& contents) {
    HeapContents found;
    const auto count = readable.scan("", "", [&](std::span<const Item> items) {
      for (const Item& item : items) found.emplace(item.key, item.value);
      return true;
    });
    return count && found == contents && *count == contents.size();
  }

  Store store_;
  Map map_;
  HeapContents contents_;
  std::vector<std::pair<Snapshot, HeapContents>> snapshots_;
};

struct HeapCourse {
  std::string name;
  std::function<HeapWrites(std::uint64_t)> writes;
  std::function<bool(const MapStats& before, const MapStats& after)> event;
  std::uint64_t first = 0;  // writes before this one do not count as the event
  MapOptions options = kSmallNodes;
  std::uint64_t snapshot_at = ~std::uint64_t{0};

  friend void PrintTo(const HeapCourse& course, std::ostream* out) { *out << course.name; }
};

// --- Courses -------------------------------------------------------------------------------------

std::string digits_of(std::uint64_t i) {
  std::string digits = std::to_string(i);
  return std::string(12 - digits.size(), '0') + digits;
}
// Keys far apart, the same in every run.
std::string spread_key(std::uint64_t i) { return digits_of(base::mix64(i) % 1'000'000'000); }
// Some of them out of line.
std::string some_value(std::uint64_t i, std::uint64_t round = 0) {
  std::string value = std::to_string(i) + "." + std::to_string(round) + ".";
  value.resize(std::max<std::size_t>(value.size(), i % 5 == 0 ? 3000 : 10), 'v');
  return value;
}

constexpr std::uint64_t kHeapFill = 300;  // a tree of three levels

HeapWrites puts_spread(std::uint64_t i) { return {{spread_key(i), some_value(i)}}; }
HeapWrites puts_ascending(std::uint64_t i) { return {{digits_of(i), some_value(i)}}; }
HeapWrites overwrites(std::uint64_t i) {
  const std::uint64_t key = i % kHeapFill;
  return {{spread_key(key), some_value(key, i / kHeapFill)}};
}
HeapWrites fills_and_erases(std::uint64_t i) {
  if (i < kHeapFill) return puts_spread(i);
  static const std::vector<std::string> sorted = [] {
    std::vector<std::string> keys;
    for (std::uint64_t k = 0; k < kHeapFill; ++k) keys.push_back(spread_key(k));
    std::sort(keys.begin(), keys.end());
    return keys;
  }();
  return {{sorted.at(i - kHeapFill), std::nullopt}};
}
// `count` keys spread over the tree, and some erases.
std::function<HeapWrites(std::uint64_t)> batches_of(std::uint64_t count) {
  return [count](std::uint64_t i) {
    std::map<std::string, std::optional<std::string>> writes;  // each key once
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t number = i * count + k;
      writes[spread_key(number)] = some_value(number);
      if (k % 7 == 3 && i > 0) writes[spread_key(number - count)] = std::nullopt;
    }
    return HeapWrites(writes.begin(), writes.end());
  };
}

bool log_is_merged(const MapStats& before, const MapStats& after) {
  return after.log_merges > before.log_merges;
}
bool leaves_share(const MapStats& before, const MapStats& after) {
  return after.redistributions > before.redistributions;
}
bool leaf_splits(const MapStats& before, const MapStats& after) {
  return after.splits > before.splits;
}
bool leaves_merge(const MapStats& before, const MapStats& after) {
  return after.merges > before.merges;
}
bool interior_splits(const MapStats& before, const MapStats& after) {
  return after.height == before.height && after.interior_nodes > before.interior_nodes;
}
bool interior_merges(const MapStats& before, const MapStats& after) {
  return after.height == before.height && after.interior_nodes < before.interior_nodes;
}
bool root_grows(const MapStats& before, const MapStats& after) {
  return after.height > before.height;
}
bool high_root_grows(const MapStats& before, const MapStats& after) {
  return before.height > 1 && root_grows(before, after);
}
bool root_goes_down(const MapStats& before, const MapStats& after) {
  return after.height < before.height;
}
bool many_leaves_more(const MapStats& before, const MapStats& after) {
  return after.leaves > before.leaves + 3;
}
bool anything(const MapStats&, const MapStats&) { return true; }

std::vector<HeapCourse> heap_courses() {
  const MapOptions kNoLog{.node_bytes = 512, .log_bytes = 0};
  const MapOptions kNoVersions{.node_bytes = 512, .log_bytes = 128, .versions = false};
  return {
      {"PutsIntoALog", puts_spread, anything, 61},
      {"PutsAStoredValue", puts_spread, anything, 60},
      {"PutsOverAStoredValue", overwrites, anything, kHeapFill + 5},
      {"ErasesAnItem", fills_and_erases, anything, kHeapFill + 1},
      {"MergesALog", overwrites, log_is_merged, kHeapFill},
      {"MergesALogInErasing", fills_and_erases, log_is_merged, kHeapFill},
      {"MergesALogUnderASnapshot", overwrites, log_is_merged, kHeapFill + 8, kSmallNodes,
       kHeapFill + 3},
      {"RewritesALeafWithoutLog", overwrites, anything, kHeapFill, kNoLog},
      {"GivesToASibling", puts_spread, leaves_share, 100},
      {"SplitsALeaf", puts_spread, leaf_splits, 100},
      {"SplitsALeafWithoutVersions", puts_spread, leaf_splits, 100, kNoVersions},
      {"SplitsTheLastLeaf", puts_ascending, leaf_splits, 100},
      {"SplitsAnInteriorNode", puts_spread, interior_splits},
      {"GrowsFromALeaf", puts_spread, root_grows},
      {"GrowsFromAnInteriorNode", puts_spread, high_root_grows},
      {"MergesLeaves", fills_and_erases, leaves_merge, kHeapFill},
      {"MergesInteriorNodes", fills_and_erases, interior_merges, kHeapFill},
      {"LowersTheRoot", fills_and_erases, root_goes_down, kHeapFill},
      {"WritesABatchIntoLogs", batches_of(3), anything, 50},
      {"WritesABatchThatSplits", batches_of(30), many_leaves_more},
      {"WritesABatchThatGrowsTheRoot", batches_of(30), high_root_grows},
      {"WritesABatchThatGrowsFromALeaf", batches_of(100), root_grows},
      {"WritesABatchWithoutVersions", batches_of(30), many_leaves_more, 0, kNoVersions},
  };
}

// --- Running a course ----------------------------------------------------------------------------

void write_before(HeapWorld& world, const HeapCourse& course, std::uint64_t at) {
  for (std::uint64_t i = 0; i < at; ++i) {
    if (i == course.snapshot_at) world.hold_snapshot();
    ASSERT_EQ(world.write(course.writes(i)), Code::invalid);
  }
}

// Which write of the course brings its event about.
std::optional<std::uint64_t> find_heap_event(const HeapCourse& course) {
  HeapWorld world(course.options);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    if (i == course.snapshot_at) world.hold_snapshot();
    const MapStats before = *world.map().stats();
    EXPECT_EQ(world.write(course.writes(i)), Code::invalid);
    if (i >= course.first && course.event(before, *world.map().stats())) return i;
  }
  return std::nullopt;
}

// Returns how many times the write was refused.
std::size_t fail_at_each(const HeapCourse& course, std::uint64_t at, Failure failure,
                         bool other_thread) {
  constexpr std::int64_t kAllocationsMax = 5000;
  const HeapWrites writes = course.writes(at);
  std::unique_ptr<HeapWorld> world;
  std::size_t refused = 0;
  for (std::int64_t n = 0; n < kAllocationsMax; ++n) {
    SCOPED_TRACE(course.name + ", write " + std::to_string(at) + ", allocation " +
                 std::to_string(n) + (failure == Failure::once ? " fails" : " and all others") +
                 (other_thread ? ", on a new thread" : ""));
    if (!world) {
      world = std::make_unique<HeapWorld>(course.options);
      write_before(*world, course, at);
    }
    bool failed = false;
    const Code code = world->write(writes, n, failure, other_thread, failed);
    world->expect_all_well();
    if (code != Code::invalid) {
      EXPECT_EQ(code, Code::out_of_memory);
      EXPECT_TRUE(failed);
      ++refused;
    } else {
      world->expect_no_leak();
      world.reset();
    }
    if (::testing::Test::HasFailure()) return refused;
    if (!failed) return refused;
  }
  ADD_FAILURE() << "the write never got through";
  return refused;
}

class HeapFaults : public ::testing::TestWithParam<HeapCourse> {};

TEST_P(HeapFaults, NoMemoryAtEveryAllocation) {
  const HeapCourse& course = GetParam();
  const std::optional<std::uint64_t> at = find_heap_event(course);
  ASSERT_TRUE(at) << "the event never came";
  std::size_t refused = 0;
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    for (const bool other_thread : {false, true}) {
      refused += fail_at_each(course, *at, failure, other_thread);
      ASSERT_FALSE(HasFailure());
    }
  }
  // A new thread has nothing, and cannot even begin.
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Writes, HeapFaults, ::testing::ValuesIn(heap_courses()),
                         [](const auto& course) { return course.param.name; });

}  // namespace
}  // namespace espalier::test
