// SPDX-License-Identifier: Apache-2.0
// Hash maps of this process, of a node, and of a node behind a device, through one handle: every
// call with the same answers and errors, checked against a model.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "channel/objects.hpp"
#include "kinds/hash/calls.hpp"
#include "tests/hash_maps/hash_map_fixture.hpp"
#include "tests/support/seed.hpp"
#include "wire/samples.hpp"

namespace espalier::test {
namespace {

constexpr std::uint32_t kHash = 4;  // ObjectKind::hash, as errors have it

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}
template <class T>
Code code_of(const Result<T>& result) {
  return error_of(result).code;
}

std::optional<std::string> value_of(const HashMap& map, std::string_view key) {
  const auto found = map.get(key);
  EXPECT_TRUE(found) << message(found.error());
  if (!found || !*found) return std::nullopt;
  return (*found)->value;
}

TEST_P(HashMapOverEachWay, DoesWhatItsCallsSay) {
  for (const bool versions : {true, false}) {
    const std::string name = versions ? "with" : "without";
    auto map = store_->create_hash_map(name, {.partitions = 4, .versions = versions});
    ASSERT_TRUE(map) << message(map.error());
    EXPECT_EQ(map->name(), name);
    EXPECT_EQ(map->options(), (HashMapOptions{.partitions = 4, .versions = versions}));
    EXPECT_EQ(value_of(*map, "a"), std::nullopt);
    EXPECT_FALSE(map->update("a", "1")->applied);
    EXPECT_TRUE(map->insert("a", "1")->applied);
    EXPECT_FALSE(map->insert("a", "2")->applied);
    EXPECT_EQ(value_of(*map, "a"), "1");
    const auto put = map->put("a", "3");
    ASSERT_TRUE(put);
    EXPECT_TRUE(put->applied && put->existed);
    EXPECT_EQ(put->version != 0, versions);
    const auto found = map->get("a");
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->value, "3");
    EXPECT_EQ((*found)->version, put->version);
    std::string text = "kept";
    EXPECT_EQ(map->get("b", text), false);
    EXPECT_EQ(text, "kept");
    EXPECT_EQ(map->get("a", text), true);
    EXPECT_EQ(text, "3");
    EXPECT_TRUE(map->erase("a")->applied);
    EXPECT_FALSE(map->erase("a")->applied);
    EXPECT_EQ(value_of(*map, "a"), std::nullopt);
    EXPECT_TRUE(map->put("empty", "")->applied);
    EXPECT_EQ(value_of(*map, "empty"), "");
    EXPECT_EQ(map->add("n", 5), 5u);
    EXPECT_EQ(map->add("n", ~std::uint64_t{0}), 4u);
    EXPECT_EQ(error_of(map->add("empty", 1)), (Error{Code::invalid_argument, 0, 0}));
    EXPECT_EQ(audit(name), std::vector<std::string>{});
  }
}

TEST_P(HashMapOverEachWay, ComparesAndModifies) {
  for (const bool versions : {true, false}) {
    const std::string name = versions ? "with" : "without";
    auto map = store_->create_hash_map(name, {.partitions = 4, .versions = versions});
    ASSERT_TRUE(map);
    EXPECT_TRUE(map->compare_and_set("k", std::nullopt, "1"));
    EXPECT_EQ(code_of(map->compare_and_set("k", std::nullopt, "2")), Code::condition_failed);
    EXPECT_EQ(code_of(map->compare_and_set("k", "0", "2")), Code::condition_failed);
    EXPECT_TRUE(map->compare_and_set("k", "1", "2"));
    EXPECT_EQ(code_of(map->compare_and_set("k", "2x", "3")), Code::condition_failed);
    EXPECT_TRUE(map->compare_and_set("k", "2", std::nullopt));
    EXPECT_EQ(value_of(*map, "k"), std::nullopt);
    EXPECT_EQ(code_of(map->compare_and_set("k", "", std::nullopt)), Code::condition_failed);
    int calls = 0;
    const auto grow = [&](std::optional<std::string_view> now) {
      ++calls;
      if (calls == 2) {
        EXPECT_TRUE(map->put("k", "between"));
      }
      return std::optional<std::string>(std::string(now.value_or("none")) + "+");
    };
    EXPECT_FALSE(map->modify("k", grow)->existed);
    EXPECT_EQ(value_of(*map, "k"), "none+");
    EXPECT_TRUE(map->modify("k", grow)->existed);
    EXPECT_EQ(calls, 3) << "what came between is seen";
    EXPECT_EQ(value_of(*map, "k"), "between+");
    const auto none = [](std::optional<std::string_view>) { return std::optional<std::string>(); };
    EXPECT_TRUE(map->modify("k", none)->applied);
    EXPECT_EQ(value_of(*map, "k"), std::nullopt);
    EXPECT_EQ(audit(name), std::vector<std::string>{});
  }
}

TEST_P(HashMapOverEachWay, TakesKeysAndValuesOfAllLengths) {
  auto map = store_->create_hash_map("long", {.partitions = 2});
  ASSERT_TRUE(map);
  for (const std::size_t key_bytes : {1u, 16u, 1008u, 1009u, 65535u}) {
    for (const std::size_t value_bytes : {0u, 48u, 5000u, 300u << 10}) {
      const std::string key(key_bytes, 'k');
      const std::string value(value_bytes, 'v');
      ASSERT_TRUE(map->put(key, value)) << key_bytes << " " << value_bytes;
      ASSERT_EQ(value_of(*map, key), value) << key_bytes << " " << value_bytes;
    }
  }
  std::string longest(HashMap::kValueBytesMax, 'x');
  for (const std::size_t bytes : {std::size_t{1} << 20, longest.size()}) {
    if (bytes == longest.size() && !is_embedded() && way_ != "unix") continue;  // takes long
    const std::string value = longest.substr(0, bytes);
    ASSERT_TRUE(map->put("k", value));
    EXPECT_TRUE(value_of(*map, "k") == value) << bytes;
    EXPECT_TRUE(map->compare_and_set("k", value, "short")) << bytes;
    EXPECT_EQ(value_of(*map, "k"), "short");
  }
  EXPECT_EQ(code_of(map->put("k", longest + "y")), Code::value_too_long);
  EXPECT_EQ(code_of(map->compare_and_set("k", longest + "y", "z")), Code::condition_failed);
  const std::string too_long(HashMap::kKeyBytesMax + 1, 'k');
  for (const std::string& key : {std::string(), too_long}) {
    EXPECT_EQ(code_of(map->get(key)), Code::key_too_long);
    EXPECT_EQ(code_of(map->put(key, "v")), Code::key_too_long);
    EXPECT_EQ(code_of(map->erase(key)), Code::key_too_long);
    EXPECT_EQ(code_of(map->add(key, 1)), Code::key_too_long);
    EXPECT_EQ(code_of(map->compare_and_set(key, "", "")), Code::key_too_long);
  }
  EXPECT_EQ(audit("long"), std::vector<std::string>{});
}

TEST_P(HashMapOverEachWay, AreObjectsWithNamesOfAll) {
  ASSERT_TRUE(store_->create_map("m"));
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v"));
  EXPECT_EQ(error_of(store_->create_hash_map("h")), (Error{Code::already_exists, 0, kHash}));
  EXPECT_EQ(error_of(store_->create_map("h")), (Error{Code::already_exists, 0, kHash}));
  EXPECT_EQ(error_of(store_->create_hash_map("m")), (Error{Code::already_exists, 0, 1}));
  EXPECT_EQ(error_of(store_->open_hash_map("m")), (Error{Code::wrong_kind, 0, 1}));
  EXPECT_EQ(error_of(store_->open_map("h")), (Error{Code::wrong_kind, 0, kHash}));
  EXPECT_EQ(error_of(store_->drop_hash_map("m")), (Error{Code::wrong_kind, 0, 1}));
  EXPECT_EQ(error_of(store_->drop_map("h")), (Error{Code::wrong_kind, 0, kHash}));
  EXPECT_EQ(code_of(store_->open_hash_map("none")), Code::not_found);
  EXPECT_EQ(code_of(store_->create_hash_map("")), Code::invalid_argument);
  for (const std::uint32_t partitions : {0u, 3u, 1024u}) {
    EXPECT_EQ(error_of(store_->create_hash_map("x", {.partitions = partitions})),
              (Error{Code::invalid_argument, 0, partitions}));
  }
  const auto listed = store_->hash_maps();
  ASSERT_TRUE(listed) << message(listed.error());
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().name, "h");
  EXPECT_EQ(listed->front().options, HashMapOptions());
  EXPECT_EQ(listed->front().items, 1u);
  EXPECT_EQ(listed->front().memory_bytes, map->stats()->memory_bytes);
  EXPECT_EQ(map->stats()->items, 1u);
  EXPECT_EQ(map->stats()->write_version, 1u);
}

TEST_P(HashMapOverEachWay, AHandleOfADroppedOneFindsNone) {
  auto old = store_->create_hash_map("h");
  ASSERT_TRUE(old && old->put("k", "v"));
  ASSERT_TRUE(store_->drop_hash_map("h"));
  EXPECT_EQ(code_of(store_->drop_hash_map("h")), Code::not_found);
  auto young = store_->create_hash_map("h");
  ASSERT_TRUE(young);
  EXPECT_EQ(code_of(old->get("k")), Code::not_found);
  EXPECT_EQ(code_of(old->put("k", "w")), Code::not_found);
  EXPECT_EQ(code_of(old->erase("k")), Code::not_found);
  EXPECT_EQ(code_of(old->add("n", 1)), Code::not_found);
  EXPECT_EQ(code_of(old->compare_and_set("k", "v", "w")), Code::not_found);
  EXPECT_EQ(code_of(old->stats()), Code::not_found);
  EXPECT_EQ(value_of(*young, "k"), std::nullopt);
}

TEST_P(HashMapOverEachWay, StatisticsAreSamples) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v") && map->put("l", std::string(2000, 'v')));
  wire::SamplesWanted wanted{};
  wanted.objects_max = 10;
  const auto sampled = channel::samples(channel(), wanted, "h");
  ASSERT_TRUE(sampled) << message(sampled.error());
  ASSERT_EQ(sampled->objects.size(), 1u);
  EXPECT_EQ(sampled->objects.front().kind_name, "hash");
  std::map<std::string, std::uint64_t> values;
  for (const wire::Sample& sample : sampled->objects.front().samples) {
    values[sample.name] = sample.value;
  }
  EXPECT_EQ(values["items"], 2u);
  EXPECT_EQ(values["partitions"], 64u);
  EXPECT_EQ(values["write_version"], 2u);
  EXPECT_GE(values["long_bytes"], 2000u);
}

// The audit of an ordered map counts the memory of the whole store.
TEST(EmbeddedHashMaps, LieBesideOrderedMaps) {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = false;
  Store store = *Store::open(options);
  auto map = store.create_map("m");
  auto hashed = store.create_hash_map("h");
  ASSERT_TRUE(map && hashed);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(map->put(key, std::string(1000 + 10 * i, 'm')));
    ASSERT_TRUE(hashed->put(key, std::string(1000 + 10 * i, 'h')));
    ASSERT_TRUE(hashed->put("key1", std::string(2000, 'h')));
  }
  EXPECT_EQ(map->audit(), std::vector<std::string>{});
  EXPECT_EQ(hashed->audit(), std::vector<std::string>{});
  ASSERT_TRUE(store.drop_hash_map("h"));
  EXPECT_EQ(map->audit(), std::vector<std::string>{});
}

// A full store refuses what needs memory, and takes erases, which make room for others; what a hash
// map has in reserve comes back for an ordered map.
void share_a_full_store(Store& store) {
  auto hashed = store.create_hash_map("h", {.partitions = 4});
  auto map = store.create_map("m");
  ASSERT_TRUE(map && hashed);
  const std::string value(900, 'v');
  int stored = 0;
  while (hashed->put("key" + std::to_string(stored), value)) ++stored;
  ASSERT_GT(stored, 1000);
  EXPECT_EQ(code_of(hashed->put("one more", std::string(5000, 'v'))), Code::out_of_memory);
  for (int i = 0; i < stored; ++i) {
    ASSERT_TRUE(hashed->erase("key" + std::to_string(i))) << i << " of " << stored;
  }
  // Erased items lie in pages that are not written any more.
  int put = 0;
  while (put < stored && map->put("key" + std::to_string(put), value)) ++put;
  EXPECT_GT(put, stored / 2);
  EXPECT_EQ(hashed->stats()->items, 0u);
}

TEST(EmbeddedHashMaps, ShareAFullStore) {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{32} << 20;
  options.huge_pages = false;
  Store store = *Store::open(options);
  share_a_full_store(store);
  EXPECT_EQ(store.open_hash_map("h")->audit(), std::vector<std::string>{});
  EXPECT_EQ(store.open_map("m")->audit(), std::vector<std::string>{});
}

class HashMapsOfANode : public NodeFixture {};

TEST_F(HashMapsOfANode, ShareAFullStore) {
  config_.memory.limit = std::uint64_t{24} << 20;
  start();
  Store store = connect();
  share_a_full_store(store);
}

TEST(EmbeddedHashMaps, GiveTheirMemoryBack) {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = false;
  Store store = *Store::open(options);
  auto map = store.create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  const std::string value(900, 'v');
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(map->put("key" + std::to_string(i), value));
  const std::uint64_t full = *store.memory_bytes();
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(map->erase("key" + std::to_string(i)));
  store.trim();
  EXPECT_LT(*store.memory_bytes(), full / 2);
  EXPECT_EQ(map->audit(), std::vector<std::string>{});
}

TEST(EmbeddedHashMaps, HandlesOutliveTheirStore) {
  StoreOptions options;
  options.memory_bytes_max = std::uint64_t{64} << 20;
  options.huge_pages = false;
  std::optional<Store> store(*Store::open(options));
  auto map = store->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v"));
  auto dropped = store->create_hash_map("d");
  ASSERT_TRUE(dropped && store->drop_hash_map("d"));
  store.reset();
  EXPECT_TRUE(map->put("l", "w"));
  EXPECT_EQ(value_of(*map, "k"), "v");
  EXPECT_EQ(value_of(*map, "l"), "w");
}

/// One random call after the other on a hash map and a model of it.
class HashModel {
 public:
  HashModel(HashMap map, std::uint64_t seed) : map_(std::move(map)), random_(seed) {}

  void step() {
    const std::string key = "key" + std::to_string(random_.below(200));
    const std::string value = random_value();
    const auto found = model_.find(key);
    const bool existed = found != model_.end();
    switch (random_.below(9)) {
      case 0: follow(map_.insert(key, value), existed, !existed, key, value); break;
      case 1: follow(map_.update(key, value), existed, existed, key, value); break;
      case 2:
      case 3: follow(map_.erase(key), existed, existed, key, std::nullopt); break;
      case 4: compare_and_set(key, value); break;
      case 5: add(random_.below(9)); break;
      case 6:
      case 7: look_at(key); break;
      default: follow(map_.put(key, value), existed, true, key, value); break;
    }
  }
  void look_at_all() {
    for (int i = 0; i < 200; ++i) look_at("key" + std::to_string(i));
    const auto stats = map_.stats();
    ASSERT_TRUE(stats);
    ASSERT_EQ(stats->items, model_.size() + (sum_ ? 1 : 0));
  }

 private:
  [[nodiscard]] std::string random_value() {
    const std::size_t bytes = random_.below(20) == 0 ? random_.below(5000) : random_.below(60);
    return std::string(bytes, static_cast<char>('a' + random_.below(26)));
  }
  void follow(const Result<Written>& written, bool existed, bool applied, const std::string& key,
              const std::optional<std::string>& now) {
    ASSERT_TRUE(written) << message(written.error());
    ASSERT_EQ(written->existed, existed);
    ASSERT_EQ(written->applied, applied);
    if (!applied) return;
    ASSERT_GT(written->version, last_version_);
    last_version_ = written->version;
    if (now) {
      model_[key] = *now;
    } else {
      model_.erase(key);
    }
  }
  void compare_and_set(const std::string& key, const std::string& value) {
    const auto found = model_.find(key);
    const bool right = random_.below(2) == 0;
    std::optional<std::string> expected;
    if (found != model_.end()) expected = right ? found->second : found->second + "x";
    if (found == model_.end() && !right) expected = "x";
    const auto written = map_.compare_and_set(key, expected, value);
    if (!right) {
      ASSERT_EQ(code_of(written), Code::condition_failed);
    } else {
      follow(written, found != model_.end(), true, key, value);
    }
  }
  void add(std::uint64_t amount) {
    sum_ = sum_.value_or(0) + amount;
    ASSERT_EQ(map_.add("n", amount), *sum_);
  }
  void look_at(const std::string& key) {
    const auto found = model_.find(key);
    const auto seen = value_of(map_, key);
    ASSERT_EQ(seen, found == model_.end() ? std::nullopt : std::optional(found->second)) << key;
  }

  HashMap map_;
  base::Random random_;
  std::unordered_map<std::string, std::string> model_;
  std::uint64_t last_version_ = 0;
  std::optional<std::uint64_t> sum_;  // none: nothing was added
};

TEST_P(HashMapOverEachWay, AgreesWithAModel) {
  const std::uint64_t seed = seed_from_environment(20261129);
  SCOPED_TRACE(seed_text(seed));
  auto map = store_->create_hash_map("h", {.partitions = 2});
  ASSERT_TRUE(map);
  HashModel model(*map, seed);
  const int steps = is_embedded() ? 20'000 : is_device() ? 600 : 1'500;
  for (int i = 0; i < steps && !HasFatalFailure(); ++i) {
    model.step();
    if (i % 500 == 0) {
      model.look_at_all();
      ASSERT_EQ(audit("h"), std::vector<std::string>{});
    }
  }
  ASSERT_EQ(audit("h"), std::vector<std::string>{});
}

/// Requests that only messages can make.
class HashMapOfANode : public HashMapOverEachWay {};

// Calls of ordered maps do not find a hash map by its number, nor its own calls an ordered map.
TEST_P(HashMapOfANode, CallsOfOtherKindsDoNotFindIt) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v") && store_->create_map("m"));
  std::map<std::string, std::uint32_t> ids;
  const auto listed = channel::list(channel());
  ASSERT_TRUE(listed);
  for (const auto& object : *listed) ids[object.name] = object.id;
  for (const std::uint32_t id : {ids["m"], 0u, 12345u}) {
    EXPECT_EQ(error_of(channel::ask(channel(), hash_calls::Put{{id, "k", "w"}})),
              (Error{Code::not_found, 0, id}));
    EXPECT_EQ(code_of(channel::ask(channel(), hash_calls::Stats{id})), Code::not_found);
  }
  wire::CallMessage get;
  get.offload = wire::OffloadId::get;
  get.map = ids["h"];
  get.key = "k";
  const auto answer = channel().ask(get);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().error.code, Code::not_found);
}

// What cannot be is refused, and touches nothing.
TEST_P(HashMapOfANode, HostileRequestsAreRefused) {
  auto map = store_->create_hash_map("h");
  ASSERT_TRUE(map && map->put("k", "v"));
  const std::uint32_t id = channel::list(channel(), ObjectKind::hash)->front().id;
  hash_calls::CompareAndSet wrong;
  wrong.map = id;
  wrong.key = "k";
  wrong.comparison.kind = 5;
  EXPECT_EQ(code_of(channel::ask(channel(), wrong)), Code::invalid_argument);
  wrong.comparison.kind = 1;
  wrong.comparison.erase = 2;
  EXPECT_EQ(code_of(channel::ask(channel(), wrong)), Code::invalid_argument);
  wrong.comparison.erase = 1;
  wrong.value = "a value and an erase";
  EXPECT_EQ(code_of(channel::ask(channel(), wrong)), Code::invalid_argument);
  wrong.value = {};
  wrong.comparison.erase = 0;
  wrong.comparison.expected_bytes = 1000;  // which are missing
  EXPECT_EQ(code_of(channel::ask(channel(), wrong)), Code::invalid_argument);
  EXPECT_EQ(code_of(channel::ask(channel(), hash_calls::Erase{id, ""})), Code::invalid_argument);
  hash_calls::Create shape{"x", {64, 2, 0, 0, 0}};
  EXPECT_EQ(code_of(channel::ask(channel(), shape)), Code::invalid_argument);
  EXPECT_EQ(value_of(*map, "k"), "v");
  EXPECT_EQ(audit("h"), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Ways, HashMapOverEachWay,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device",
                                           "shm_one_sided"),
                         way_name);
INSTANTIATE_TEST_SUITE_P(Ways, HashMapOfANode, ::testing::Values("unix", "device"), way_name);

// Impossible answers of a hash map are refused.
TEST(HashMapCalls, ALyingNodeIsNotBelieved) {
  hash_calls::Opened opened;
  opened.id = 3;
  opened.shape = {64, 1, 0, 0, 0};
  const auto believed = [](const auto& reply) {
    const wire::ReplyMessage<std::remove_cvref_t<decltype(reply)>> message(reply);
    return wire::read_reply<std::remove_cvref_t<decltype(reply)>>(message.header(),
                                                                  message.payload())
        .has_value();
  };
  EXPECT_TRUE(believed(opened));
  opened.shape.partitions = 3;
  EXPECT_FALSE(believed(opened));
  opened.shape = {64, 2, 0, 0, 0};
  EXPECT_FALSE(believed(opened));
  wire::ResponseHeader none{};
  EXPECT_TRUE(wire::read_reply<hash_calls::ItemFound>(none, ""));
  EXPECT_FALSE(wire::read_reply<hash_calls::ItemFound>(none, "x"));
  none.flags = wire::kFound;
  EXPECT_TRUE(wire::read_reply<hash_calls::ItemFound>(none, "x"));
}

}  // namespace
}  // namespace espalier::test
