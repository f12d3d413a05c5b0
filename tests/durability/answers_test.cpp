// SPDX-License-Identifier: Apache-2.0
// A scheduler whose store has a log: no answer is sent before its content is durable, reads are
// answered meanwhile, and when the log fails the waiting requests get an error.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/map/format/node.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_object.hpp"
#include "tests/durability/durable_scheduler.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class DurableAnswers : public testing::Test, public DurableScheduler {
 protected:
  /// Runs so many writes of others, which wait for the newest record, that no more may begin.
  void fill(memory::VersionClock& clock) const {
    while (clock.may_take()) clock.done(clock.take(), sink_.count());
  }
};

TEST_F(DurableAnswers, AWriteIsSeenAndAnsweredOnceItIsDurable) {
  const std::uint32_t map = node_.map();
  post(client_, OffloadId::put, map, "key", "value");
  ASSERT_EQ(sink_.count(), 1u);
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_EQ(call(other_, OffloadId::get, map, "key").header.flags & wire::kFound, 0)
      << "a crash can still lose it";
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  EXPECT_NE(call(other_, OffloadId::get, map, "key").header.flags & wire::kFound, 0);
}

// Done by a connection that is gone: a repeat of its number is answered no sooner.
TEST_F(DurableAnswers, ANumberThatIsAskedForAgainIsAnsweredOnceItIsDurable) {
  post(client_, OffloadId::transaction_client, 0, {}, base::bytes_of(std::uint64_t{0}), 0);
  const std::uint64_t client = node_.wait(client_).header.version;
  ASSERT_NE(client, 0u);
  std::string put(base::bytes_of(object_calls::RequestNumbers{client, 1, 0}));
  put += base::bytes_of(std::uint16_t{1});
  put += "m";
  put += base::bytes_of(object_calls::StepHead{0, 5, 3, 0, 3, 0, {}});
  put += "keyvalue";
  for (SchedulerClient* const asks : {&client_, &other_, &other_}) {
    post(*asks, OffloadId::transact_once, 0, {}, put, 1);
  }
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_TRUE(is_silent(other_));
  EXPECT_EQ(sink_.count(), 2u);
  sink_.make_durable();
  const Response first = node_.wait(client_);
  EXPECT_EQ(first.code(), Code::invalid) << first.payload;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(node_.wait(other_).header.version, first.header.version);
  }
}

// A condition that fails because of what is not durable yet waits with it.
TEST_F(DurableAnswers, ATransactionIsSeenAndAnsweredOnceItIsDurable) {
  const auto request = [](const object_calls::StepHead& head, std::string_view rest) {
    std::string bytes(base::bytes_of(std::uint16_t{1}));
    bytes += "m";
    bytes += base::bytes_of(head);
    return bytes.append(rest);
  };
  const std::string put = request({0, 5, 3, 0, 3, 0, {}}, "keyvalue");
  const std::string absent = request({0, 0, 3, 0, 2, 1, {}}, "key");
  post(client_, OffloadId::transact, 0, {}, put, 1);
  ASSERT_EQ(sink_.count(), 1u);
  post(other_, OffloadId::transact, 0, {}, absent, 1);
  node_.turns(20);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_TRUE(is_silent(other_));
  sink_.make_durable();
  const Response done = node_.wait(client_);
  EXPECT_EQ(done.code(), Code::invalid);
  EXPECT_EQ(done.header.version, node_.core().clock.released());
  EXPECT_EQ(node_.wait(other_).code(), Code::condition_failed);
  EXPECT_NE(call(other_, OffloadId::get, node_.map(), "key").header.flags & wire::kFound, 0);
}

// As many as a scheduler has places, and some more: other clients are not affected.
TEST_F(DurableAnswers, WritesThatWaitKeepNobodyElseWaiting) {
  const std::uint32_t map = node_.map();
  for (int i = 0; i < 300; ++i) post(client_, OffloadId::put, map, std::to_string(i), "value");
  const std::size_t begun = sink_.count();
  EXPECT_GE(begun, 128u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(call(other_, OffloadId::get, map, "0").code(), Code::invalid);
  }
  post(other_, OffloadId::put, map, "other", "value");
  EXPECT_EQ(sink_.count(), begun + 1);
  for (int round = 0; round < 300; ++round) {
    sink_.make_durable();
    node_.turns(4);
  }
  int answered = 0;
  while (client_->receive(0)) ++answered;
  EXPECT_EQ(answered, 300);
}

// However long the disk stalls: the scheduler's thread would wait with it.
TEST_F(DurableAnswers, AWriteWaitsAsideWhileTooManyWaitForTheirRelease) {
  const std::uint32_t map = node_.map();
  const hash::HashShape shape{2, 1, 0, 0, 1 << 20};
  post(client_, OffloadId::hash_create, 0, "h", base::bytes_of(shape));
  sink_.make_durable();
  const auto hash = static_cast<std::uint32_t>(node_.wait(client_).header.version);
  post(client_, OffloadId::put, map, "first", "value");
  post(client_, OffloadId::hash_put, hash, "first", "value");
  const std::size_t begun = sink_.count();
  ASSERT_EQ(begun, 3u);
  fill(node_.catalog().find<tree::MapCore>(map)->clock);
  fill(node_.catalog().find<hash::HashMap>(hash)->clock());

  const std::uint64_t amount = 1;
  post(client_, OffloadId::put, map, "key", "value");
  post(client_, OffloadId::hash_put, hash, "key", "value");
  post(client_, OffloadId::add, map, "sum", base::bytes_of(amount));
  node_.turns(50);
  EXPECT_EQ(sink_.count(), begun);
  EXPECT_TRUE(is_silent(client_));
  EXPECT_EQ(call(other_, OffloadId::get, map, "key").code(), Code::invalid);
  EXPECT_EQ(call(other_, OffloadId::hash_get, hash, "key").code(), Code::invalid);

  post(other_, OffloadId::put, map, "other", "value");
  node_.disconnect(other_);  // takes what waits with it
  int answered = 0;
  for (int round = 0; answered < 5 && round < 1'000'000; ++round) {
    sink_.make_durable();
    node_.turns(4);
    while (client_->receive(0)) ++answered;
  }
  EXPECT_EQ(answered, 5);
  EXPECT_EQ(sink_.count(), begun + 3);
}

TEST_F(DurableAnswers, NumbersAndObjectsAreToldOnceTheyAreDurable) {
  const std::uint64_t first = 7;
  post(client_, OffloadId::sequencer_create, 0, "numbers", base::bytes_of(first));
  EXPECT_TRUE(is_silent(client_));
  // A client that finds it must not get an answer either, nor that the name is taken.
  post(other_, OffloadId::sequencer_open, 0, "numbers");
  EXPECT_TRUE(is_silent(other_));
  sink_.make_durable();
  const Response made = node_.wait(client_);
  ASSERT_EQ(made.code(), Code::invalid);
  EXPECT_EQ(node_.wait(other_).header.version, made.header.version);

  const auto id = static_cast<std::uint32_t>(made.header.version);
  const std::uint32_t epoch = 0;  // whichever it is
  post(client_, OffloadId::sequencer_take, id, {}, base::bytes_of(epoch), 3);
  EXPECT_EQ(sink_.count(), 2u);
  EXPECT_TRUE(is_silent(client_));
  post(client_, OffloadId::sequence, 0, "counter", {}, 2);
  EXPECT_EQ(sink_.count(), 3u);
  sink_.make_durable(2);
  EXPECT_EQ(node_.wait(client_).header.version, 7u);
  EXPECT_TRUE(is_silent(client_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
}

TEST_F(DurableAnswers, WhereTheLogFailsWhatWaitsIsToldAndReadsGoOn) {
  const std::uint32_t map = node_.map();
  post(client_, OffloadId::put, map, "before", "value");
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  post(client_, OffloadId::put, map, "key", "value");
  sink_.fail_all();
  const Response lost = node_.wait(client_);
  EXPECT_EQ(lost.code(), Code::system);
  EXPECT_NE(std::string(lost.payload.begin(), lost.payload.end()).find("a test has it fail"),
            std::string::npos);
  EXPECT_EQ(call(client_, OffloadId::put, map, "more", "value").code(), Code::busy)
      << "there is no room";
  EXPECT_NE(call(other_, OffloadId::get, map, "before").header.flags & wire::kFound, 0);
  EXPECT_EQ(call(other_, OffloadId::get, map, "key").header.flags & wire::kFound, 0);
}

// Requests with hops have places of their own: those that wait for the disk keep none of them
// either.
TEST_F(DurableAnswers, WritesWithHopsThatWaitKeepNoPlace) {
  const std::uint32_t map = node_.map();
  constexpr std::uint32_t kOfEach = Scheduler::kHopPlaces / 2 + 8;
  for (std::uint32_t i = 0; i < kOfEach; ++i) {
    post(client_, OffloadId::put, map, "a" + std::to_string(i), "value", 0, 1);
    post(other_, OffloadId::put, map, "b" + std::to_string(i), "value", 0, 1);
  }
  EXPECT_EQ(sink_.count(), 2 * kOfEach);
  post(client_, OffloadId::get, map, "a0", {}, 0, 1);
  EXPECT_FALSE(is_silent(client_));
  EXPECT_TRUE(is_silent(client_));
}

TEST_F(DurableAnswers, ListsAndFactsAreToldOnceTheyAreDurable) {
  const std::uint64_t first = 7;
  post(client_, OffloadId::sequencer_create, 0, "numbers", base::bytes_of(first));
  post(other_, OffloadId::object_list, 0, {});
  EXPECT_TRUE(is_silent(other_));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(other_).code(), Code::invalid);
  const auto id = static_cast<std::uint32_t>(node_.wait(client_).header.version);

  const std::uint32_t epoch = 0;  // whichever it is
  post(client_, OffloadId::sequencer_seal, id, {}, base::bytes_of(epoch));
  ASSERT_EQ(sink_.count(), 2u);
  post(other_, OffloadId::sequencer_open, 0, "numbers");
  EXPECT_TRUE(is_silent(other_)) << "a crash can still undo the seal";
  sink_.make_durable();
  EXPECT_EQ(node_.wait(other_).code(), Code::invalid);
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
}

TEST_F(DurableAnswers, WhereTheLogFailsWhatIsDurableCanBeOpened) {
  const std::uint64_t first = 7;
  post(client_, OffloadId::sequencer_create, 0, "kept", base::bytes_of(first));
  sink_.make_durable();
  EXPECT_EQ(node_.wait(client_).code(), Code::invalid);
  post(client_, OffloadId::sequencer_create, 0, "lost", base::bytes_of(first));
  sink_.fail_all();
  EXPECT_EQ(node_.wait(client_).code(), Code::system);
  EXPECT_EQ(call(other_, OffloadId::sequencer_open, 0, "kept").code(), Code::invalid);
  EXPECT_EQ(call(other_, OffloadId::sequencer_open, 0, "lost").code(), Code::system);
  EXPECT_EQ(call(other_, OffloadId::sequencer_open, 0, "none").code(), Code::system);
}

// There are no records of them.
TEST_F(DurableAnswers, BytesOfRegionsWaitForNothing) {
  const std::uint64_t bytes = 4096;
  post(client_, OffloadId::region_create, 0, "r", base::bytes_of(bytes));
  sink_.make_durable();
  const auto region = static_cast<std::uint32_t>(node_.wait(client_).header.version);
  post(other_, OffloadId::put, node_.map(), "key", "value");
  EXPECT_TRUE(is_silent(other_));
  const std::uint64_t offset_and_bytes[] = {8, 42};
  const std::string written(base::bytes_of(offset_and_bytes));
  EXPECT_EQ(call(client_, OffloadId::region_write, region, {}, written).code(), Code::invalid);
  const Response added = call(client_, OffloadId::region_fetch_add, region, {}, written);
  EXPECT_EQ(added.code(), Code::invalid);
  EXPECT_EQ(added.header.version, 42u);
  sink_.fail_all();
  EXPECT_EQ(call(client_, OffloadId::region_write, region, {}, written).code(), Code::invalid);
}

TEST_F(DurableAnswers, AClientThatGoesTakesWhatWaitsWithIt) {
  const std::uint64_t first = 7;
  post(client_, OffloadId::sequencer_create, 0, "numbers", base::bytes_of(first));
  post(other_, OffloadId::sequencer_open, 0, "numbers");
  node_.disconnect(client_);
  node_.turns(10);
  sink_.make_durable();
  EXPECT_NE(node_.wait(other_).header.version, 0u);
}

TEST_F(DurableAnswers, WhatHasNoRecordsIsRefused) {
  const hash::HashShape without_versions{2, 0, 0, 0, 1 << 20};
  const Response hash =
      call(client_, OffloadId::hash_create, 0, "h", base::bytes_of(without_versions));
  EXPECT_EQ(hash.code(), Code::unsupported);
  EXPECT_NE(std::string(hash.payload.begin(), hash.payload.end()).find("versions"),
            std::string::npos);
  // Not even a program's handler, which comes by no request, can make one.
  EXPECT_EQ(tree::create_map(node_.store(), "w", {.versions = false}).error().code,
            Code::unsupported);
  hash::HashStore& hashes = hash::hash_store_of(node_.catalog());
  EXPECT_EQ(hash::create_hash_map(hashes, "h", {.versions = false}).error().code,
            Code::unsupported);
}

}  // namespace
}  // namespace espalier::offload
