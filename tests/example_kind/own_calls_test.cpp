// SPDX-License-Identifier: Apache-2.0
// Calls and kinds that a program defines through the installed interface: the same in a store of
// this process, on a node and behind a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "kinds/map/write/map_core.hpp"
#include "tests/example_kind/own_calls_fixture.hpp"
#include "tests/support/role_fixture.hpp"
#include "wire/samples.hpp"

namespace espalier::example {
namespace {

constexpr std::uint64_t kMostNs = 120'000'000'000;  // only a machine that hangs takes so long

template <class T>
Error error_in(const T& result) {
  EXPECT_FALSE(result.has_value());
  if (result) return {};
  if constexpr (requires { result.error().error; }) {
    return result.error().error;
  } else {
    return result.error();
  }
}

std::uint64_t number_in(const TableResult<std::string>& reply) {
  EXPECT_TRUE(reply) << message(reply.error());
  if (!reply) return 0;
  BytesReader bytes(*reply);
  const auto number = bytes.take<std::uint64_t>();
  EXPECT_TRUE(bytes.complete());
  return number;
}

std::string numbers(const std::vector<std::uint64_t>& all) {
  BytesWriter bytes;
  for (const std::uint64_t each : all) bytes.put(each);
  return bytes.bytes();
}

std::string count_of(std::string_view map, std::string_view key) {
  return BytesWriter().text(map).text(key).bytes();
}

std::string mishap(Mishap how) { return std::string(1, static_cast<char>(how)); }

TEST_P(OwnCallsOverEachWay, SumsWhatItIsSent) {
  for (const OffloadRow& row : {kEchoSum, kHelperSum}) {
    EXPECT_EQ(number_in(store_->call(row, numbers({}))), 0u);
    EXPECT_EQ(number_in(store_->call(row, numbers({1, 2, 39}))), 42u);
    EXPECT_EQ(number_in(store_->call(row, numbers(std::vector<std::uint64_t>(1024, 3)))), 3072u);
    const auto refused = store_->call(row, "seven b");
    EXPECT_EQ(error_in(refused), (Error{Code::invalid_argument, 0, 0}));
    EXPECT_EQ(refused.error().words, "whole numbers");
  }
}

// By the client's row, and where that says otherwise by the program's.
TEST_P(OwnCallsOverEachWay, LengthsThatAreNotOfTheRowAreRefused) {
  const std::string longer(8193, 'x');
  const Error refused{Code::invalid_argument, 0, 8193};
  EXPECT_EQ(error_in(store_->call(kEchoSum, longer)), refused);
  OffloadRow row = kEchoSum;
  row.request_bytes_max = kOwnRequestBytesMax;
  EXPECT_EQ(error_in(store_->call(row, longer)), refused);
  row = kMishap;
  row.request_bytes_min = 0;
  EXPECT_EQ(error_in(store_->call(row)), (Error{Code::invalid_argument, 0, 0}));
  EXPECT_EQ(number_in(store_->call(kEchoSum, numbers({5}))), 5u);
}

TEST_P(OwnCallsOverEachWay, WhatIsNoCallIsRefused) {
  OffloadRow row = kEchoSum;
  row.number = 255;
  EXPECT_EQ(error_in(store_->call(row)), (Error{Code::unsupported, 0, 255}));
  row.number = 2;  // the protocol's
  EXPECT_EQ(error_in(store_->call(row)), (Error{Code::invalid_argument, 0, 2}));
  // Of an object, and asked of none.
  EXPECT_EQ(error_in(store_->call(kTallyAdd, "x")).code, Code::invalid_argument);
  row = kTallyAdd;
  row.kind = ObjectKind::any;
  EXPECT_FALSE(store_->call(row, "x"));
}

TEST_P(OwnCallsOverEachWay, AHandlerThatThrowsAnswersAnError) {
  for (const OffloadRow& row : {kMishap, kWorkerMishap}) {
    for (const Mishap how : {Mishap::runtime_error, Mishap::number}) {
      const auto thrown = store_->call(row, mishap(how));
      EXPECT_EQ(error_in(thrown), (Error{Code::unsupported, 0, row.number}));
      EXPECT_EQ(thrown.error().words,
                "the handler of " + std::string(row.name) + " threw an exception");
    }
    EXPECT_EQ(error_in(store_->call(row, mishap(Mishap::bad_alloc))).code, Code::out_of_memory);
    EXPECT_EQ(store_->call(row, mishap(Mishap::none)).value_or(""), "1234");
  }
  const std::lock_guard lock(program_.mutex);
  EXPECT_EQ(program_.thrown,
            (std::vector<std::string>{
                "mishap: as asked", "mishap: something that is no std::exception",
                "worker_mishap: as asked", "worker_mishap: something that is no std::exception"}));
}

TEST_P(OwnCallsOverEachWay, AHandlerFailsInWords) {
  for (const OffloadRow& row : {kMishap, kWorkerMishap}) {
    const auto busy = store_->call(row, mishap(Mishap::words));
    EXPECT_EQ(error_in(busy), (Error{Code::busy, 0, 9}));
    EXPECT_EQ(busy.error().words, "come back on Monday");
    EXPECT_EQ(error_in(store_->call(row, mishap(Mishap::no_code))).code, Code::corrupt);
    EXPECT_EQ(error_in(store_->call(row, mishap(Mishap::long_reply))).code, Code::corrupt);
  }
}

// An offload that yields blocks no other, on any thread.
TEST_P(OwnCallsOverEachWay, StepsGiveWay) {
  for (const OffloadRow& row : {kAwaitSignal, kWorkerAwaitSignal}) {
    program_.signalled = false;
    program_.waiting = 0;
    std::uint64_t steps = 0;
    {
      std::jthread waits([&] { steps = number_in(store_->call(row)); });
      const base::Stopwatch watch;
      while (program_.waiting == 0 && watch.elapsed_ns() < kMostNs) std::this_thread::yield();
      EXPECT_EQ(number_in(store_->call(kHelperSum, numbers({1, 2}))), 3u);
      EXPECT_TRUE(store_->call(kSignal));
    }
    EXPECT_GE(steps, 1u);
  }
}

TEST_P(OwnCallsOverEachWay, TheStoresOwnObjectsAreAtHand) {
  auto map = store_->open_map("default");
  ASSERT_TRUE(map);
  EXPECT_EQ(number_in(store_->call(kCountIn, count_of("default", "pears"))), 1u);
  EXPECT_EQ(map->add("pears", 10), 11u);
  EXPECT_EQ(number_in(store_->call(kCountIn, count_of("default", "pears"))), 12u);
  EXPECT_EQ(error_in(store_->call(kCountIn, count_of("none", "pears"))).code, Code::not_found);
  EXPECT_EQ(error_in(store_->call(kCountIn, "no texts")).code, Code::invalid_argument);
  // One counter, for all callers.
  EXPECT_EQ(store_->sequence("orders"), 0u);
  EXPECT_EQ(number_in(store_->call(kTakeNumber, "orders")), 1u);
  EXPECT_EQ(store_->sequence("orders"), 2u);
}

TEST_P(OwnCallsOverEachWay, AMapThatIsDroppedIsKeptByNoHandler) {
  ASSERT_TRUE(store_->create_map("m"));
  EXPECT_EQ(number_in(store_->call(kCountIn, count_of("m", "k"))), 1u);
  ASSERT_TRUE(store_->drop_map("m"));
  EXPECT_EQ(error_in(store_->call(kCountIn, count_of("m", "k"))).code, Code::not_found);
  ASSERT_TRUE(store_->create_map("m"));
  EXPECT_EQ(number_in(store_->call(kCountIn, count_of("m", "k"))), 1u);
  if (is_embedded()) return;
  const auto maps = [&] { return node_->store().objects.list<tree::MapCore>().size(); };
  const base::Stopwatch watch;
  const auto await = [&](std::size_t wanted) {
    while (maps() != wanted && watch.elapsed_ns() < kMostNs) std::this_thread::yield();
    return maps() == wanted;
  };
  EXPECT_TRUE(await(2));
  ASSERT_TRUE(store_->drop_map("m"));
  EXPECT_TRUE(await(1)) << "though nothing more is asked";
}

TEST_P(OwnCallsOverEachWay, ADeviceRefusesWhatItsRowSays) {
  const auto reply = store_->call(kNotAtDevices);
  if (!is_device()) {
    EXPECT_TRUE(reply);
    return;
  }
  EXPECT_EQ(error_in(reply).code, Code::unsupported);
  EXPECT_THAT(reply.error().words, testing::HasSubstr("ask its host"));
}

TEST_P(OwnCallsOverEachWay, ADeviceRelaysNothingThatComesOverOtherNodes) {
  if (is_embedded()) return;  // there is no node
  channel::Channel& way = *client::StoreImpl::of(*store_).channel();
  wire::CallMessage asked{.offload = static_cast<wire::OffloadId>(kWho.number)};
  EXPECT_TRUE(way.ask(asked));
  asked.hops = 1;
  const auto reply = way.ask(asked);
  ASSERT_EQ(reply.has_value(), !is_device());
  if (reply) return;
  EXPECT_EQ(reply.error().error.code, Code::unsupported);
  EXPECT_THAT(reply.error().words, testing::HasSubstr("ask its host"));
}

TEST_P(OwnCallsOverEachWay, ObjectsAreMadeOpenedListedAndDropped) {
  const auto made = store_->create_object(kTally, "words");
  ASSERT_TRUE(made) << message(made.error());
  EXPECT_EQ(number_in(made->call(kTallyAdd, "pear")), 1u);
  const auto opened = store_->open_object(kTally, "words");
  ASSERT_TRUE(opened) << message(opened.error());
  EXPECT_EQ(opened->name(), "words");
  EXPECT_EQ(number_in(opened->call(kTallyAdd, "pear")), 2u);
  const auto by_threes = store_->create_object(kTally, "threes", "xx");
  ASSERT_TRUE(by_threes);
  EXPECT_EQ(number_in(by_threes->call(kTallyAdd, "pear")), 3u);
  const auto all = made->call(kTallyAll);
  ASSERT_TRUE(all);
  BytesReader words(*all);
  EXPECT_EQ(words.text(), "pear");
  EXPECT_EQ(words.take<std::uint64_t>(), 2u);
  EXPECT_TRUE(words.complete());
  EXPECT_EQ(store_->object_names(kTally), (std::vector<std::string>{"threes", "words"}));
  EXPECT_EQ(number_in(store_->call(kTallyNamed, count_of("words", "pear"))), 3u);
  EXPECT_EQ(error_in(store_->call(kTallyNamed, count_of("none", "pear"))).code, Code::not_found);
  ASSERT_TRUE(store_->drop_object(kTally, "words"));
  EXPECT_EQ(error_in(made->call(kTallyAdd, "pear")).code, Code::not_found);
  EXPECT_EQ(error_in(store_->open_object(kTally, "words")).code, Code::not_found);
  const auto young = store_->create_object(kTally, "words");
  ASSERT_TRUE(young);
  EXPECT_EQ(error_in(opened->call(kTallyAdd, "pear")).code, Code::not_found);
  EXPECT_EQ(number_in(young->call(kTallyAdd, "pear")), 1u);
}

TEST_P(OwnCallsOverEachWay, ObjectsThatCannotBeAreRefused) {
  ASSERT_TRUE(store_->create_object(kTally, "words"));
  EXPECT_EQ(error_in(store_->create_object(kTally, "words")),
            (Error{Code::already_exists, 0, 200}));
  EXPECT_EQ(error_in(store_->create_object(kTally, "")).code, Code::invalid_argument);
  EXPECT_EQ(error_in(store_->create_object(kTally, std::string(256, 'n'))).code,
            Code::invalid_argument);
  EXPECT_EQ(error_in(store_->create_object(kTally, "a", std::string(17, 'f'))).code,
            Code::invalid_argument);
  KindRow row = kTally;
  row.form_bytes_max = 100;
  EXPECT_EQ(error_in(store_->create_object(row, "a", std::string(17, 'f'))),
            (Error{Code::invalid_argument, 0, 17}));
  EXPECT_EQ(error_in(store_->create_object(kTally, "a", "none")),
            (Error{Code::invalid_argument, 0, 5}));
  const auto thrown = store_->create_object(kTally, "a", "throw");
  EXPECT_EQ(error_in(thrown).code, Code::unsupported);
  EXPECT_THAT(thrown.error().words, testing::HasSubstr("threw an exception"));
  EXPECT_EQ(error_in(store_->open_object(kTally, "default")), (Error{Code::wrong_kind, 0, 1}));
  EXPECT_EQ(error_in(store_->open_map("words")), (Error{Code::wrong_kind, 0, 200}));
  EXPECT_EQ(error_in(store_->drop_object(kTally, "default")).code, Code::wrong_kind);
  EXPECT_EQ(store_->object_names(kTally), std::vector<std::string>{"words"});
}

// A hundredth of the store's memory is theirs, of all together, and comes back.
TEST_P(OwnCallsOverEachWay, TheMemoryOfAKindIsItsShare) {
  const std::string word(std::size_t{100} << 10, 'w');
  for (int round = 0; round < 2; ++round) {
    const auto one = store_->create_object(kTally, "one");
    const auto other = store_->create_object(kTally, "other");
    ASSERT_TRUE(one && other);
    std::uint64_t added = 0;
    TableResult<std::string> reply;
    while ((reply = one->call(kTallyAdd, word + std::to_string(added)))) ++added;
    EXPECT_EQ(error_in(reply).code, Code::out_of_memory);
    EXPECT_EQ(added, 6u);  // of 100 KiB in 655 KiB
    EXPECT_EQ(error_in(other->call(kTallyAdd, word)).code, Code::out_of_memory);
    EXPECT_EQ(number_in(one->call(kTallyAdd, word + "0")), 2u);
    ASSERT_TRUE(store_->drop_object(kTally, "one"));
    ASSERT_TRUE(store_->drop_object(kTally, "other"));
  }
}

TEST_P(OwnCallsOverEachWay, ObjectsHaveStatistics) {
  const auto tally = store_->create_object(kTally, "words");
  ASSERT_TRUE(tally && tally->call(kTallyAdd, "a") && tally->call(kTallyAdd, "b"));
  ASSERT_TRUE(tally->call(kTallyAdd, "b"));
  wire::SamplesWanted wanted{};
  wanted.objects_max = 10;
  channel::Channel& way = *client::StoreImpl::of(*store_).channel();
  const auto sampled = channel::samples(way, wanted, "words");
  ASSERT_TRUE(sampled) << message(sampled.error());
  ASSERT_EQ(sampled->objects.size(), 1u);
  EXPECT_EQ(sampled->objects.front().kind_name, "tally");
  std::map<std::string, std::uint64_t> values;
  for (const auto& sample : sampled->objects.front().samples) values[sample.name] = sample.value;
  EXPECT_EQ(values, (std::map<std::string, std::uint64_t>{{"words", 2}, {"counted", 3}}));
  const auto listed = channel::list(way, kTally.number);
  ASSERT_TRUE(listed && listed->size() == 1);
  EXPECT_EQ(listed->front().numbers.entries, 2u);
  EXPECT_GT(listed->front().numbers.memory_bytes, sizeof(program::ProgramObject));
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnCallsOverEachWay,
                         ::testing::Values("embedded", "unix", "shm", "roce", "device"),
                         test::way_name);

// --- what comes to a node ------------------------------------------------------------------------

class OwnCallsOnANode : public OwnCallsOverEachWay {};

// Any bytes under the program's numbers: they are answered, and the node goes on.
TEST_P(OwnCallsOnANode, AnyBytesAreAnswered) {
  ASSERT_TRUE(store_->create_object(kTally, "words"));
  channel::Channel& way = *client::StoreImpl::of(*store_).channel();
  base::Random random(base::seed_from_environment(20261129));
  program_.signalled = true;
  for (int i = 0; i < 2000; ++i) {
    std::string key(random.below(4) == 0 ? random.below(300) : 0, '\0');
    std::string payload(random.below(40), '\0');
    for (char& byte : key) byte = static_cast<char>(random.below(256));
    for (char& byte : payload) byte = static_cast<char>(random.below(256));
    wire::CallMessage asked;
    asked.offload = static_cast<wire::OffloadId>(138 + random.below(30));
    asked.map = static_cast<std::uint32_t>(random.below(2) == 0 ? random.below(4) : random());
    asked.argument = static_cast<std::uint32_t>(random());
    asked.at_snapshot = random.below(8) == 0;
    asked.key = key;
    asked.payload = payload;
    const auto answer = way.ask(asked);
    if (!answer) {
      ASSERT_NE(answer.error().error.code, Code::connection_lost) << i;
    }
  }
  EXPECT_EQ(number_in(store_->call(kEchoSum, numbers({1, 2}))), 3u);
}

INSTANTIATE_TEST_SUITE_P(Ways, OwnCallsOnANode, ::testing::Values("unix", "shm"), test::way_name);

class OwnCallRoles : public test::RoleFixture {
 protected:
  void SetUp() override {
    write("clients", all_lines());
    config_.clients.secrets = path("clients");
    config_.node.fabric = "shm:" + path("fabric");
    options_.own_kinds = kinds_.kinds();
    start();
  }
  void TearDown() override { node_.reset(); }
  [[nodiscard]] Store come_as(const std::string& name) const {
    return *Store::connect(node_->fabric_addresses().front(), {.secret = secret(name)});
  }

  TallyProgram program_;
  node_api::ProgramKinds kinds_{
      std::make_shared<const program::OwnCalls>(program_.offloads(), std::uint64_t{64} << 20)};
};

TEST_F(OwnCallRoles, ItsRowsSayWhoMayWhat) {
  Store own = admin();
  ASSERT_TRUE(own.create_object(kTally, "words"));
  Store reader = come_as("reader");
  EXPECT_EQ(number_in(reader.call(kEchoSum, numbers({1, 2}))), 3u);
  EXPECT_EQ(reader.call(kWho).value_or(""), "reader");
  EXPECT_EQ(error_in(reader.call(kCountIn, count_of("default", "x"))),
            (Error{Code::not_permitted, 0, 2}));
  EXPECT_EQ(error_in(reader.create_object(kTally, "more")), (Error{Code::not_permitted, 0, 3}));
  const auto read = reader.open_object(kTally, "words");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->call(kTallyAll));
  EXPECT_EQ(error_in(read->call(kTallyAdd, "x")), (Error{Code::not_permitted, 0, 2}));
  Store writer = come_as("writer");
  EXPECT_EQ(writer.call(kWho).value_or(""), "writer may write");
  EXPECT_EQ(number_in(writer.call(kCountIn, count_of("default", "x"))), 1u);
  EXPECT_EQ(come_as("admin").call(kWho).value_or(""), "admin may write and make");
  // A right to regions is no right to make objects.
  EXPECT_EQ(come_as("peer").call(kWho).value_or(""), "peer may write");
}

TEST_F(OwnCallRoles, ARoleForSomeNamesIsGoodForThoseAlone) {
  Store own = admin();
  ASSERT_TRUE(own.create_object(kTally, "words"));
  Store shop = come_as("shop");
  EXPECT_EQ(error_in(shop.open_object(kTally, "words")), (Error{Code::not_permitted, 0, 0}));
  EXPECT_EQ(error_in(shop.create_object(kTally, "mine")), (Error{Code::not_permitted, 0, 0}));
  const auto mine = shop.create_object(kTally, std::string(kPrefix) + "words");
  ASSERT_TRUE(mine) << message(mine.error());
  EXPECT_EQ(number_in(mine->call(kTallyAdd, "x")), 1u);
  EXPECT_EQ(shop.object_names(kTally), std::vector<std::string>{std::string(kPrefix) + "words"});
  // By a number that was guessed.
  channel::Channel& way = *client::StoreImpl::of(shop).channel();
  const auto guessed =
      way.ask({.offload = static_cast<wire::OffloadId>(kTallyAll.number), .map = 2});
  ASSERT_FALSE(guessed);
  EXPECT_EQ(guessed.error().error, (Error{Code::not_permitted, 0, 0}));
  // What its handler finds out by itself.
  EXPECT_EQ(shop.call(kWho).value_or(""), "shop may write and make but not all");
  EXPECT_EQ(error_in(shop.call(kCountIn, count_of("default", "x"))).code, Code::not_permitted);
}

// --- what they are made of -----------------------------------------------------------------------

TEST(OwnCalls, WhatCannotBeServedIsRefused) {
  TallyProgram program;
  const auto mistake_with = [&](const auto& change) {
    Offloads offloads = program.offloads();
    change(offloads);
    const std::string mistake = offloads.mistake();
    if (!mistake.empty()) {
      EXPECT_EQ(error_in(Store::open({.memory_bytes_max = 64 << 20}, offloads)).code,
                Code::invalid_argument);
    }
    return mistake;
  };
  EXPECT_EQ(mistake_with([](Offloads&) {}), "");
  EXPECT_THAT(mistake_with([](Offloads& of) { of.calls[0].row.number = 127; }),
              testing::HasSubstr("below 128"));
  EXPECT_THAT(mistake_with([](Offloads& of) { of.calls[0].row.number = of.calls[1].row.number; }),
              testing::HasSubstr("has the number of the call echo_sum"));
  EXPECT_NE(mistake_with([](Offloads& of) { of.calls[0].row.name = "No word"; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.calls[0].step = nullptr; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.calls[0].row.request_bytes_min = 8193; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.calls[0].row.reply_bytes_max = 1 << 20; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.calls[0].row.kind = ObjectKind{201}; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.kinds[0].row.number = ObjectKind::map; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.kinds[0].row.create_number = 140; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.kinds.push_back(of.kinds[0]); }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.kinds[0].make = nullptr; }), "");
  EXPECT_NE(mistake_with([](Offloads& of) { of.kinds[0].row.memory_percent = 101; }), "");
}

TEST(OwnCalls, AnyBytesAreReadWithinTheirBounds) {
  base::Random random(base::seed_from_environment(20261129));
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random.below(24), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(4));
    BytesReader reader(bytes);
    const std::string_view text = reader.text();
    const auto number = reader.take<std::uint16_t>();
    if (!reader.complete()) continue;
    EXPECT_EQ(BytesWriter().text(text).put(number).bytes(), bytes);
  }
  BytesReader none("abc");
  EXPECT_EQ(none.take<std::uint32_t>(), 0u);
  EXPECT_EQ(none.text(), "");
  EXPECT_FALSE(none.complete());
}

}  // namespace
}  // namespace espalier::example
