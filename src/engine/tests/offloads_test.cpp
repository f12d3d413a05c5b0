// SPDX-License-Identifier: Apache-2.0
// What offloads answer: every offload once, and every field of a request that cannot be.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/places.hpp"
#include "engine/payload_reader.hpp"
#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/offload/held_snapshots.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

std::string number(std::uint64_t value) { return bytes_of(value); }

class SchedulerTest : public testing::Test {
 protected:
  Response call(OffloadId offload, std::string_view key = {}, std::string_view payload = {},
                std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, node_.map(), ++tag_, argument), key, payload);
  }
  Response call_at(std::uint64_t snapshot, OffloadId offload, std::string_view key,
                   std::string_view payload = {}) {
    wire::RequestHeader header = request_of(offload, node_.map(), ++tag_);
    header.ring = wire::kAtSnapshot;
    return node_.call(client_, header, key, number(snapshot).append(payload));
  }
  /// The answer is this error, and the connection goes on.
  void expect_error(const Response& response, Code code, std::uint32_t detail) {
    EXPECT_TRUE(response.answers());
    EXPECT_EQ(response.code(), code) << message({response.code(), 0, response.detail()});
    EXPECT_EQ(response.detail(), detail);
    EXPECT_EQ(response.payload.size(), 4u);
    EXPECT_EQ(response.header.flags, 0);
    const Response after = call(OffloadId::noop);
    EXPECT_TRUE(after.answers());
    EXPECT_EQ(after.header.code, 0);
    EXPECT_EQ(after.header.tag, tag_);
  }
  void put(std::string_view key, std::string_view value) {
    ASSERT_TRUE(call(OffloadId::put, key, value).applied());
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t tag_ = 0;
};

// --- every offload once --------------------------------------------------------------------------

TEST_F(SchedulerTest, TheTableHasEveryOffloadOnceWithAWordAboutIt) {
  std::uint32_t last = 0;
  for (const Offload& offload : all_offloads()) {
    EXPECT_GT(static_cast<std::uint32_t>(offload.id), last);
    last = static_cast<std::uint32_t>(offload.id);
    EXPECT_EQ(find_offload(static_cast<std::uint8_t>(offload.id))->name, offload.name);
    EXPECT_FALSE(offload.name.empty() || offload.request_format().empty() ||
                 offload.summary.empty());
    EXPECT_LE(offload.limits.payload_bytes_min, offload.limits.payload_bytes_max);
    EXPECT_LE(offload.limits.key_bytes_min, offload.limits.map ? 0 : offload.limits.key_bytes_max);
  }
  EXPECT_LT(last, wire::kOffloadIds);
  EXPECT_EQ(find_offload(0), nullptr);
}

TEST_F(SchedulerTest, NoopAnswersAndHandsTheTagBack) {
  tag_ = 0xDEADBEEE;
  const Response response = call(OffloadId::noop, "key", std::string(3000, 'p'));
  EXPECT_TRUE(response.answers());
  EXPECT_EQ(response.header.tag, 0xDEADBEEFu);
  EXPECT_EQ(response.header.bytes, 32u);
}

// One that counts down, a turn for each step, and answers what its context says.
TEST(SchedulerOwnOffloads, RunInStepsWithTheirContext) {
  const std::string word = "done";
  Offload own{{.id = static_cast<OffloadId>(wire::kOwnOffloadIds),
               .name = "count-down",
               .format = "argument: from where",
               .summary = "answers a word",
               .limits = {}},
              {.step =
                   [](Call& call) {
                     std::uint32_t& steps = call.state<std::uint32_t>();
                     if (steps++ <= call.argument()) return call.again();
                     return call.answer({}, {static_cast<const char*>(call.offload().context)});
                   },
               .context = word.c_str()}};
  SchedulerFixture node({}, std::uint64_t{1} << 20, {&own, 1});
  SchedulerFixture::Client& client = node.connect();
  wire::RequestHeader header = request_of(own.id, 0, 7);
  header.argument = 5;
  const Response answered = node.call(client, header, "", "");
  EXPECT_TRUE(answered.answers());
  EXPECT_EQ(answered.header.tag, 7u);
  EXPECT_EQ(answered.payload, word);
  // Its limits hold as those of the others.
  const Response refused = node.call(client, request_of(own.id, 0, 8), "key", "");
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(node.call(client, request_of(OffloadId::noop, 0, 9), "", "").header.code, 0);
  const Response unknown = node.call(
      client, request_of(static_cast<OffloadId>(wire::kOwnOffloadIds + 1), 0, 10), "", "");
  EXPECT_EQ(unknown.code(), Code::unsupported);
  EXPECT_EQ(node.scheduler().counts().requests[0], 2u);
}

TEST_F(SchedulerTest, WritesAndReadsOneKey) {
  EXPECT_FALSE(call(OffloadId::get, "a").found());
  const Response inserted = call(OffloadId::insert, "a", "1");
  EXPECT_TRUE(inserted.applied() && !inserted.found());
  EXPECT_FALSE(call(OffloadId::insert, "a", "2").applied());
  EXPECT_TRUE(call(OffloadId::update, "a", "3").applied());
  EXPECT_FALSE(call(OffloadId::update, "b", "3").applied());
  EXPECT_TRUE(call(OffloadId::put, "a", std::string(5000, 'v')).found());
  const Response got = call(OffloadId::get, "a");
  EXPECT_TRUE(got.found());
  EXPECT_EQ(got.payload, std::string(5000, 'v'));
  EXPECT_GT(got.header.version, inserted.header.version);
  EXPECT_TRUE(call(OffloadId::erase, "a").applied());
  EXPECT_FALSE(call(OffloadId::erase, "a").applied());
  EXPECT_EQ(call(OffloadId::get, "a").payload, "");
}

TEST_F(SchedulerTest, ComparesAndSets) {
  put("a", "1");
  wire::Comparison comparison{};
  comparison.kind = static_cast<std::uint8_t>(ConditionKind::value);
  comparison.expected_bytes = 1;
  EXPECT_TRUE(call(OffloadId::compare_and_set, "a", bytes_of(comparison).append("1new")).applied());
  expect_error(call(OffloadId::compare_and_set, "a", bytes_of(comparison).append("1x")),
               Code::condition_failed, 0);
  EXPECT_EQ(call(OffloadId::get, "a").payload, "new");
  comparison = {};
  comparison.kind = static_cast<std::uint8_t>(ConditionKind::version);
  comparison.version = call(OffloadId::get, "a").header.version;
  comparison.erase = 1;
  EXPECT_TRUE(call(OffloadId::compare_and_set, "a", bytes_of(comparison)).applied());
  EXPECT_FALSE(call(OffloadId::get, "a").found());
}

TEST_F(SchedulerTest, Adds) {
  EXPECT_EQ(call(OffloadId::add, "n", number(5)).payload, number(5));
  EXPECT_EQ(call(OffloadId::add, "n", number(~std::uint64_t{0})).payload, number(4));
  EXPECT_EQ(call(OffloadId::get, "n").payload, number(4));
  put("text", "abc");
  expect_error(call(OffloadId::add, "text", number(1)), Code::invalid_argument, 3);
}

std::string entry(wire::BatchEntry head, std::string_view key, std::string_view value) {
  head.key_bytes = static_cast<std::uint16_t>(key.size());
  head.value_bytes = static_cast<std::uint32_t>(value.size());
  return std::string(bytes_of(head)).append(key).append(value);
}
std::string entry(wire::BatchKind kind, std::string_view key, std::string_view value = {}) {
  wire::BatchEntry head{};
  head.kind = static_cast<std::uint8_t>(kind);
  return entry(head, key, value);
}
std::string check(ConditionKind condition, std::string_view key, std::string_view value = {}) {
  wire::BatchEntry head{};
  head.kind = static_cast<std::uint8_t>(wire::BatchKind::check);
  head.condition = static_cast<std::uint8_t>(condition);
  return entry(head, key, value);
}

TEST_F(SchedulerTest, WritesBatches) {
  put("a", "1");
  const std::string batch = check(ConditionKind::value, "a", "1") +
                            entry(wire::BatchKind::put, "b", "2") +
                            entry(wire::BatchKind::erase, "a");
  const Response done = call(OffloadId::write_batch, {}, batch, 3);
  EXPECT_TRUE(done.applied() && done.found());
  EXPECT_EQ(call(OffloadId::get, "b").header.version, done.header.version);
  expect_error(call(OffloadId::write_batch, {}, batch, 3), Code::condition_failed, 0);
}

TEST_F(SchedulerTest, ReadsRanges) {
  for (const char* key : {"a", "b", "c", "d"}) put(key, std::string("value of ") + key);
  const auto item = [](const char* key) {
    return std::pair<std::string, std::string>(key, std::string("value of ") + key);
  };
  EXPECT_EQ(items_of(call(OffloadId::scan, "b", "d").payload), (Items{item("b"), item("c")}));
  EXPECT_EQ(items_of(call(OffloadId::scan).payload).size(), 4u);
  EXPECT_EQ(items_of(call(OffloadId::scan, "b", {}, 2).payload), (Items{item("b"), item("c")}));
  EXPECT_EQ(items_of(call(OffloadId::scan_reverse, "b", "d").payload),
            (Items{item("c"), item("b")}));
  EXPECT_EQ(items_of(call(OffloadId::scan_floor, "bb", "d").payload),
            (Items{item("b"), item("c"), item("d")}));
  const Response floor = call(OffloadId::floor, "cc");
  EXPECT_TRUE(floor.found());
  EXPECT_EQ(items_of(floor.payload), (Items{item("c")}));
  EXPECT_FALSE(call(OffloadId::floor, "A").found());
  const Response count = call(OffloadId::count, "a", "d");
  EXPECT_EQ(count.header.version, 3u);
  EXPECT_EQ(count.payload, "");
  EXPECT_LE(call(OffloadId::count_estimate, "a", "d").header.version, 10u);
}

TEST_F(SchedulerTest, ScansAndCountsOfManyStepsAreOfOneVersion) {
  constexpr std::size_t kItems = 20'000;
  for (std::size_t i = 0; i < kItems; ++i) {
    const std::string key = "k" + std::to_string(100'000 + i);
    put(key, key);
  }
  client_->post(message_of(request_of(OffloadId::scan, node_.map(), 1)));
  client_->post(message_of(request_of(OffloadId::count, node_.map(), 2)));
  client_->ring();
  SchedulerFixture::Client& writer = node_.connect();
  std::size_t items = 0;
  std::uint32_t answers = 0;
  for (int written = 0; answers != 2;) {
    const Response next = node_.wait(client_);
    ASSERT_NE(next.header.kind, 0);
    if (next.answers()) ++answers;
    if (next.header.tag == 2) {
      EXPECT_EQ(next.header.version, kItems);
      continue;
    }
    items += items_of(next.payload).size();
    if (next.answers()) {
      EXPECT_EQ(next.header.version, kItems);
    }
    // What is written behind the scan is not in it.
    const std::string key = "z" + std::to_string(++written);
    ASSERT_TRUE(node_.call(writer, request_of(OffloadId::put, node_.map()), key, "new").applied());
  }
  EXPECT_EQ(items, kItems);
}

TEST_F(SchedulerTest, ScansWithoutVersionsDeliverNothingTwice) {
  MapOptions options;
  options.versions = false;
  const auto made = tree::create_map(node_.store(), "unversioned", options);
  ASSERT_TRUE(made);
  const std::uint32_t map = (*made)->id;
  const auto key_of = [](std::size_t i) { return "k" + std::to_string(100'000 + i); };
  for (const OffloadId offload :
       {OffloadId::scan, OffloadId::scan_reverse, OffloadId::scan_floor}) {
    SCOPED_TRACE(static_cast<int>(offload));
    for (std::size_t i = 0; i < 5'000; ++i) {
      ASSERT_TRUE(
          node_.call(client_, request_of(OffloadId::put, map), key_of(i), std::string(50, 'v'))
              .applied());
    }
    SchedulerFixture::Client& scanner = node_.connect();
    scanner->post(message_of(request_of(offload, map),
                             offload == OffloadId::scan_floor ? key_of(0) + "x" : std::string()));
    scanner->ring();
    node_.turns(200);  // now it waits, for its ring is full
    // Where it stands goes away, and more.
    for (std::size_t i = 0; i < 5'000; ++i) {
      if (i % 1'000 < 10) continue;
      node_.call(client_, request_of(OffloadId::erase, map), key_of(i));
    }
    std::string payload;
    for (Response response; !response.answers(); payload += response.payload) {
      response = node_.wait(scanner);
      ASSERT_NE(response.header.kind, 0);
    }
    const auto items = items_of(payload);
    EXPECT_GT(items.size(), 100u);
    for (std::size_t i = 1; i < items.size(); ++i) {
      const int order = items[i - 1].first.compare(items[i].first);
      ASSERT_TRUE(offload == OffloadId::scan_reverse ? order > 0 : order < 0) << items[i].first;
    }
  }
}

TEST_F(SchedulerTest, BatchesAloneGiveBackWhatTheyReplace) {
  const std::string batch = entry(wire::BatchKind::put, "a", std::string(3000, 'v'));
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_TRUE(call(OffloadId::write_batch, {}, batch, 1).applied());
  }
  wire::MapNumbers numbers{};
  const Response stats = call(OffloadId::map_stats);
  std::memcpy(&numbers, stats.payload.data(), sizeof numbers);
  EXPECT_LT(numbers.retired_bytes, 1u << 20);
}

TEST_F(SchedulerTest, HandsOutNumbers) {
  EXPECT_EQ(call(OffloadId::sequence, "s", {}, 10).header.version, 0u);
  EXPECT_EQ(call(OffloadId::sequence, "s", {}, 1).header.version, 10u);
  EXPECT_EQ(call(OffloadId::sequence, "other", {}, 1).header.version, 0u);
  expect_error(call(OffloadId::sequence, "s", {}, 0), Code::invalid_argument, 0);
}

TEST_F(SchedulerTest, RefusesWhatAHeaderCannotMean) {
  put("a", "1");
  const auto with_bits = [&](OffloadId offload, unsigned bits, std::string_view payload = {}) {
    wire::RequestHeader header = request_of(offload, node_.map());
    header.ring = static_cast<std::uint8_t>(header.ring | bits);
    return node_.call(client_, header, "a", payload);
  };
  expect_error(with_bits(OffloadId::get, wire::kHopBits), Code::invalid_argument, wire::kHopBits);
  expect_error(with_bits(OffloadId::get, wire::kOnBehalf), Code::invalid_argument, 0);
  for (const OffloadId offload : {OffloadId::put, OffloadId::erase, OffloadId::count_estimate}) {
    expect_error(with_bits(offload, wire::kAtSnapshot, "12345678"), Code::invalid_argument,
                 wire::kAtSnapshot);
  }
  expect_error(with_bits(OffloadId::get, 0, "12345678"), Code::invalid_argument, 8);
}

// So many entries are written on another thread.
TEST_F(SchedulerTest, WritesLargeBatchesWhole) {
  std::string entries;
  for (int i = 0; i < 1000; ++i) {
    entries += entry(wire::BatchKind::put, "b" + std::to_string(10'000 + i), "value");
  }
  const Response written = call(OffloadId::write_batch, {}, entries, 1000);
  EXPECT_TRUE(written.applied() && !written.found());
  EXPECT_EQ(call(OffloadId::count, "b").header.version, 1000u);
  entries += check(ConditionKind::absent, "b10500", {});
  expect_error(call(OffloadId::write_batch, {}, entries, 1001), Code::condition_failed, 0);
  expect_error(call(OffloadId::write_batch, {}, entries, 999), Code::invalid_argument, 999);
  EXPECT_EQ(call(OffloadId::get, "b10999").header.version, written.header.version);
}

TEST_F(SchedulerTest, TellsTheNumbersOfAMap) {
  put("a", "1");
  const Response stats = call(OffloadId::map_stats);
  ASSERT_EQ(stats.payload.size(), sizeof(wire::MapNumbers));
  wire::MapNumbers numbers{};
  std::memcpy(&numbers, stats.payload.data(), sizeof numbers);
  EXPECT_EQ(numbers.items, 1u);
}

TEST_F(SchedulerTest, TellsTheNumbersOfItsNode) {
  const std::string numbers(100'000, 'n');
  node_.services().numbers.set([&](NumbersSource::For) { return numbers; });
  EXPECT_EQ(call(OffloadId::node_stats).payload, numbers);
  expect_error(call(OffloadId::node_stats, "key"), Code::invalid_argument, 3);
  expect_error(call(OffloadId::node_stats, {}, "p"), Code::invalid_argument, 1);
  node_.services().numbers.set(nullptr);
  expect_error(call(OffloadId::node_stats), Code::unsupported, 0);
}

TEST_F(SchedulerTest, HoldsSnapshots) {
  put("a", "1");
  const std::uint64_t snapshot = call(OffloadId::snapshot_open).header.version;
  put("a", "2");
  put("b", "2");
  EXPECT_EQ(call_at(snapshot, OffloadId::get, "a").payload, "1");
  EXPECT_FALSE(call_at(snapshot, OffloadId::get, "b").found());
  EXPECT_EQ(items_of(call_at(snapshot, OffloadId::scan, {}).payload).size(), 1u);
  EXPECT_EQ(call_at(snapshot, OffloadId::count, {}).header.version, 1u);
  EXPECT_EQ(items_of(call_at(snapshot, OffloadId::floor, "z").payload)[0].first, "a");
  EXPECT_EQ(node_.core().store.reclaimer.waiting(node_.core(), false).snapshots, 1u);
  EXPECT_EQ(call(OffloadId::snapshot_close, {}, number(snapshot)).header.code, 0);
  expect_error(call(OffloadId::snapshot_close, {}, number(snapshot)), Code::not_found, 0);
  expect_error(call_at(snapshot, OffloadId::get, "a"), Code::not_found, 0);
  EXPECT_EQ(node_.core().store.reclaimer.waiting(node_.core(), false).snapshots, 0u);
}

TEST_F(SchedulerTest, AClientHoldsAtMostSoManySnapshots) {
  for (std::size_t i = 0; i < HeldSnapshots::kMost; ++i) {
    ASSERT_EQ(call(OffloadId::snapshot_open).header.code, 0);
  }
  expect_error(call(OffloadId::snapshot_open), Code::too_many_participants,
               base::full_error(base::Places::connection_snapshots, HeldSnapshots::kMost).detail);
  EXPECT_EQ(node_.core().store.reclaimer.waiting(node_.core(), false).snapshots,
            HeldSnapshots::kMost);
}

// --- every field that cannot be ------------------------------------------------------------------

TEST_F(SchedulerTest, RefusesOffloadsThatAreNot) {
  for (const int id : {0, static_cast<int>(wire::kOffloadIds), 120, 255}) {
    if (find_offload(static_cast<std::uint8_t>(id)) != nullptr) continue;
    expect_error(call(static_cast<OffloadId>(id), "key", "payload"), Code::unsupported,
                 static_cast<std::uint32_t>(id));
  }
}

TEST_F(SchedulerTest, RefusesMapsThatAreNot) {
  for (const Offload& offload : all_offloads()) {
    if (!offload.limits.map) continue;
    for (const std::uint32_t map : {0u, node_.map() + 1, ~0u}) {
      const std::string payload(offload.limits.payload_bytes_min, '\0');
      expect_error(node_.call(client_, request_of(offload.id, map), "key", payload),
                   Code::not_found, map);
    }
  }
}

TEST_F(SchedulerTest, RefusesPayloadsAndKeysOutsideOfTheirLimits) {
  for (const Offload& offload : all_offloads()) {
    SCOPED_TRACE(offload.name);
    const Limits& limits = offload.limits;
    const std::string key(limits.map ? 1 : limits.key_bytes_min, 'k');
    if (limits.payload_bytes_min != 0) {
      const std::uint32_t bytes = limits.payload_bytes_min - 1;
      expect_error(call(offload.id, key, std::string(bytes, '\0')), Code::invalid_argument, bytes);
    }
    if (limits.payload_bytes_max < 100'000) {
      const std::uint32_t bytes = limits.payload_bytes_max + 1;
      expect_error(call(offload.id, key, std::string(bytes, '\0')), Code::invalid_argument, bytes);
    }
    if (limits.map) continue;
    const std::string payload(limits.payload_bytes_min, '\0');
    if (limits.key_bytes_min != 0) {
      expect_error(call(offload.id, {}, payload), Code::invalid_argument, 0);
    }
    if (limits.key_bytes_max < 65535) {
      const std::uint32_t bytes = limits.key_bytes_max + 1;
      expect_error(call(offload.id, std::string(bytes, 'k'), payload), Code::invalid_argument,
                   bytes);
    }
  }
}

TEST_F(SchedulerTest, RefusesKeysThatTheMapCannotHold) {
  const std::uint32_t most = node_.core().geometry.key_bytes_max;
  const std::string key(most + 1, 'k');
  for (const OffloadId offload :
       {OffloadId::get, OffloadId::put, OffloadId::insert, OffloadId::update, OffloadId::erase,
        OffloadId::floor, OffloadId::scan, OffloadId::scan_reverse, OffloadId::scan_floor,
        OffloadId::count, OffloadId::count_estimate}) {
    SCOPED_TRACE(static_cast<int>(offload));
    expect_error(call(offload, key), Code::key_too_long, most);
    expect_error(call(offload, std::string(60'000, 'k')), Code::key_too_long, most);
  }
  for (const OffloadId offload : {OffloadId::scan, OffloadId::scan_reverse, OffloadId::scan_floor,
                                  OffloadId::count, OffloadId::count_estimate}) {
    expect_error(call(offload, "a", key), Code::key_too_long, most);
  }
  for (const OffloadId offload : {OffloadId::get, OffloadId::put, OffloadId::erase}) {
    expect_error(call(offload, {}), Code::key_too_long, most);
  }
  expect_error(call(OffloadId::add, key, number(1)), Code::key_too_long, most);
  expect_error(call(OffloadId::compare_and_set, key, bytes_of(wire::Comparison{})),
               Code::key_too_long, most);
}

TEST_F(SchedulerTest, RefusesAKeyLongerThanItsMessage) {
  wire::RequestHeader header = request_of(OffloadId::get, node_.map(), 5);
  for (const std::uint32_t bytes : {32u, 40u, 64u}) {
    header.bytes = bytes;
    for (const std::uint32_t key_bytes : {bytes - 31, 65'535u}) {
      header.key_bytes = static_cast<std::uint16_t>(key_bytes);
      expect_error(node_.call(client_, bytes_of(header).append(bytes - 32, 'k')),
                   Code::invalid_argument, 0);
    }
  }
}

TEST_F(SchedulerTest, RefusesComparisonsThatMakeNoSense) {
  const auto refused = [this](wire::Comparison comparison, std::string_view rest,
                              std::optional<std::uint32_t> detail = std::nullopt) {
    expect_error(call(OffloadId::compare_and_set, "a", bytes_of(comparison).append(rest)),
                 Code::invalid_argument, detail.value_or(comparison.kind));
  };
  wire::Comparison comparison{};
  comparison.kind = static_cast<std::uint8_t>(ConditionKind::version) + 1;
  refused(comparison, {});
  comparison.kind = 255;
  refused(comparison, {});
  comparison = {};
  comparison.erase = 1;
  refused(comparison, "a value");
  comparison.erase = 2;
  refused(comparison, {});
  comparison = {};
  comparison.reserved = 1;
  refused(comparison, {});
  comparison = {};
  comparison.expected_bytes = 6;
  refused(comparison, "short", sizeof comparison + 5);
  comparison.expected_bytes = ~0u;
  refused(comparison, "short", sizeof comparison + 5);
  EXPECT_FALSE(call(OffloadId::get, "a").found());
}

TEST_F(SchedulerTest, RefusesBatchesThatMakeNoSense) {
  const auto refused = [this](const std::string& payload, std::uint32_t count) {
    expect_error(call(OffloadId::write_batch, {}, payload, count), Code::invalid_argument, count);
  };
  const std::string good = entry(wire::BatchKind::put, "a", "1");
  refused(good, 2);
  refused(good + good, 1);
  refused(good, ~0u);
  refused(good + "x", 1);
  refused(good.substr(0, good.size() - 1), 1);
  refused(entry(static_cast<wire::BatchKind>(0), "a"), 1);
  refused(entry(static_cast<wire::BatchKind>(7), "a"), 1);
  wire::BatchEntry odd{};
  odd.kind = static_cast<std::uint8_t>(wire::BatchKind::put);
  odd.condition = static_cast<std::uint8_t>(ConditionKind::absent);
  refused(bytes_of(odd), 1);
  odd.condition = 5;
  refused(bytes_of(odd), 1);
  odd.condition = 0;
  odd.value_bytes = ~0u;
  refused(bytes_of(odd), 1);
  refused(good + check(ConditionKind::none, "a"), 2);
  refused(good + check(static_cast<ConditionKind>(5), "a"), 2);
  refused(good + check(static_cast<ConditionKind>(255), "a"), 2);
  expect_error(call(OffloadId::write_batch, {}, {}, 0), Code::invalid_argument, 0);
  expect_error(call(OffloadId::write_batch, {}, check(ConditionKind::absent, "a"), 1),
               Code::invalid_argument, 0);
  expect_error(call(OffloadId::write_batch, {}, entry(wire::BatchKind::put, {}, "1"), 1),
               Code::key_too_long, node_.core().geometry.key_bytes_max);
  EXPECT_FALSE(call(OffloadId::get, "a").found());
}

TEST_F(SchedulerTest, RefusesShapesThatNoMapHas) {
  wire::MapShape good{};
  good.node_bytes = 1024;
  good.log_bytes = 256;
  good.versions = 1;
  const auto refused = [this](const wire::MapShape& shape) {
    const Response response = call(OffloadId::map_create, "odd", bytes_of(shape));
    EXPECT_EQ(response.code(), Code::invalid_argument);
    EXPECT_EQ(call(OffloadId::map_open, "odd").code(), Code::not_found);
  };
  wire::MapShape shape = good;
  shape.versions = 2;
  refused(shape);
  shape = good;
  shape.key_bytes_max = 1;
  refused(shape);
  shape = good;
  shape.reserved = 1;
  refused(shape);
  shape = good;
  shape.group_bytes = 1;
  refused(shape);
  for (const std::uint32_t bytes : {0u, 1u, 1000u, 256u, 131'072u, ~0u}) {
    shape = good;
    shape.node_bytes = bytes;
    refused(shape);
  }
  for (const std::uint32_t bytes : {1u, 63u, 4096u, ~0u}) {
    shape = good;
    shape.log_bytes = bytes;
    refused(shape);
  }
}

TEST_F(SchedulerTest, RefusesSnapshotsThatAreNotOfThisMapOrClient) {
  expect_error(call_at(1, OffloadId::get, "a"), Code::not_found, 0);
  const std::uint64_t mine = call(OffloadId::snapshot_open).header.version;
  const auto other = tree::create_map(node_.store(), "other", MapOptions{});
  ASSERT_TRUE(other);
  wire::RequestHeader header = request_of(OffloadId::get, (*other)->id);
  header.ring = wire::kAtSnapshot;
  expect_error(node_.call(client_, header, "a", number(mine)), Code::not_found, 0);
  header.map = node_.map();
  expect_error(node_.call(client_, header, "a", "1234567"), Code::invalid_argument, 7);
  EXPECT_EQ(node_.call(node_.connect(), header, "a", number(mine)).code(), Code::not_found);
  EXPECT_EQ(node_.call(client_, header, "a", number(mine)).header.code, 0);
}

TEST_F(SchedulerTest, CancelOfWhatIsNotThereIsAnswered) {
  EXPECT_EQ(call(OffloadId::cancel, {}, {}, 12345).header.code, 0);
  EXPECT_EQ(call(OffloadId::cancel, {}, {}, tag_ + 1).header.code, 0);  // itself
}

TEST_F(SchedulerTest, ARequestForARingThatIsNotBreaksOnlyItsConnection) {
  SchedulerFixture::Client& other = node_.connect();
  wire::RequestHeader header = request_of(OffloadId::noop);
  header.ring = 1;
  for (int i = 0; i < 5; ++i) client_->post(message_of(header));
  client_->ring();
  node_.turns(10);
  EXPECT_TRUE(client_.ended);
  EXPECT_EQ(node_.broken(), 1);
  EXPECT_TRUE(node_.call(other, request_of(OffloadId::noop)).answers());
}

TEST_F(SchedulerTest, ALengthThatCannotBeBreaksOnlyItsConnection) {
  for (const std::uint32_t bytes : {0u, 31u, wire::kMessageBytesMax + 1, 0xFFFF'FFFFu}) {
    SchedulerFixture::Client& liar = node_.connect();
    wire::RequestHeader header = request_of(OffloadId::noop);
    header.bytes = bytes;
    liar->post(bytes_of(header));
    liar->ring();
    node_.turns(10);
    EXPECT_TRUE(liar.ended) << bytes;
    EXPECT_TRUE(call(OffloadId::noop).answers());
  }
}

}  // namespace
}  // namespace espalier::offload
