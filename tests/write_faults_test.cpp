// SPDX-License-Identifier: Apache-2.0
// Allocation failures of the store's memory at every acquisition of a write: the write either
// happens completely, or is refused with out_of_memory and leaves everything as it was; nothing
// leaks; and once there is memory again it succeeds.
//
// A course is a series of writes that one index repeats, and the event that it is made for: a leaf
// that splits, a root that grows. A run without failures finds the write that causes the event.
// Then, for n = 0, 1, 2, ... until a write needs at most n acquisitions, the same state is built in
// a new store, and the (n+1)-th acquisition of that write fails: alone, which the write may survive
// by a retry, or with all later ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "tests/support/pipeline_recorder.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/reference_map.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

/// The state that a write may change besides items.
struct WriteState {
  MapStats stats;
  std::size_t table_buffers = 0;
};

/// A store with one map, and what the map must hold.
class World {
 public:
  explicit World(const MapOptions& options)
      : store_(open_store({.memory_bytes_max = std::uint64_t{256} << 20})),
        map_(*store_.create_map("map", options)),
        recorder_(map_, clock_, 0) {}

  Recorder& recorder() { return recorder_; }
  memory::BufferPool& pool() { return core().store.pool; }
  [[nodiscard]] WriteState shape() { return {*map_.stats(), core().table.buffers().size()}; }

  /// Requests through a pipeline, all in flight together. Requires: their keys differ.
  void run(std::vector<Question> questions) {
    if (!pipeline_) pipeline_ = *PipelineRecorder::open(recorder_, 8);
    pipeline_->submit(std::move(questions));
    pipeline_->drain();
  }
  void hold_snapshot() {
    EXPECT_EQ(follow(), 0u);
    snapshots_.emplace_back(*map_.snapshot(), reference_.contents());
  }

  /// Holds what was logged against the model; returns how many operations were refused.
  std::size_t follow() {
    std::size_t refused = 0;
    for (const Operation& operation : recorder_.log()) {
      if (operation.refused) {
        ++refused;
      } else {
        EXPECT_EQ(reference_.follow(operation).value_or(""), "");
      }
    }
    recorder_.log().clear();
    EXPECT_EQ(recorder_.unexpected().value_or(""), "");
    return refused;
  }

  /// The map and its snapshots hold what they should, and the audit finds all buffers.
  void expect_all_well() {
    EXPECT_TRUE(holds(map_, reference_.contents()));
    EXPECT_EQ(map_.stats()->items, reference_.contents().size());
    for (const auto& [snapshot, contents] : snapshots_) {
      // Where writes found no memory, the oldest were given up for them.
      if (is_expired(snapshot)) continue;
      EXPECT_TRUE(holds(snapshot, contents));
    }
    const std::vector<std::string> wrong = map_.audit();
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }

  /// No memory is in use once the map is destroyed. Ends this world.
  void expect_no_leak() {
    memory::BufferPool& all = pool();
    pipeline_.reset();
    snapshots_.clear();
    ASSERT_TRUE(store_.drop_map("map"));
    for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
      EXPECT_EQ(all.stats(cls).in_use, 0u) << memory::class_bytes(cls) << " bytes each";
    }
  }

 private:
  tree::MapCore& core() { return client::EmbeddedMap::of(map_).core(); }

  static bool is_expired(const Snapshot& snapshot) {
    const auto scanned = snapshot.scan("", "", [](std::span<const Item>) { return false; });
    return !scanned && scanned.error().code == Code::snapshot_expired;
  }

  template <class Readable>
  static bool holds(const Readable& readable, const Contents& contents) {
    Contents found;
    const auto count = readable.scan("", "", [&](std::span<const Item> items) {
      for (const Item& item : items) found.emplace(item.key, item.value);
      return true;
    });
    EXPECT_TRUE(count) << message(count.error());
    return count && found == contents && *count == contents.size();
  }

  Store store_;
  Map map_;
  Clock clock_;
  Recorder recorder_;
  std::unique_ptr<PipelineRecorder> pipeline_;
  ReferenceMap reference_;
  std::vector<std::pair<Snapshot, Contents>> snapshots_;
};

const MapOptions kOptions{.node_bytes = 512, .log_bytes = 128};

/// Whether a write is refused where every acquisition fails. Erases never are: they make room.
enum class Refused : std::uint8_t { always, sometimes, never };

struct Course {
  std::string name;
  std::function<void(World&, std::uint64_t)> write;
  std::function<bool(const WriteState& before, const WriteState& after)> event;
  std::uint64_t first = 0;  // writes before this one do not count as the event
  Refused without_memory = Refused::always;
  MapOptions options = kOptions;

  friend void PrintTo(const Course& course, std::ostream* out) { *out << course.name; }
};

// --- Courses -------------------------------------------------------------------------------------

std::string numbered(std::uint64_t i) {
  std::string digits = std::to_string(i);
  return std::string(12 - digits.size(), '0') + digits;
}

// Keys far apart, the same in every run.
std::string scattered(std::uint64_t i) { return numbered(base::mix64(i) % 1'000'000'000); }

std::string value_of(std::uint64_t i, std::size_t bytes) {
  std::string value = std::to_string(i) + ".";
  value.resize(std::max(value.size(), bytes), 'v');
  return value;
}

// Some of them out of line.
std::string mixed_value(std::uint64_t i) { return value_of(i, i % 5 == 0 ? 3000 : 10); }

void put_scattered(World& world, std::uint64_t i) {
  world.recorder().put(scattered(i), mixed_value(i));
}

void put_ascending(World& world, std::uint64_t i) {
  world.recorder().put(numbered(i), mixed_value(i));
}

// Four of them fill a leaf of 512 bytes.
void put_wide(World& world, std::uint64_t i) {
  world.recorder().put(std::string(20, 'k') + numbered(i), value_of(i, 32));
}

constexpr std::uint64_t kFill = 1500;  // a tree of three levels, and some

// Puts keys and erases them again, from the lowest to the highest.
void fill_or_erase(World& world, std::uint64_t i) {
  if (i < kFill) {
    put_scattered(world, i);
  } else {
    static const std::vector<std::string> sorted = [] {
      std::vector<std::string> keys;
      for (std::uint64_t k = 0; k < kFill; ++k) keys.push_back(scattered(k));
      std::sort(keys.begin(), keys.end());
      return keys;
    }();
    world.recorder().erase(sorted.at(i - kFill));
  }
}

void fill_and_overwrite(World& world, std::uint64_t i) {
  world.recorder().put(scattered(i % kFill), mixed_value(i));
}

void hold_and_overwrite(World& world, std::uint64_t i) {
  if (i == kFill || i == kFill + 7) world.hold_snapshot();
  fill_and_overwrite(world, i);
}

// Batches of `count` keys spread over the tree, with some erases and with conditions that hold.
std::function<void(World&, std::uint64_t)> batches(std::uint64_t count) {
  return [count](World& world, std::uint64_t i) {
    WriteBatch batch;
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t number = i * count + k;
      batch.put(scattered(number), mixed_value(number));
      if (k % 7 == 3 && i > 0) batch.erase(scattered(number - count));
    }
    batch.only_if_absent(scattered(i * count)).only_if_absent("none");
    if (i > 0) batch.only_if_value(scattered((i - 1) * count), mixed_value((i - 1) * count));
    world.recorder().write(batch);
  };
}

void pipelined(World& world, std::uint64_t i) {
  std::vector<Question> questions;
  for (std::uint64_t k = 0; k < 24; ++k) {
    const std::uint64_t number = i * 24 + k;
    questions.push_back({Op::put, scattered(number), {}, mixed_value(number), 0});
    if (k % 4 == 1 && i > 0) questions.push_back({Op::erase, scattered(number - 24), {}, {}, 0});
  }
  world.run(std::move(questions));
}

bool log_merged(const WriteState& before, const WriteState& after) {
  return after.stats.log_merges > before.stats.log_merges;
}
bool gave(const WriteState& before, const WriteState& after) {
  return after.stats.redistributions > before.stats.redistributions;
}
bool split(const WriteState& before, const WriteState& after) {
  return after.stats.splits > before.stats.splits;
}
bool merged(const WriteState& before, const WriteState& after) {
  return after.stats.merges > before.stats.merges;
}
bool more_interior_nodes(const WriteState& before, const WriteState& after) {
  return after.stats.height == before.stats.height &&
         after.stats.interior_nodes > before.stats.interior_nodes;
}
bool fewer_interior_nodes(const WriteState& before, const WriteState& after) {
  return after.stats.height == before.stats.height &&
         after.stats.interior_nodes < before.stats.interior_nodes;
}
bool grown(const WriteState& before, const WriteState& after) {
  return after.stats.height > before.stats.height;
}
bool grown_from_interior(const WriteState& before, const WriteState& after) {
  return before.stats.height > 1 && grown(before, after);
}
bool collapsed(const WriteState& before, const WriteState& after) {
  return after.stats.height < before.stats.height;
}
bool more_table(const WriteState& before, const WriteState& after) {
  return after.table_buffers > before.table_buffers;
}
bool more_leaves(const WriteState& before, const WriteState& after) {
  return after.stats.leaves > before.stats.leaves + 3;
}
bool any(const WriteState&, const WriteState&) { return true; }

std::vector<Course> structural_courses() {
  const MapOptions kWithoutLog{.node_bytes = 512, .log_bytes = 0};
  const MapOptions kNoVersions{.node_bytes = 512, .log_bytes = 128, .versions = false};
  return {
      {"MergesALog", fill_and_overwrite, log_merged, kFill},
      {"MergesALogWithoutVersions", fill_and_overwrite, log_merged, kFill, Refused::always,
       kNoVersions},
      {"MergesALogInErasing", fill_or_erase, log_merged, kFill, Refused::never},
      {"RewritesALeafWithoutLog", fill_and_overwrite, any, kFill, Refused::always, kWithoutLog},
      {"GivesToASibling", put_scattered, gave, 100},
      {"SplitsALeaf", put_scattered, split, 100},
      {"SplitsALeafWithoutVersions", put_scattered, split, 100, Refused::always, kNoVersions},
      {"SplitsALeafWithoutLog", put_scattered, split, 100, Refused::always, kWithoutLog},
      {"SplitsTheLastLeaf", put_ascending, split, 100},
      {"SplitsAnInteriorNode", put_scattered, more_interior_nodes},
      {"SplitsTheLastInteriorNode", put_ascending, more_interior_nodes},
      {"GrowsFromALeaf", put_scattered, grown},
      {"GrowsFromAnInteriorNode", put_scattered, grown_from_interior},
      {"MergesLeaves", fill_or_erase, merged, kFill, Refused::never},
      {"MergesLeavesWithoutVersions", fill_or_erase, merged, kFill, Refused::never, kNoVersions},
      {"MergesInteriorNodes", fill_or_erase, fewer_interior_nodes, kFill, Refused::never},
      {"LowersTheRoot", fill_or_erase, collapsed, kFill, Refused::never},
      {"OverwritesUnderSnapshots", hold_and_overwrite, log_merged, kFill + 8},
      {"WritesABatchIntoLogs", batches(3), any, 100},
      {"WritesABatchThatSplits", batches(30), more_leaves},
      {"WritesABatchThatSplitsInteriorNodes", batches(30), more_interior_nodes},
      {"WritesABatchThatGrowsFromALeaf", batches(300), grown},
      {"WritesABatchThatGrowsTheRoot", batches(30), grown_from_interior},
      {"WritesABatchWithoutVersions", batches(30), more_leaves, 0, Refused::always, kNoVersions},
      {"SplitsALeafOfTheUsualSize", put_scattered, split, 500, Refused::always, {}},
      {"MergesLeavesOfTheUsualSize", fill_or_erase, merged, kFill, Refused::never, {}},
      {"WritesThroughAPipeline", pipelined, split, 20},
  };
}

// --- Running a course ----------------------------------------------------------------------------

// Which write of the course brings its event about.
std::optional<std::uint64_t> find_event(const Course& course) {
  World world(course.options);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const WriteState before = world.shape();
    course.write(world, i);
    EXPECT_EQ(world.follow(), 0u);
    if (i >= course.first && course.event(before, world.shape())) {
      world.expect_all_well();
      return i;
    }
  }
  return std::nullopt;
}

enum class Failure : std::uint8_t { once, for_good };

struct Outcome {
  bool failed = false;      // whether an acquisition failed
  std::size_t refused = 0;  // operations
};

// Does the writes before `at`, makes the one at `at` fail, checks everything, and repeats it with
// memory. A new thread has no buffers in reserve: it acquires all that it needs.
Outcome fail_at(const Course& course, std::uint64_t at, std::int64_t n, Failure failure) {
  World world(course.options);
  for (std::uint64_t i = 0; i < at; ++i) course.write(world, i);
  EXPECT_EQ(world.follow(), 0u);
  memory::BufferPool& pool = world.pool();
  failure == Failure::once ? pool.fail_after(n) : pool.fail_from(n);
  std::thread([&] { course.write(world, at); }).join();
  Outcome outcome;
  outcome.failed = !pool.failure_pending();
  pool.fail_after(-1);
  outcome.refused = world.follow();
  world.expect_all_well();
  if (outcome.refused != 0) {
    course.write(world, at);
    EXPECT_EQ(world.follow(), 0u);
    world.expect_all_well();
  }
  world.expect_no_leak();
  return outcome;
}

void fail_everywhere(const Course& course) {
  const std::optional<std::uint64_t> at = find_event(course);
  ASSERT_TRUE(at) << "the event never came";
  ASSERT_FALSE(::testing::Test::HasFailure());
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    constexpr std::int64_t kAcquisitionsMax = 2000;
    std::size_t refused = 0;
    std::int64_t n = 0;
    for (; n < kAcquisitionsMax; ++n) {
      SCOPED_TRACE(course.name + ", write " + std::to_string(*at) + ", acquisition " +
                   std::to_string(n) + (failure == Failure::once ? " fails" : " and all others"));
      const Outcome outcome = fail_at(course, *at, n, failure);
      ASSERT_FALSE(::testing::Test::HasFailure());
      refused += outcome.refused;
      if (!outcome.failed) break;
    }
    EXPECT_LT(n, kAcquisitionsMax);
    EXPECT_TRUE(course.without_memory != Refused::never || refused == 0);
    EXPECT_TRUE(course.without_memory != Refused::always || failure == Failure::once ||
                refused != 0);
  }
}

// --- Single keys ---------------------------------------------------------------------------------

constexpr std::uint64_t kFew = 60;  // items before the write: some leaves, each with a log

struct SingleWrite {
  const char* name;
  void (*write)(Recorder&, const std::string& value);
  Refused without_memory = Refused::sometimes;

  friend void PrintTo(const SingleWrite& single, std::ostream* out) { *out << single.name; }
};

// Of the keys that are there, number 5 has its value out of line and number 6 within its leaf.
const SingleWrite kSingleWrites[] = {
    {"PutsANewKey", [](Recorder& r, const std::string& v) { r.put(scattered(kFew), v); }},
    {"PutsOverAStoredValue", [](Recorder& r, const std::string& v) { r.put(scattered(5), v); }},
    {"PutsOverAnInlineValue", [](Recorder& r, const std::string& v) { r.put(scattered(6), v); }},
    {"InsertsANewKey", [](Recorder& r, const std::string& v) { r.insert(scattered(kFew), v); }},
    {"InsertsWhatIsThere", [](Recorder& r, const std::string& v) { r.insert(scattered(5), v); }},
    {"UpdatesAStoredValue", [](Recorder& r, const std::string& v) { r.update(scattered(5), v); }},
    {"UpdatesWhatIsAbsent",
     [](Recorder& r, const std::string& v) { r.update(scattered(kFew), v); }},
    {"ErasesAStoredValue", [](Recorder& r, const std::string&) { r.erase(scattered(5)); },
     Refused::never},
    {"ErasesAnInlineValue", [](Recorder& r, const std::string&) { r.erase(scattered(6)); },
     Refused::never},
    {"ErasesWhatIsAbsent", [](Recorder& r, const std::string&) { r.erase(scattered(kFew)); },
     Refused::never},
    {"ModifiesAStoredValue", [](Recorder& r, const std::string& v) { r.modify(scattered(5), v); }},
    {"ModifiesWhatIsAbsent",
     [](Recorder& r, const std::string& v) { r.modify(scattered(kFew), v); }},
    {"ModifiesIntoNothing",
     [](Recorder& r, const std::string&) { r.modify(scattered(5), std::nullopt); }, Refused::never},
    {"WritesABatch",
     [](Recorder& r, const std::string& v) {
       WriteBatch batch;
       const std::string stored(33, 's');
       batch.put(scattered(5), stored).put(scattered(kFew), v).erase(scattered(6));
       batch.put(scattered(7), stored);
       r.write(batch.only_if_absent(scattered(kFew)).only_if_present(scattered(6)));
     }},
    {"WritesABatchWhoseConditionFails",
     [](Recorder& r, const std::string& v) {
       WriteBatch batch;
       batch.put(scattered(5), v).put(scattered(kFew), std::string(33, 's'));
       r.write(batch.only_if_present(scattered(5)).only_if_absent(scattered(6)));
     }},
};

class FaultsSingle : public ::testing::TestWithParam<SingleWrite> {};

// Values within the leaf, and in buffers of one, of many and of several extents.
TEST_P(FaultsSingle, OutOfMemoryAtEveryAcquisition) {
  for (const std::size_t bytes : {10u, 32u, 33u, 1000u, 100'000u, 3'000'000u}) {
    const auto write = [&](World& world, std::uint64_t i) {
      if (i < kFew) return put_scattered(world, i);
      GetParam().write(world.recorder(), std::string(bytes, 'w'));
    };
    const std::string name = GetParam().name + (" of " + std::to_string(bytes)) + " bytes";
    ASSERT_NO_FATAL_FAILURE(
        fail_everywhere({name, write, any, kFew, GetParam().without_memory, kOptions}));
  }
}

INSTANTIATE_TEST_SUITE_P(Writes, FaultsSingle, ::testing::ValuesIn(kSingleWrites),
                         [](const auto& course) { return std::string(course.param.name); });

// --- Changes of structure ------------------------------------------------------------------------

class FaultsStructure : public ::testing::TestWithParam<Course> {};

TEST_P(FaultsStructure, OutOfMemoryAtEveryAcquisition) { fail_everywhere(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Writes, FaultsStructure, ::testing::ValuesIn(structural_courses()),
                         [](const auto& course) { return course.param.name; });

// --- Maps ----------------------------------------------------------------------------------------

// A map is made wholly or not at all, too: with all that is put by for erases.
TEST(FaultsMaps, OutOfMemoryAtEveryAcquisition) {
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      SCOPED_TRACE(n);
      Store store = open_store();
      const Map first = *store.create_map("first");
      memory::BufferPool& pool = client::EmbeddedMap::of(first).core().store.pool;
      failure == Failure::once ? pool.fail_after(n) : pool.fail_from(n);
      auto map = store.create_map("map");
      failed = !pool.failure_pending();
      pool.fail_after(-1);
      EXPECT_TRUE(first.audit().empty());
      EXPECT_NE(map.has_value(), failed);
      if (!map) {
        EXPECT_EQ(map.error().code, Code::out_of_memory);
        EXPECT_EQ(*store.map_names(), std::vector<std::string>{"first"});
        map = store.create_map("map");
      }
      ASSERT_TRUE(map) << message(map.error());
      EXPECT_TRUE(map->put("key", "value"));
      EXPECT_TRUE(map->audit().empty());
    }
  }
}

// The table's first page names four thousand nodes.
TEST(FaultsStructureSlow, GrowsThePageTable) {
  fail_everywhere({"GrowsThePageTable", put_wide, more_table});
}

}  // namespace
}  // namespace espalier::test
