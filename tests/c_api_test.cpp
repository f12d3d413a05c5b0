// SPDX-License-Identifier: Apache-2.0
// The C API: every function of espalier.h, on a store in this process and on a node.
#include "tests/support/c_api_fixture.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "chain/membership/testing/fake_etcd.hpp"

namespace espalier::test {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(At, CApi, ::testing::ValuesIn(kPlaces), way_name);

TEST(CApiVersion, IsThatOfTheProject) {
  std::ifstream in(std::filesystem::path(ESPALIER_SOURCE_DIR) / "CMakeLists.txt");
  const std::string project{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(project, HasSubstr(std::string("VERSION ") + espalier_version_text() + " "));
  EXPECT_EQ(espalier_version(), static_cast<std::uint32_t>(ESPALIER_VERSION_NUMBER));
}

TEST(CApiErrors, HaveTheNamesAndNumbersOfTheCppOnes) {
  for (int code = 1; code <= ESPALIER_NO_CHAIN; ++code) {
    EXPECT_EQ(espalier_code_name(code), name(static_cast<Code>(code)));
    EXPECT_NE(std::string(espalier_code_name(code)), "unknown");
  }
  EXPECT_STREQ(espalier_code_name(ESPALIER_OK), "ok");
  EXPECT_STREQ(espalier_code_name(ESPALIER_INTERNAL), "internal");
  for (const int code : {-1, ESPALIER_NO_CHAIN + 1, 999, 1001, 1 << 16, (1 << 16) + 1}) {
    EXPECT_STREQ(espalier_code_name(code), "unknown") << code;
  }
}

TEST(CApiErrors, AreKeptForEachThread) {
  ASSERT_EQ(espalier_map_drop(nullptr, b("x")), ESPALIER_INVALID_ARGUMENT);
  std::thread([] {
    EXPECT_EQ(espalier_error_code(), ESPALIER_OK);
    EXPECT_STREQ(espalier_error_message(), "no call of this thread has failed");
    EXPECT_EQ(espalier_store_open("nowhere", nullptr, nullptr), ESPALIER_INVALID_ARGUMENT);
  }).join();
  EXPECT_STREQ(espalier_error_message(), "espalier_map_drop: store is null");
}

TEST(CApiErrors, OfAddresses) {
  espalier_store* store = nullptr;
  EXPECT_EQ(espalier_store_open("nowhere", nullptr, &store), ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(espalier_error_message()),
            "espalier_store_open: " + Store::explain_address("nowhere"));
  EXPECT_EQ(espalier_store_open("unix:/no/such/socket", nullptr, &store), ESPALIER_SYSTEM);
  EXPECT_EQ(espalier_error_detail(), static_cast<std::uint32_t>(ENOENT));
  EXPECT_THAT(espalier_error_message(), HasSubstr("No such file"));
  EXPECT_EQ(store, nullptr);
  EXPECT_EQ(espalier_store_open(nullptr, nullptr, &store), ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(espalier_store_open("embedded", nullptr, nullptr), ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(espalier_store_close(nullptr), ESPALIER_OK);
}

TEST(CApiErrors, OfChainsInEtcd) {
  const chain::FakeEtcd etcd([](const chain::FakeEtcd::Request&) {
    return chain::FakeEtcd::Answer{chain::http_answer(200, chain::range_body(std::nullopt))};
  });
  espalier_store* store = nullptr;
  EXPECT_EQ(espalier_store_open("chain://etcd://nowhere/key", nullptr, &store),
            ESPALIER_INVALID_ARGUMENT);
  const std::string address = "chain://etcd://" + etcd.endpoint() + "/key";
  EXPECT_EQ(espalier_store_open(address.c_str(), nullptr, &store), ESPALIER_NO_CHAIN);
  EXPECT_EQ(espalier_error_detail(), 5u);
  EXPECT_THAT(espalier_error_message(), HasSubstr("There is no chain under this key"));
  EXPECT_EQ(store, nullptr);
}

TEST(CApiSecrets, AreReadOrMade) {
  espalier_secret* secret = nullptr;
  std::string bytes(32, 'x');
  EXPECT_EQ(espalier_secret_create(espalier_text("a"), {bytes.data(), 31}, &secret),
            ESPALIER_INVALID_ARGUMENT);
  EXPECT_THAT(espalier_error_message(), HasSubstr("bytes is not 32 bytes long"));
  EXPECT_EQ(espalier_secret_create(espalier_text("a"), {bytes.data(), 32}, &secret),
            ESPALIER_INVALID_ARGUMENT);
  EXPECT_THAT(espalier_error_message(), HasSubstr("espalier_secret_create: "));
  EXPECT_THAT(espalier_error_message(), HasSubstr("32 bytes that were drawn"));
  bytes[0] = 'y';
  EXPECT_EQ(espalier_secret_create(espalier_text("a b"), {bytes.data(), 32}, &secret),
            ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(espalier_secret_create(espalier_text("a"), {bytes.data(), 32}, nullptr),
            ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(secret, nullptr);
  ASSERT_EQ(espalier_secret_create(espalier_text("a"), {bytes.data(), 32}, &secret), ESPALIER_OK);
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.secret = secret;  // of no meaning here
  espalier_store* store = nullptr;
  EXPECT_EQ(espalier_store_open("embedded", &options, &store), ESPALIER_OK);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
  espalier_secret_destroy(secret);
  espalier_secret_destroy(nullptr);
  EXPECT_EQ(espalier_secret_read(nullptr, &secret), ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(espalier_secret_read("/no/such/file", &secret), ESPALIER_SYSTEM);
  EXPECT_THAT(espalier_error_message(), HasSubstr("cannot read the secret file /no/such/file"));
  EXPECT_EQ(espalier_error_detail(), static_cast<std::uint32_t>(ENOENT));
}

TEST(CApiOptions, KnowOlderAndNewerCallers) {
  struct Newer {
    espalier_store_options known;
    std::uint64_t unknown;
  };
  Newer newer{ESPALIER_STORE_OPTIONS_INIT, 0};
  newer.known.struct_bytes = sizeof newer;
  newer.known.memory_bytes_max = std::uint64_t{64} << 20;
  newer.known.huge_pages = 0;
  espalier_store* store = nullptr;
  ASSERT_EQ(espalier_store_open("embedded", &newer.known, &store), ESPALIER_OK);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
  newer.unknown = 1;
  EXPECT_EQ(espalier_store_open("embedded", &newer.known, &store), ESPALIER_UNSUPPORTED);
  EXPECT_THAT(espalier_error_message(), HasSubstr("options asks for what this version lacks"));

  // An older caller's struct ends before the limit, whatever the memory after it has.
  espalier_store_options older = newer.known;
  older.struct_bytes = offsetof(espalier_store_options, memory_bytes_max);
  older.participants_max = 2;
  older.memory_bytes_max = 1;
  older.access = 77;
  ASSERT_EQ(espalier_store_open("embedded", &older, &store), ESPALIER_OK)
      << espalier_error_message();
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);

  for (const std::uint32_t bytes : {0u, 3u, 4097u, ~0u}) {
    older.struct_bytes = bytes;
    EXPECT_EQ(espalier_store_open("embedded", &older, &store), ESPALIER_INVALID_ARGUMENT);
    EXPECT_THAT(espalier_error_message(), HasSubstr("struct_bytes"));
  }
  espalier_store_options wrong = ESPALIER_STORE_OPTIONS_INIT;
  wrong.huge_pages = 2;
  EXPECT_EQ(espalier_store_open("embedded", &wrong, &store), ESPALIER_INVALID_ARGUMENT);
  wrong = ESPALIER_STORE_OPTIONS_INIT;
  wrong.access = 4;
  EXPECT_EQ(espalier_store_open("embedded", &wrong, &store), ESPALIER_INVALID_ARGUMENT);
  EXPECT_THAT(espalier_error_message(), HasSubstr("options.access"));
  wrong = ESPALIER_STORE_OPTIONS_INIT;
  wrong.participants_max = 0;
  EXPECT_EQ(espalier_store_open("embedded", &wrong, &store), ESPALIER_INVALID_ARGUMENT);
}

TEST_P(CApi, MakesOpensListsAndDropsMaps) {
  espalier_map_options options = ESPALIER_MAP_OPTIONS_INIT;
  options.node_bytes = 1024;
  options.log_bytes = 128;
  options.versions = 0;
  espalier_map* small = nullptr;
  good(espalier_map_create(store_, b("small"), &options, &small));
  espalier_map_options read_back = ESPALIER_MAP_OPTIONS_INIT;
  good(espalier_map_get_options(small, &read_back));
  EXPECT_EQ(read_back.node_bytes, 1024u);
  EXPECT_EQ(read_back.log_bytes, 128u);
  EXPECT_EQ(read_back.versions, 0u);
  EXPECT_EQ(read_back.snapshot_bytes_max, std::uint64_t{256} << 20);
  read_back.struct_bytes = 8;  // an older caller
  read_back.log_bytes = 99;
  read_back.node_bytes = 0;
  good(espalier_map_get_options(small, &read_back));
  EXPECT_EQ(read_back.node_bytes, 1024u);
  EXPECT_EQ(read_back.log_bytes, 99u);
  std::uint32_t bytes = 0;
  good(espalier_map_key_bytes_max(small, &bytes));
  EXPECT_EQ(bytes, 64u);
  options.durability = 4;
  espalier_map* wrong = nullptr;
  EXPECT_EQ(espalier_map_create(store_, b("wrong"), &options, &wrong), ESPALIER_INVALID_ARGUMENT);
  EXPECT_THAT(espalier_error_message(), HasSubstr("options.durability"));
  options.durability = ESPALIER_DURABILITY_SYNC;  // of a store that keeps nothing
  EXPECT_EQ(espalier_map_create(store_, b("wrong"), &options, &wrong), ESPALIER_UNSUPPORTED);
  options.durability = ESPALIER_DURABILITY_OF_STORE;
  espalier_map* again = nullptr;
  good(espalier_map_open(store_, b("small"), &again));
  good(espalier_map_put(again, b("k"), b("v"), nullptr));
  espalier_map_close(again);

  std::vector<std::string> names;
  const auto gather = [](void* context, espalier_bytes name) {
    static_cast<std::vector<std::string>*>(context)->push_back(text(name));
    return 0;
  };
  good(espalier_map_list(store_, gather, &names));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"fruit", "small"}));
  int shown = 0;
  const auto one = [](void* context, espalier_bytes) { return ++*static_cast<int*>(context); };
  good(espalier_map_list(store_, one, &shown));
  EXPECT_EQ(shown, 1);

  espalier_snapshot* none = nullptr;
  bad(espalier_snapshot_open(small, &none), ESPALIER_UNSUPPORTED, "espalier_snapshot_open: ");
  good(espalier_map_drop(store_, b("small")));
  espalier_map_close(small);
  bad(espalier_map_open(store_, b("small"), &again), ESPALIER_NOT_FOUND, "espalier_map_open: ");
  bad(espalier_map_drop(store_, b("small")), ESPALIER_NOT_FOUND, "espalier_map_drop: ");
  bad(espalier_map_create(store_, b("fruit"), nullptr, &again), ESPALIER_ALREADY_EXISTS, "taken");
  bad(espalier_map_create(store_, b(""), nullptr, &again), ESPALIER_INVALID_ARGUMENT, "allows");
  options.node_bytes = 1000;
  bad(espalier_map_create(store_, b("x"), &options, &again), ESPALIER_INVALID_ARGUMENT, "allows");
  options.versions = 2;
  bad(espalier_map_create(store_, b("x"), &options, &again), ESPALIER_INVALID_ARGUMENT,
      "options.versions is neither 0 nor 1");
}

TEST_P(CApi, ANodeThatIsGoneIsAnErrorAndNoEmptyAnswer) {
  if (address_ == "embedded") return;
  node_.reset();
  std::uint32_t found = 0;
  static_cast<void>(
      espalier_map_get(map_, b("k"), item_, &found));  // detects that the connection is lost
  int shown = 0;
  const auto count = [](void* context, espalier_bytes) {
    ++*static_cast<int*>(context);
    return 0;
  };
  bad(espalier_map_list(store_, count, &shown), ESPALIER_SYSTEM, "espalier_map_list: ");
  EXPECT_EQ(shown, 0);
  espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
  stats.items = 42;
  bad(espalier_map_get_stats(map_, &stats), ESPALIER_SYSTEM, "espalier_map_get_stats: ");
  EXPECT_EQ(stats.items, 42u) << "it was written";
}

TEST_P(CApi, ReadsAndWritesSingleKeys) {
  espalier_written written{};
  good(espalier_map_put(map_, b("pear"), b("green"), &written));
  EXPECT_EQ(written.applied, 1u);
  EXPECT_EQ(written.existed, 0u);
  EXPECT_EQ(get("pear"), "green");
  EXPECT_EQ(espalier_item_version(item_), written.version);
  good(espalier_map_insert(map_, b("pear"), b("red"), &written));
  EXPECT_EQ(written.applied, 0u);
  EXPECT_EQ(written.existed, 1u);
  good(espalier_map_insert(map_, b("plum"), b("blue"), &written));
  EXPECT_EQ(written.applied, 1u);
  good(espalier_map_update(map_, b("plum"), b(""), &written));
  EXPECT_EQ(written.applied, 1u);
  good(espalier_map_update(map_, b("apple"), b("red"), &written));
  EXPECT_EQ(written.applied, 0u);
  EXPECT_EQ(get("plum"), "");
  EXPECT_EQ(get("apple"), "nothing");
  EXPECT_EQ(espalier_item_version(item_), 0u);
  std::uint32_t found = 0;
  good(espalier_map_floor(map_, b("pluk"), item_, &found));
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(text(espalier_item_key(item_)), "pear");
  EXPECT_EQ(text(espalier_item_value(item_)), "green");
  good(espalier_map_floor(map_, b("a"), item_, &found));
  EXPECT_EQ(found, 0u);
  EXPECT_EQ(espalier_item_key(item_).size, 0u);
  good(espalier_map_erase(map_, b("pear"), &written));
  EXPECT_EQ(written.applied, 1u);
  good(espalier_map_erase(map_, b("pear"), nullptr));
  EXPECT_EQ(get("pear"), "nothing");

  const std::string zeros("a\0b", 3);
  put(zeros, zeros);
  EXPECT_EQ(get(zeros), zeros);
  const std::string large(1 << 20, 'l');
  put("large", large);
  EXPECT_EQ(get("large"), large);
}

// The next request may use the data of an item.
TEST_P(CApi, FollowsAnItemFromKeyToKey) {
  const std::string second(100, 's');
  put("first", second);
  put(second, "third");
  std::uint32_t found = 0;
  good(espalier_map_get(map_, b("first"), item_, &found));
  good(espalier_map_get(map_, espalier_item_value(item_), item_, &found));
  EXPECT_EQ(text(espalier_item_value(item_)), "third");
  EXPECT_EQ(text(espalier_item_key(item_)), second);
  good(espalier_map_get(map_, espalier_item_key(item_), item_, &found));
  EXPECT_EQ(found, 1u);
  espalier_snapshot* snapshot = nullptr;
  good(espalier_snapshot_open(map_, &snapshot));
  good(espalier_map_get(map_, b("first"), item_, &found));
  good(espalier_snapshot_get(snapshot, espalier_item_value(item_), item_, &found));
  EXPECT_EQ(text(espalier_item_value(item_)), "third");
  espalier_snapshot_close(snapshot);
}

TEST_P(CApi, RefusesKeysAndValuesThatAreTooLong) {
  const std::string long_key(461, 'k');
  std::uint32_t found = 7;
  bad(espalier_map_get(map_, b(long_key), item_, &found), ESPALIER_KEY_TOO_LONG, "key");
  EXPECT_EQ(espalier_error_detail(), 460u);
  EXPECT_EQ(found, 7u);  // outputs are left alone
  bad(espalier_map_get(map_, b(""), item_, &found), ESPALIER_KEY_TOO_LONG, "empty");
  bad(espalier_map_floor(map_, b(long_key), item_, &found), ESPALIER_KEY_TOO_LONG, "key");
  bad(espalier_map_erase(map_, b(long_key), nullptr), ESPALIER_KEY_TOO_LONG, "key");
  bad(espalier_map_add(map_, b(long_key), 1, nullptr), ESPALIER_KEY_TOO_LONG, "key");
  const std::string long_value((16u << 20) + 1, 'v');
  const espalier_bytes value = b(long_value);
  bad(espalier_map_put(map_, b("k"), value, nullptr), ESPALIER_VALUE_TOO_LONG, "16 MiB");
  bad(espalier_map_insert(map_, b("k"), value, nullptr), ESPALIER_VALUE_TOO_LONG, "16 MiB");
  bad(espalier_map_compare_and_set(map_, b("k"), nullptr, &value, nullptr), ESPALIER_VALUE_TOO_LONG,
      "16 MiB");
  put("k", "v");
  const espalier_bytes other = b("other");
  bad(espalier_map_compare_and_set(map_, b("k"), &value, &other, nullptr),
      ESPALIER_CONDITION_FAILED, "condition");
  bad(espalier_map_update(map_, b("k"), value, nullptr), ESPALIER_VALUE_TOO_LONG, "16 MiB");
  std::uint64_t count = 0;
  bad(espalier_map_count(map_, b(long_key), b(""), &count), ESPALIER_KEY_TOO_LONG, "key");
}

TEST_P(CApi, ComparesAndSets) {
  const espalier_bytes one = b("1");
  const espalier_bytes two = b("2");
  espalier_written written{};
  good(espalier_map_compare_and_set(map_, b("n"), nullptr, &one, &written));
  EXPECT_EQ(written.applied, 1u);
  EXPECT_EQ(written.existed, 0u);
  bad(espalier_map_compare_and_set(map_, b("n"), nullptr, &two, &written),
      ESPALIER_CONDITION_FAILED, "condition");
  bad(espalier_map_compare_and_set(map_, b("n"), &two, &one, nullptr), ESPALIER_CONDITION_FAILED,
      "condition");
  EXPECT_EQ(get("n"), "1");
  good(espalier_map_compare_and_set(map_, b("n"), &one, &two, nullptr));
  EXPECT_EQ(get("n"), "2");
  good(espalier_map_compare_and_set(map_, b("n"), &two, nullptr, &written));
  EXPECT_EQ(get("n"), "nothing");
}

TEST_P(CApi, AddsAndCounts) {
  std::uint64_t sum = 0;
  good(espalier_map_add(map_, b("counter"), 5, &sum));
  EXPECT_EQ(sum, 5u);
  good(espalier_map_add(map_, b("counter"), 37, nullptr));
  EXPECT_EQ(get("counter"), std::string("\x2a\0\0\0\0\0\0\0", 8));
  good(espalier_map_add(map_, b("counter"), ~std::uint64_t{0}, &sum));
  EXPECT_EQ(sum, 41u);
  put("word", "hello");
  bad(espalier_map_add(map_, b("word"), 1, &sum), ESPALIER_INVALID_ARGUMENT, "detail 5");
  EXPECT_EQ(espalier_error_detail(), 5u);

  std::uint64_t first = 99;
  good(espalier_sequence(store_, b("tickets"), 3, &first));
  EXPECT_EQ(first, 0u);
  good(espalier_sequence(store_, b("tickets"), 1, &first));
  EXPECT_EQ(first, 3u);
  good(espalier_sequence(store_, b("others"), 1, &first));
  EXPECT_EQ(first, 0u);
  bad(espalier_sequence(store_, b("tickets"), 0, &first), ESPALIER_INVALID_ARGUMENT, "allows");
  bad(espalier_sequence(store_, b(""), 1, &first), ESPALIER_INVALID_ARGUMENT, "allows");
  bad(espalier_sequence(store_, b(std::string(256, 's')), 1, &first), ESPALIER_INVALID_ARGUMENT,
      "allows");
}

TEST_P(CApi, TakesNumbersByEpochs) {
  espalier_sequencer* numbers = nullptr;
  espalier_sequencer* other = nullptr;
  espalier_number_range range{99, 99, 99};
  espalier_sequencer_state state = ESPALIER_SEQUENCER_STATE_INIT;
  good(espalier_sequencer_create(store_, b("orders"), 10, &numbers));
  bad(espalier_sequencer_create(store_, b("orders"), 0, &other), ESPALIER_ALREADY_EXISTS,
      "sequencer");
  bad(espalier_map_open(store_, b("orders"), &map_), ESPALIER_WRONG_KIND, "it is a sequencer");
  good(espalier_sequencer_open(store_, b("orders"), &other));
  good(espalier_sequencer_take(numbers, 16, &range));
  EXPECT_EQ(range.first, 10u);
  EXPECT_EQ(range.count, 16u);
  EXPECT_EQ(range.epoch, 1u);
  bad(espalier_sequencer_take(numbers, 0, &range), ESPALIER_INVALID_ARGUMENT, "allows");
  good(espalier_sequencer_seal(numbers, &state));
  EXPECT_EQ(state.sealed, 1u);
  EXPECT_EQ(state.next, 26u);
  EXPECT_EQ(state.requests, 1u);
  bad(espalier_sequencer_take(other, 1, &range), ESPALIER_SEALED, "sealed");
  EXPECT_EQ(espalier_error_detail(), 1u);
  good(espalier_sequencer_advance(numbers, 100, nullptr));
  bad(espalier_sequencer_take(other, 1, &range), ESPALIER_SEALED, "sealed");
  EXPECT_EQ(espalier_error_detail(), 2u);
  EXPECT_EQ(range.first, 10u) << "left as it was";
  good(espalier_sequencer_follow(other, &state));
  EXPECT_EQ(state.epoch, 2u);
  EXPECT_EQ(state.sealed, 0u);
  EXPECT_EQ(state.first, 100u);
  good(espalier_sequencer_take(other, 1, &range));
  EXPECT_EQ(range.first, 100u);
  EXPECT_EQ(range.epoch, 2u);
  bad(espalier_sequencer_advance(other, ~std::uint64_t{0}, nullptr), ESPALIER_INVALID_ARGUMENT,
      "allows");
  good(espalier_sequencer_drop(store_, b("orders")));
  bad(espalier_sequencer_describe(other, &state), ESPALIER_NOT_FOUND, "nothing of this name");
  bad(espalier_sequencer_open(store_, b("orders"), &other), ESPALIER_NOT_FOUND, "name");
  espalier_sequencer_close(numbers);
  espalier_sequencer_close(other);
}

TEST_P(CApi, ScansBothWaysWithinBounds) {
  Items all;
  for (int i = 100; i < 400; ++i) {
    all.emplace_back("k" + std::to_string(i), std::to_string(i));
    put(all.back().first, all.back().second);
  }
  Items items;
  std::uint64_t count = 0;
  good(espalier_map_scan(map_, b(""), b(""), nullptr, collect, &items, &count));
  EXPECT_EQ(items, all);
  EXPECT_EQ(count, all.size());

  espalier_scan_options options = ESPALIER_SCAN_OPTIONS_INIT;
  options.reverse = 1;
  options.limit = 100;
  items.clear();
  good(espalier_map_scan(map_, b("k150"), b("k350"), &options, collect, &items, &count));
  EXPECT_EQ(items, Items(all.rend() - 250, all.rend() - 150));
  EXPECT_EQ(count, 100u);
  options = ESPALIER_SCAN_OPTIONS_INIT;
  options.from_floor = 1;
  items.clear();
  good(espalier_map_scan(map_, b("k1500"), b("k152"), &options, collect, &items, nullptr));
  EXPECT_EQ(items, Items(all.begin() + 50, all.begin() + 53));

  options = ESPALIER_SCAN_OPTIONS_INIT;
  options.parts = 3;
  items.clear();
  good(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr));
  EXPECT_EQ(items, all);

  int runs = 0;
  good(espalier_map_scan(map_, b(""), b(""), nullptr, stop_at_once, &runs, nullptr));
  EXPECT_EQ(runs, 1);
  good(espalier_map_count(map_, b("k200"), b("k300"), &count));
  EXPECT_EQ(count, 100u);
  good(espalier_map_count_estimate(map_, b("k200"), b("k300"), &count));
  EXPECT_LE(count, 300u);

  options.reverse = 1;
  options.from_floor = 1;
  bad(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr),
      ESPALIER_INVALID_ARGUMENT, "allows");
  options = ESPALIER_SCAN_OPTIONS_INIT;
  options.reverse = 2;
  bad(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr),
      ESPALIER_INVALID_ARGUMENT, "options.reverse is neither");
  options = ESPALIER_SCAN_OPTIONS_INIT;
  options.from_floor = 9;
  bad(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr),
      ESPALIER_INVALID_ARGUMENT, "options.from_floor is neither");
  options = ESPALIER_SCAN_OPTIONS_INIT;
  options.parts = 65;
  bad(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr),
      ESPALIER_INVALID_ARGUMENT, "allows");
  options.struct_bytes = 1;
  bad(espalier_map_scan(map_, b(""), b(""), &options, collect, &items, nullptr),
      ESPALIER_INVALID_ARGUMENT, "struct_bytes");
}

TEST_P(CApi, WritesBatchesOnConditions) {
  put("a", "1");
  std::uint32_t found = 0;
  good(espalier_map_get(map_, b("a"), item_, &found));
  const espalier_version_number version = espalier_item_version(item_);
  espalier_batch* batch = nullptr;
  good(espalier_batch_create(&batch));
  bad(espalier_map_write(map_, batch, nullptr), ESPALIER_INVALID_ARGUMENT, "allows");
  good(espalier_batch_only_if_present(batch, b("a")));
  good(espalier_batch_only_if_absent(batch, b("b")));
  good(espalier_batch_only_if_value(batch, b("a"), b("1")));
  good(espalier_batch_only_if_version(batch, b("a"), version));
  good(espalier_batch_put(batch, b("b"), b("2")));
  good(espalier_batch_erase(batch, b("a")));
  espalier_written written{};
  good(espalier_map_write(map_, batch, &written));
  EXPECT_EQ(written.applied, 1u);
  EXPECT_EQ(written.existed, 1u);
  EXPECT_EQ(get("a"), "nothing");
  EXPECT_EQ(get("b"), "2");
  bad(espalier_map_write(map_, batch, nullptr), ESPALIER_CONDITION_FAILED, "condition");
  EXPECT_EQ(espalier_error_detail(), 0u);

  good(espalier_batch_clear(batch));
  good(espalier_batch_put(batch, b("c"), b("3")));
  good(espalier_batch_only_if_present(batch, b("b")));
  good(espalier_batch_only_if_value(batch, b("b"), b("other")));
  bad(espalier_map_write(map_, batch, nullptr), ESPALIER_CONDITION_FAILED, "condition");
  EXPECT_EQ(espalier_error_detail(), 1u);
  EXPECT_EQ(get("c"), "nothing");

  const std::string long_key(461, 'k');
  bad(espalier_batch_put(batch, b(long_key), b("v")), ESPALIER_KEY_TOO_LONG, "key");
  bad(espalier_batch_erase(batch, b("")), ESPALIER_KEY_TOO_LONG, "key");
  // So much that to copy it would need more than there is.
  const espalier_bytes endless{"x", SIZE_MAX / 4};
  bad(espalier_batch_put(batch, b("k"), endless), ESPALIER_VALUE_TOO_LONG, "16 MiB");
  bad(espalier_batch_only_if_value(batch, b("k"), endless), ESPALIER_VALUE_TOO_LONG, "16 MiB");
  espalier_batch_destroy(batch);
}

TEST_P(CApi, ReadsSnapshots) {
  put("a", "1");
  put("b", "2");
  espalier_snapshot* snapshot = nullptr;
  good(espalier_snapshot_open(map_, &snapshot));
  put("a", "new");
  good(espalier_map_erase(map_, b("b"), nullptr));
  espalier_version_number version = 0;
  good(espalier_snapshot_version(snapshot, &version));
  EXPECT_GE(version, 2u);
  std::uint32_t found = 0;
  good(espalier_snapshot_get(snapshot, b("a"), item_, &found));
  EXPECT_EQ(text(espalier_item_value(item_)), "1");
  good(espalier_snapshot_get(snapshot, b("c"), item_, &found));
  EXPECT_EQ(found, 0u);
  EXPECT_EQ(espalier_item_value(item_).size, 0u);
  good(espalier_snapshot_floor(snapshot, b("c"), item_, &found));
  EXPECT_EQ(text(espalier_item_key(item_)), "b");
  Items items;
  std::uint64_t count = 0;
  good(espalier_snapshot_scan(snapshot, b(""), b(""), nullptr, collect, &items, &count));
  EXPECT_EQ(items, (Items{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(count, 2u);
  bad(espalier_snapshot_get(snapshot, b(std::string(461, 'k')), item_, &found),
      ESPALIER_KEY_TOO_LONG, "key");

  espalier_map_stats stats = ESPALIER_MAP_STATS_INIT;
  good(espalier_map_get_stats(map_, &stats));
  EXPECT_EQ(stats.items, 1u);
  EXPECT_EQ(stats.snapshots, 1u);
  EXPECT_EQ(stats.leaves, 1u);
  EXPECT_EQ(stats.height, 1u);
  EXPECT_GT(stats.node_bytes, 0u);
  EXPECT_EQ(stats.read_version, stats.write_version);
  struct {
    espalier_map_stats known = ESPALIER_MAP_STATS_INIT;
    std::uint64_t unknown = 7;
  } newer;
  newer.known.struct_bytes = sizeof newer;
  good(espalier_map_get_stats(map_, &newer.known));
  EXPECT_EQ(newer.known.items, 1u);
  EXPECT_EQ(newer.known.struct_bytes, sizeof newer);
  EXPECT_EQ(newer.unknown, 0u);

  bad(espalier_store_close(store_), ESPALIER_INVALID_ARGUMENT, "has open snapshots or pipelines");
  espalier_snapshot_close(snapshot);
}

}  // namespace
}  // namespace espalier::test
