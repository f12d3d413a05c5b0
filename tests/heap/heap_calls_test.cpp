// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of a call of the C API: the call either succeeds, or returns
// ESPALIER_OUT_OF_MEMORY and has done nothing; nothing leaks, and later calls work. On a store in
// this process, and on a node, whose own threads have memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "capi/c_handles.hpp"
#include "espalier/espalier.h"
#include "node/node.hpp"
#include "tests/heap/failing_heap.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {
namespace {

using HeapFailure = FailingHeap::Failure;

espalier_bytes bytes(std::string_view text) { return {text.data(), text.size()}; }

constexpr int kItems = 200;
std::string key_of(int i) { return "key " + std::to_string(1000 + i); }
std::string value_of_key(int i) { return std::string(i % 7 == 0 ? 5000 : 20, 'v'); }

/// Handles of one store with a map in it, and what a call has made.
struct CallWorld {
  espalier_store* store = nullptr;
  espalier_map* map = nullptr;
  espalier_item* item = nullptr;
  espalier_batch* batch = nullptr;
  espalier_snapshot* snapshot = nullptr;
  espalier_pipeline* pipeline = nullptr;
  // Made by calls under test, null before.
  espalier_store* made_store = nullptr;
  espalier_map* made_map = nullptr;
  espalier_item* made_item = nullptr;
  espalier_sequencer* made_sequencer = nullptr;
  espalier_batch* made_batch = nullptr;
  espalier_snapshot* made_snapshot = nullptr;
  espalier_pipeline* made_pipeline = nullptr;
  std::string address;
  std::uint64_t count = 0;
  std::uint64_t completions = 0;
  std::uint64_t refusals = 0;
};

std::int32_t count_items(void* context, const espalier_entry*, std::size_t count) {
  static_cast<CallWorld*>(context)->count += count;
  return 0;
}
std::int32_t count_name(void* context, espalier_bytes) {
  ++static_cast<CallWorld*>(context)->count;
  return 0;
}
void count_done(void* context, const espalier_completion* completion) {
  auto& world = *static_cast<CallWorld*>(context);
  ++world.completions;
  if (completion->code == ESPALIER_OUT_OF_MEMORY) ++world.refusals;
}

struct HeapCall {
  std::string name;
  std::function<espalier_code(CallWorld&)> call;
  std::function<void(CallWorld&)> undo = [](CallWorld&) {};

  friend void PrintTo(const HeapCall& each, std::ostream* out) { *out << each.name; }
};

espalier_code scan(CallWorld& world, std::uint32_t reverse, std::uint64_t limit) {
  espalier_scan_options options = ESPALIER_SCAN_OPTIONS_INIT;
  options.reverse = reverse;
  options.limit = limit;
  world.count = 0;
  const espalier_code code =
      espalier_map_scan(world.map, bytes(""), bytes(""), &options, count_items, &world, nullptr);
  const std::uint64_t all = limit == 0 ? kItems : limit;
  if (code == ESPALIER_OK) {
    EXPECT_EQ(world.count, all);
  }
  return code;
}

espalier_code get(CallWorld& world, int i) {
  std::uint32_t found = 0;
  const std::string key = key_of(i);
  const espalier_code code = espalier_map_get(world.map, bytes(key), world.item, &found);
  if (code == ESPALIER_OK) {
    EXPECT_EQ(espalier_item_value(world.item).size, i % 7 == 0 ? 5000u : 20u);
  }
  return code;
}

// Made before the heap fails.
const std::vector<espalier_request>& requests() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 50; ++i) made.push_back(key_of(i));
    return made;
  }();
  static const std::vector<espalier_request> all = [] {
    std::vector<espalier_request> made;
    for (int i = 0; i < 50; ++i) {
      const std::uint32_t op = i % 10 == 0  ? ESPALIER_OP_SCAN_REVERSE
                               : i % 2 == 0 ? ESPALIER_OP_PUT
                                            : ESPALIER_OP_GET;
      espalier_request request{};
      request.op = op;
      request.limit = 10;
      request.tag = static_cast<std::uint64_t>(i);
      if (op != ESPALIER_OP_SCAN_REVERSE) request.key = bytes(keys[static_cast<std::size_t>(i)]);
      if (op == ESPALIER_OP_PUT) request.value = bytes("new value, always the same");
      made.push_back(request);
    }
    return made;
  }();
  return all;
}

espalier_code run_pipeline(CallWorld& world) {
  const std::vector<espalier_request>& all = requests();
  world.completions = world.refusals = 0;
  const espalier_code code = espalier_pipeline_run(world.pipeline, all.data(), all.size());
  EXPECT_EQ(world.completions, code == ESPALIER_OK ? all.size() : 0u);
  return code == ESPALIER_OK && world.refusals != 0 ? ESPALIER_OUT_OF_MEMORY : code;
}

std::vector<HeapCall> calls_on_maps() {
  return {
      {"Gets", [](CallWorld& w) { return get(w, 5); }},
      {"GetsAStoredValue", [](CallWorld& w) { return get(w, 7); }},
      {"FindsTheFloor",
       [](CallWorld& w) {
         std::uint32_t found = 0;
         return espalier_map_floor(w.map, bytes("key 1007 and more"), w.item, &found);
       }},
      {"Scans", [](CallWorld& w) { return scan(w, 0, 0); }},
      {"ScansFew", [](CallWorld& w) { return scan(w, 0, 3); }},
      {"ScansBackwards", [](CallWorld& w) { return scan(w, 1, 0); }},
      {"Counts",
       [](CallWorld& w) { return espalier_map_count(w.map, bytes(""), bytes(""), &w.count); }},
      {"Estimates",
       [](CallWorld& w) {
         return espalier_map_count_estimate(w.map, bytes(""), bytes("l"), &w.count);
       }},
      {"TellsNumbers",
       [](CallWorld& w) {
         espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
         return espalier_map_get_stats(w.map, &stats);
       }},
      {"Puts",
       [](CallWorld& w) {
         const std::string key = key_of(5);
         return espalier_map_put(w.map, bytes(key), bytes("a new value of 20 by"), nullptr);
       }},
      {"Compares",
       [](CallWorld& w) {
         const espalier_bytes value = bytes("something");
         const espalier_code code =
             espalier_map_compare_and_set(w.map, bytes("other"), nullptr, &value, nullptr);
         return code;
       },
       [](CallWorld& w) { espalier_map_erase(w.map, bytes("other"), nullptr); }},
      {"Adds", [](CallWorld& w) { return espalier_map_add(w.map, bytes("counter"), 1, nullptr); },
       [](CallWorld& w) { espalier_map_erase(w.map, bytes("counter"), nullptr); }},
      {"WritesABatch", [](CallWorld& w) { return espalier_map_write(w.map, w.batch, nullptr); }},
  };
}

std::vector<HeapCall> calls_that_make() {
  return {
      {"MakesAnItem", [](CallWorld& w) { return espalier_item_create(&w.made_item); },
       [](CallWorld& w) { espalier_item_destroy(std::exchange(w.made_item, nullptr)); }},
      {"MakesABatch",
       [](CallWorld& w) {
         if (w.made_batch == nullptr) {
           const espalier_code code = espalier_batch_create(&w.made_batch);
           if (code != ESPALIER_OK) return code;
         }
         const std::string_view key = "a key that is longer than what a string has room for";
         return espalier_batch_put(w.made_batch, bytes(key), bytes(key));
       },
       [](CallWorld& w) { espalier_batch_destroy(std::exchange(w.made_batch, nullptr)); }},
      {"OpensASnapshot",
       [](CallWorld& w) { return espalier_snapshot_open(w.map, &w.made_snapshot); },
       [](CallWorld& w) { espalier_snapshot_close(std::exchange(w.made_snapshot, nullptr)); }},
      {"ScansASnapshot",
       [](CallWorld& w) {
         w.count = 0;
         return espalier_snapshot_scan(w.snapshot, bytes(""), bytes(""), nullptr, count_items, &w,
                                       nullptr);
       }},
      {"GetsFromASnapshot",
       [](CallWorld& w) {
         std::uint32_t found = 0;
         return espalier_snapshot_get(w.snapshot, bytes("key 1007"), w.item, &found);
       }},
      {"OpensAPipeline",
       [](CallWorld& w) {
         espalier_pipeline_options options = ESPALIER_PIPELINE_OPTIONS_INIT;
         options.done = count_done;
         options.context = &w;
         return espalier_pipeline_open(w.map, &options, &w.made_pipeline);
       },
       [](CallWorld& w) { espalier_pipeline_close(std::exchange(w.made_pipeline, nullptr)); }},
      {"RunsAPipeline", run_pipeline},
      {"MakesAMap",
       [](CallWorld& w) {
         return espalier_map_create(w.store, bytes("made"), nullptr, &w.made_map);
       },
       [](CallWorld& w) {
         espalier_map_close(std::exchange(w.made_map, nullptr));
         EXPECT_EQ(espalier_map_drop(w.store, bytes("made")), ESPALIER_OK);
       }},
      {"OpensAMap",
       [](CallWorld& w) { return espalier_map_open(w.store, bytes("map"), &w.made_map); },
       [](CallWorld& w) { espalier_map_close(std::exchange(w.made_map, nullptr)); }},
      {"ListsMaps", [](CallWorld& w) { return espalier_map_list(w.store, count_name, &w); }},
      {"TakesANumber",
       [](CallWorld& w) {
         return espalier_sequence(w.store, bytes("a sequencer with a long name"), 1, &w.count);
       }},
      {"OpensAStore",
       [](CallWorld& w) {
         espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
         options.memory_bytes_max = std::uint64_t{64} << 20;
         options.huge_pages = 0;
         return espalier_store_open(w.address.c_str(), &options, &w.made_store);
       },
       [](CallWorld& w) {
         EXPECT_EQ(espalier_store_close(std::exchange(w.made_store, nullptr)), 0);
       }},
  };
}

HeapCall makes_a_sequencer() {
  return {"MakesASequencer",
          [](CallWorld& w) {
            return espalier_sequencer_create(w.store, bytes("a sequencer with a long name"), 0,
                                             &w.made_sequencer);
          },
          [](CallWorld& w) {
            espalier_sequencer_close(std::exchange(w.made_sequencer, nullptr));
            EXPECT_EQ(espalier_sequencer_drop(w.store, bytes("a sequencer with a long name")),
                      ESPALIER_OK);
          }};
}

constexpr const char* kOldSequencer = "a sequencer that was there before";

// Whatever fails, the object stays (expect_all_well).
HeapCall makes_one_that_is_there() {
  return {"MakesASequencerThatIsThere", [](CallWorld& w) {
            const espalier_code code =
                espalier_sequencer_create(w.store, bytes(kOldSequencer), 0, &w.made_sequencer);
            EXPECT_NE(code, ESPALIER_OK);
            return code == ESPALIER_ALREADY_EXISTS ? ESPALIER_OK : code;
          }};
}

std::vector<HeapCall> heap_calls() {
  std::vector<HeapCall> all = calls_on_maps();
  for (HeapCall& call : calls_that_make()) all.push_back(std::move(call));
  all.push_back(makes_a_sequencer());
  all.push_back(makes_one_that_is_there());
  return all;
}

/// The place of a store: in this process, or a node's.
enum class Where : std::uint8_t { embedded, node };

class HeapCalls : public ::testing::TestWithParam<std::tuple<Where, HeapCall>> {
 protected:
  void SetUp() override {
    world_.address = "embedded";
    if (std::get<Where>(GetParam()) == Where::node) {
      auto node = node::Node::start(config_, {});
      ASSERT_TRUE(node) << message(node.error());
      node_ = std::move(*node);
      world_.address = "unix:" + config_.node.socket;
    }
    good(open_store());
    espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
    options.node_bytes = 1024;
    options.log_bytes = 128;
    good(espalier_map_create(world_.store, bytes("map"), &options, &world_.map));
    for (int i = 0; i < kItems; ++i) {
      const std::string key = key_of(i);
      const std::string value = value_of_key(i);
      good(espalier_map_put(world_.map, bytes(key), bytes(value), nullptr));
    }
    good(espalier_sequencer_create(world_.store, bytes(kOldSequencer), 0, &old_sequencer_));
    good(espalier_item_create(&world_.item));
    good(espalier_batch_create(&world_.batch));
    for (int i = 0; i < 40; i += 3) {
      const std::string key = key_of(i);
      const std::string value = value_of_key(i);
      good(espalier_batch_put(world_.batch, bytes(key), bytes(value)));
    }
    good(espalier_snapshot_open(world_.map, &world_.snapshot));
    espalier_pipeline_options pipeline = ESPALIER_PIPELINE_OPTIONS_INIT;
    pipeline.done = count_done;
    pipeline.context = &world_;
    pipeline.in_flight = 8;
    ASSERT_EQ(requests().size(), 50u);
    good(espalier_pipeline_open(world_.map, &pipeline, &world_.pipeline));
  }
  void TearDown() override {
    good(espalier_pipeline_close(world_.pipeline));
    espalier_snapshot_close(world_.snapshot);
    espalier_batch_destroy(world_.batch);
    espalier_item_destroy(world_.item);
    espalier_sequencer_close(old_sequencer_);
    espalier_map_close(world_.map);
    good(espalier_store_close(world_.store));
    node_.reset();
  }
  espalier_code open_store() {
    espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
    options.memory_bytes_max = std::uint64_t{256} << 20;
    options.huge_pages = 0;
    return espalier_store_open(world_.address.c_str(), &options, &world_.store);
  }
  static void good(espalier_code code) { ASSERT_EQ(code, ESPALIER_OK) << espalier_error_message(); }

  void expect_all_well() {
    std::uint64_t count = 0;
    good(espalier_map_count(world_.map, bytes("key"), bytes("kez"), &count));
    EXPECT_EQ(count, static_cast<std::uint64_t>(kItems));
    espalier_number_range range{};
    good(espalier_sequencer_take(old_sequencer_, 1, &range));
    EXPECT_EQ(range.first, taken_++);
    if (node_) return;
    const std::vector<std::string> wrong = world_.map->map.audit();
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_);
  std::unique_ptr<node::Node> node_;
  espalier_sequencer* old_sequencer_ = nullptr;
  std::uint64_t taken_ = 0;  // of its numbers
  CallWorld world_;
};

TEST_P(HeapCalls, NoMemoryAtEveryAllocation) {
  const HeapCall& call = std::get<HeapCall>(GetParam());
  constexpr std::int64_t kAllocationsMax = 3000;
  for (const HeapFailure failure : {HeapFailure::once, HeapFailure::for_good}) {
    for (const bool other_thread : {false, true}) {
      bool failed = true;
      std::int64_t n = 0;
      for (; failed && n < kAllocationsMax; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n) +
                     (failure == HeapFailure::once ? " fails" : " and all others") +
                     (other_thread ? ", on a new thread" : ""));
        espalier_code code = ESPALIER_OK;
        const auto work = [&] {
          FailingHeap heap(n, failure);
          code = call.call(world_);
          heap.stop();
          failed = heap.failed();
        };
        if (other_thread) {
          std::thread(work).join();
        } else {
          work();
        }
        if (code == ESPALIER_OK) {
          call.undo(world_);
        } else {
          EXPECT_EQ(code, ESPALIER_OUT_OF_MEMORY) << espalier_error_message();
          EXPECT_TRUE(failed);
        }
        expect_all_well();
        ASSERT_FALSE(HasFailure());
      }
      EXPECT_LT(n, kAllocationsMax);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, HeapCalls,
                         ::testing::Combine(::testing::Values(Where::embedded, Where::node),
                                            ::testing::ValuesIn(heap_calls())),
                         [](const auto& call) {
                           const bool node = std::get<0>(call.param) == Where::node;
                           return std::get<1>(call.param).name + (node ? "OnANode" : "");
                         });

}  // namespace
}  // namespace espalier::test
