// SPDX-License-Identifier: Apache-2.0
// The ordered map against std::map: all operations, node sizes, log sizes and hostile key sets, on
// one thread. ESPALIER_SEED repeats a failure, ESPALIER_STEPS makes the walks longer.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/support/model_driver.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

// Node size and key set; log size and versions follow from the seed.
using ModelShape = std::tuple<std::uint32_t, KeyPattern>;

std::string shape_name(const ::testing::TestParamInfo<ModelShape>& info) {
  return std::to_string(std::get<0>(info.param)) + "_" + std::string(name(std::get<1>(info.param)));
}

class Model : public ::testing::TestWithParam<ModelShape> {
 protected:
  // Walks over one map and then empties it.
  static void walk(const MapOptions& map_options, const ModelOptions& options) {
    Store store = open_store();
    auto map = store.create_map("model", map_options);
    ASSERT_TRUE(map) << message(map.error());
    ModelDriver driver(*map, options);
    ASSERT_EQ(driver.run().value_or(""), "");
    ASSERT_EQ(driver.empty().value_or(""), "");
  }
};

constexpr std::uint32_t kNodeSizes[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
constexpr std::uint32_t kLogSizes[] = {0, 64, 128, 512, 2048};

// Few keys, in a tree of a handful of small nodes, with an audit after every step.
TEST_P(Model, FewKeysAuditedAfterEveryStep) {
  const auto [node_bytes, pattern] = GetParam();
  const std::uint64_t seed =
      seed_from_environment(node_bytes * 100 + static_cast<std::uint64_t>(pattern));
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  ModelOptions options;
  options.pattern = pattern;
  options.keys = 40;
  options.steps = steps_or(scaled(1200));
  options.seed = random();
  const bool versions = !random.one_in(4);
  const MapOptions map_options{node_bytes, random.pick(kLogSizes), versions};
  walk(map_options, options);
}

// As many keys as make some dozens of leaves; fewer audits.
TEST_P(Model, ManyKeys) {
  const auto [node_bytes, pattern] = GetParam();
  const std::uint64_t seed =
      seed_from_environment(node_bytes * 200 + static_cast<std::uint64_t>(pattern));
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  ModelOptions options;
  options.pattern = pattern;
  options.keys = node_bytes < 8192 ? 600 : 3000;
  options.steps = steps_or(scaled(3000));
  options.steps_per_phase = 900;
  options.audit_every = 100;
  options.seed = random();
  const MapOptions map_options{node_bytes, random.pick(kLogSizes), !random.one_in(4)};
  walk(map_options, options);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Model,
                         ::testing::Combine(::testing::ValuesIn(kNodeSizes),
                                            ::testing::ValuesIn(kKeyPatterns)),
                         shape_name);

TEST(ModelValues, HundredKilobytes) {
  const std::uint64_t seed = seed_from_environment(31);
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store();
  auto map = store.create_map("model");
  ASSERT_TRUE(map);
  ModelOptions options;
  options.keys = 100;
  options.steps = steps_or(scaled(1000));
  options.large_value_bytes = 100'000;
  options.audit_every = 50;
  options.seed = seed;
  ModelDriver driver(*map, options);
  EXPECT_EQ(driver.run().value_or(""), "");
  EXPECT_EQ(driver.empty().value_or(""), "");
  EXPECT_EQ(map->stats()->value_bytes, 0u);
}

TEST(ModelValues, SixteenMebibytes) {
  const std::uint64_t seed = seed_from_environment(32);
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store();
  auto map = store.create_map("model", {.node_bytes = 512});
  ASSERT_TRUE(map);
  const std::string largest(std::size_t{16} << 20, 'x');
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(map->put(key, largest));
  const auto found = map->get("b");
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->value == largest);
  const auto too_long = map->put("b", largest + "x");
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, Code::value_too_long);
  // Values of every length around powers of two, where size classes end.
  for (std::size_t bytes = 256; bytes <= largest.size(); bytes *= 4) {
    for (const std::size_t length : {bytes - 1, bytes, bytes + 1}) {
      if (length > largest.size()) continue;
      const std::string value(length, static_cast<char>('a' + length % 26));
      ASSERT_TRUE(map->put("b", value));
      const auto read = map->get("b");
      ASSERT_TRUE(read && *read);
      ASSERT_TRUE((*read)->value == value) << length;
    }
  }
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(map->erase(key));
  EXPECT_TRUE(map->audit().empty());
  EXPECT_EQ(map->stats()->value_bytes, 0u);
}

TEST(ModelArguments, RefusesWhatItDocuments) {
  Store store = open_store();
  for (const std::uint32_t node_bytes : kNodeSizes) {
    SCOPED_TRACE(node_bytes);
    auto map = store.create_map(std::to_string(node_bytes), {.node_bytes = node_bytes});
    ASSERT_TRUE(map);
    const std::string longest(map->max_key_bytes(), 'k');
    const std::string too_long = longest + "k";
    const auto code = [](const auto& result) {
      return result ? Code::invalid : result.error().code;
    };
    ASSERT_TRUE(map->put(longest, "value"));
    EXPECT_EQ(code(map->put(too_long, "value")), Code::key_too_long);
    EXPECT_EQ(code(map->put("", "value")), Code::key_too_long);
    EXPECT_EQ(code(map->insert(too_long, "value")), Code::key_too_long);
    EXPECT_EQ(code(map->update("", "value")), Code::key_too_long);
    EXPECT_EQ(code(map->erase(too_long)), Code::key_too_long);
    EXPECT_EQ(code(map->get(too_long)), Code::key_too_long);
    EXPECT_EQ(code(map->get("")), Code::key_too_long);
    EXPECT_EQ(code(map->floor(too_long)), Code::key_too_long);
    EXPECT_EQ(code(map->count(too_long, "")), Code::key_too_long);
    EXPECT_EQ(code(map->count("", too_long)), Code::key_too_long);
    EXPECT_EQ(code(map->write(WriteBatch{})), Code::invalid_argument);
    WriteBatch batch;
    batch.put("a", "1").put(too_long, "2");
    EXPECT_EQ(code(map->write(batch)), Code::key_too_long);
    const auto count = map->count("", "");
    ASSERT_TRUE(count);
    EXPECT_EQ(*count, 1u);
    EXPECT_TRUE(map->audit().empty());
  }
}

TEST(ModelEstimate, LiesNearTheCount) {
  const std::uint64_t seed = seed_from_environment(33);
  SCOPED_TRACE(seed_text(seed));
  Store store = open_store();
  auto map = store.create_map("model", {.node_bytes = 1024});
  ASSERT_TRUE(map);
  Random random(seed);
  const std::vector<std::string> keys = make_keys(KeyPattern::random_bytes, 20'000, 16, seed);
  for (const std::string& key : keys) ASSERT_TRUE(map->put(key, "value"));
  for (int i = 0; i < 50; ++i) {
    std::string low = random.pick(keys);
    std::string high = random.pick(keys);
    if (high < low) std::swap(low, high);
    const auto exact = map->count(low, high);
    const auto estimate = map->count_estimate(low, high);
    ASSERT_TRUE(exact && estimate);
    EXPECT_LE(*estimate, *exact * 3 / 2 + 500);
    EXPECT_GE(*estimate + 500, *exact * 2 / 3);
  }
}

}  // namespace
}  // namespace espalier::test
