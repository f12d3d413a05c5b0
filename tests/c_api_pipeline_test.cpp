// SPDX-License-Identifier: Apache-2.0
// The C API: pipelines with requests in flight, and a node that disappears.
#include "tests/support/c_api_fixture.hpp"

#include <map>

namespace espalier::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Collects the callbacks of a pipeline.
struct Gathered {
  std::map<std::uint64_t, std::string> said;
  espalier_pipeline* pipeline = nullptr;
  std::vector<espalier_code> codes;

  static void done(void* context, const espalier_completion* completion) {
    auto& self = *static_cast<Gathered*>(context);
    std::string& words = self.said[completion->tag];
    if (completion->code != ESPALIER_OK) words += espalier_code_name(completion->code);
    if (completion->applied != 0) words += "applied ";
    if (completion->found != 0) words += "found ";
    words += text(completion->key) + text(completion->value);
    if (completion->items != 0) words += "of " + std::to_string(completion->items);
    // A handler must not use the pipeline.
    self.codes = {espalier_pipeline_submit(self.pipeline, nullptr, 0),
                  espalier_pipeline_poll(self.pipeline, nullptr),
                  espalier_pipeline_run(self.pipeline, nullptr, 0),
                  espalier_pipeline_close(self.pipeline)};
  }
  static std::int32_t items(void* context, std::uint64_t tag, const espalier_entry* entries,
                            std::size_t count) {
    std::string& words = static_cast<Gathered*>(context)->said[tag];
    for (std::size_t i = 0; i < count; ++i) {
      words += text(entries[i].key) + "=" + text(entries[i].value) + " ";
    }
    return 0;
  }
};

class CApiPipeline : public CApi {
 protected:
  espalier_pipeline_options options() {
    espalier_pipeline_options options = ESPALIER_PIPELINE_OPTIONS_INIT;
    options.done = Gathered::done;
    options.items = Gathered::items;
    options.context = &gathered_;
    return options;
  }
  void open(const espalier_pipeline_options& options) {
    good(espalier_pipeline_open(map_, &options, &gathered_.pipeline));
  }
  static espalier_request request(std::uint32_t op, std::uint64_t tag, std::string_view key,
                                  std::string_view value = {}, std::string_view high = {}) {
    return {.op = op, .limit = 0, .tag = tag, .key = b(key), .high = b(high), .value = b(value)};
  }
  Gathered gathered_;
};

INSTANTIATE_TEST_SUITE_P(At, CApiPipeline, ::testing::ValuesIn(kPlaces), way_name);

TEST_P(CApiPipeline, RunsRequestsOfEveryKind) {
  put("b", "2");
  put("e", "5");
  open(options());
  const std::string long_key(461, 'k');
  const espalier_request writes[] = {
      request(ESPALIER_OP_PUT, 1, "a", "1"), request(ESPALIER_OP_INSERT, 2, "b", "x"),
      request(ESPALIER_OP_UPDATE, 3, "c", "x"), request(ESPALIER_OP_ERASE, 4, "e"),
      request(ESPALIER_OP_PUT, 5, long_key)};
  good(espalier_pipeline_run(gathered_.pipeline, writes, std::size(writes)));
  EXPECT_EQ(gathered_.said[1], "applied ");
  EXPECT_EQ(gathered_.said[2], "found ");
  EXPECT_EQ(gathered_.said[3], "");
  EXPECT_EQ(gathered_.said[4], "applied found ");
  EXPECT_EQ(gathered_.said[5], "key_too_long");
  EXPECT_EQ(gathered_.codes, std::vector<espalier_code>(4, ESPALIER_INVALID_ARGUMENT));
  EXPECT_THAT(espalier_error_message(), HasSubstr("pipeline is used by its own callback"));
  const espalier_request reads[] = {request(ESPALIER_OP_GET, ~std::uint64_t{0}, "a"),
                                    request(ESPALIER_OP_GET, 7, "none"),
                                    request(ESPALIER_OP_FLOOR, 8, "z"),
                                    request(ESPALIER_OP_SCAN, 9, "", "", ""),
                                    request(ESPALIER_OP_SCAN_REVERSE, 10, "", "", ""),
                                    request(ESPALIER_OP_SCAN_FLOOR, 11, "ax", "", "b")};
  good(espalier_pipeline_submit(gathered_.pipeline, reads, std::size(reads)));
  for (std::size_t left = 1; left != 0;) good(espalier_pipeline_poll(gathered_.pipeline, &left));
  EXPECT_EQ(gathered_.said[~std::uint64_t{0}], "found 1");
  EXPECT_EQ(gathered_.said[7], "");
  EXPECT_THAT(gathered_.said[8], StartsWith("found b2"));
  EXPECT_EQ(gathered_.said[9], "a=1 b=2 of 2");
  EXPECT_EQ(gathered_.said[10], "b=2 a=1 of 2");
  EXPECT_EQ(gathered_.said[11], "a=1 b=2 of 2");
  bad(espalier_store_close(store_), ESPALIER_INVALID_ARGUMENT, "has open snapshots or pipelines");
  good(espalier_pipeline_close(gathered_.pipeline));
}

// Room of requests is used again, and what is left when a pipeline closes is still answered.
TEST_P(CApiPipeline, KeepsManySubmissionsInFlight) {
  espalier_pipeline_options options = this->options();
  options.in_flight = 4;
  options.items = nullptr;
  open(options);
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) keys.push_back("key" + std::to_string(i));
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    // The request itself is copied.
    const espalier_request put = request(ESPALIER_OP_PUT, i, keys[i], keys[i]);
    good(espalier_pipeline_submit(gathered_.pipeline, &put, 1));
    if (i % 7 == 0) good(espalier_pipeline_poll(gathered_.pipeline, nullptr));
  }
  good(espalier_pipeline_close(gathered_.pipeline));
  EXPECT_EQ(gathered_.said.size(), keys.size());
  for (const auto& [tag, words] : gathered_.said) ASSERT_EQ(words, "applied ") << tag;
  std::uint64_t count = 0;
  good(espalier_map_count(map_, b(""), b(""), &count));
  EXPECT_EQ(count, keys.size());
}

TEST_P(CApiPipeline, RefusesWhatIsNone) {
  espalier_pipeline_options wrong = options();
  espalier_pipeline* none = nullptr;
  wrong.in_flight = 257;
  bad(espalier_pipeline_open(map_, &wrong, &none), ESPALIER_INVALID_ARGUMENT, "257");
  wrong.in_flight = 0;
  bad(espalier_pipeline_open(map_, &wrong, &none), ESPALIER_INVALID_ARGUMENT, "allows");
  wrong = options();
  wrong.done = nullptr;
  null(espalier_pipeline_open(map_, &wrong, &none), "options.done");
  wrong.struct_bytes = 0;
  bad(espalier_pipeline_open(map_, &wrong, &none), ESPALIER_INVALID_ARGUMENT, "struct_bytes");
  null(espalier_pipeline_open(map_, nullptr, &none), "options");
  null(espalier_pipeline_open(nullptr, &wrong, &none), "map");
  wrong = options();
  null(espalier_pipeline_open(map_, &wrong, nullptr), "pipeline");
  null(espalier_pipeline_submit(nullptr, nullptr, 0), "pipeline");
  null(espalier_pipeline_poll(nullptr, nullptr), "pipeline");
  null(espalier_pipeline_run(nullptr, nullptr, 0), "pipeline");
  EXPECT_EQ(espalier_pipeline_close(nullptr), ESPALIER_OK);

  open(options());
  null(espalier_pipeline_submit(gathered_.pipeline, nullptr, 1), "requests");
  good(espalier_pipeline_submit(gathered_.pipeline, nullptr, 0));
  good(espalier_pipeline_run(gathered_.pipeline, nullptr, 0));
  espalier_request pair[] = {request(ESPALIER_OP_PUT, 1, "a", "1"), request(0, 2, "b")};
  for (const std::uint32_t op : {0u, 10u, 257u, ~0u}) {
    pair[1].op = op;
    bad(espalier_pipeline_run(gathered_.pipeline, pair, 2), ESPALIER_INVALID_ARGUMENT,
        "has an op that is none");
  }
  for (espalier_bytes espalier_request::*const field :
       {&espalier_request::key, &espalier_request::high, &espalier_request::value}) {
    pair[1] = request(ESPALIER_OP_SCAN, 2, "b");
    pair[1].*field = kLie;
    bad(espalier_pipeline_submit(gathered_.pipeline, pair, 2), ESPALIER_INVALID_ARGUMENT,
        "has bytes with a size but no data");
  }
  good(espalier_pipeline_close(gathered_.pipeline));
  EXPECT_EQ(get("a"), "nothing");  // of what was refused, nothing was done
}

// --- a node that goes ----------------------------------------------------------------------------

class CApiNode : public NodeFixture {};

TEST_F(CApiNode, ALostConnectionIsToldByEveryCall) {
  start();
  espalier_store* store = nullptr;
  espalier_map* map = nullptr;
  ASSERT_EQ(espalier_store_open(("unix:" + socket()).c_str(), nullptr, &store), ESPALIER_OK);
  ASSERT_EQ(espalier_map_open(store, b("default"), &map), ESPALIER_OK);
  espalier_snapshot* snapshot = nullptr;
  ASSERT_EQ(espalier_snapshot_open(map, &snapshot), ESPALIER_OK);
  Gathered gathered;
  espalier_pipeline_options options = ESPALIER_PIPELINE_OPTIONS_INIT;
  options.done = Gathered::done;
  options.context = &gathered;
  ASSERT_EQ(espalier_pipeline_open(map, &options, &gathered.pipeline), ESPALIER_OK);
  node_.reset();

  std::uint32_t found = 0;
  espalier_item* item = nullptr;
  ASSERT_EQ(espalier_item_create(&item), ESPALIER_OK);
  EXPECT_EQ(espalier_snapshot_get(snapshot, b("k"), item, &found), ESPALIER_CONNECTION_LOST);
  const espalier_request get{
      .op = ESPALIER_OP_GET, .limit = 0, .tag = 1, .key = b("k"), .high = {}, .value = {}};
  EXPECT_EQ(espalier_pipeline_run(gathered.pipeline, &get, 1), ESPALIER_OK);
  EXPECT_EQ(gathered.said[1], "connection_lost");
  // The node has stopped.
  espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
  const auto visit = [](void*, espalier_bytes) { return 0; };
  for (const espalier_code code :
       {espalier_map_get(map, b("k"), item, &found), espalier_map_get_stats(map, &stats),
        espalier_map_list(store, visit, nullptr), espalier_map_add(map, b("k"), 1, nullptr)}) {
    EXPECT_TRUE(code == ESPALIER_CONNECTION_LOST || code == ESPALIER_SYSTEM) << code;
  }
  start();  // and the next call finds another
  EXPECT_EQ(espalier_map_get(map, b("k"), item, &found), ESPALIER_OK) << espalier_error_message();
  espalier_item_destroy(item);
  espalier_snapshot_close(snapshot);
  EXPECT_EQ(espalier_pipeline_close(gathered.pipeline), ESPALIER_OK);
  espalier_map_close(map);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
}

}  // namespace
}  // namespace espalier::test
