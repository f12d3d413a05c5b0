// SPDX-License-Identifier: Apache-2.0
// Offloads on sequencers: each once, every field that cannot be, and requests of one turn that
// share an add.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "wire/object.hpp"

namespace espalier::offload {
namespace {

using wire::kSequencerEnd;
using wire::OffloadId;

std::string epoch_bytes(std::uint32_t epoch) { return std::string(bytes_of(epoch)); }

class SequencerOffloads : public testing::Test {
 protected:
  Response call(OffloadId offload, std::uint32_t map, std::string_view key,
                std::string_view payload, std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, map, ++tag_, argument), key, payload);
  }
  std::uint32_t create(std::string_view name, std::uint64_t first = 0) {
    const Response made = call(OffloadId::sequencer_create, 0, name, bytes_of(first));
    EXPECT_EQ(made.header.code, 0);
    EXPECT_EQ(facts_of(made).first, first);
    return static_cast<std::uint32_t>(made.header.version);
  }
  Response take(std::uint32_t id, std::uint32_t count, std::uint32_t epoch = 0) {
    return call(OffloadId::sequencer_take, id, {}, epoch_bytes(epoch), count);
  }
  Response advance(std::uint32_t id, const wire::SequencerAdvance& how) {
    return call(OffloadId::sequencer_advance, id, {}, bytes_of(how));
  }
  static wire::SequencerFacts facts_of(const Response& response) {
    wire::SequencerFacts facts{};
    EXPECT_EQ(response.payload.size(), sizeof facts);
    if (response.payload.size() == sizeof facts) {
      std::memcpy(&facts, response.payload.data(), sizeof facts);
    }
    return facts;
  }
  void expect_error(const Response& response, Code code, std::uint32_t detail) {
    EXPECT_TRUE(response.answers());
    EXPECT_EQ(response.code(), code) << message({response.code(), 0, response.detail()});
    // Words may stand behind it.
    std::uint32_t found = 0;
    ASSERT_GE(response.payload.size(), sizeof found);
    std::memcpy(&found, response.payload.data(), sizeof found);
    EXPECT_EQ(found, detail);
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t tag_ = 0;
};

TEST_F(SequencerOffloads, MakeOpenTakeSealAndBeginEpochs) {
  const std::uint32_t id = create("n", 7);
  const Response one = take(id, 1);
  EXPECT_EQ(one.header.version, 7u);
  EXPECT_EQ(one.header.read_version, 1u);
  EXPECT_EQ(take(id, 16, 1).header.version, 8u);
  const Response opened = call(OffloadId::sequencer_open, 0, "n", {});
  EXPECT_EQ(opened.header.version, id);
  EXPECT_EQ(facts_of(opened).next, 24u);
  const Response sealed = call(OffloadId::sequencer_seal, id, {}, epoch_bytes(1));
  EXPECT_EQ(facts_of(sealed).flags, wire::kSequencerIsSealed);
  EXPECT_EQ(facts_of(sealed).next, 24u);
  expect_error(take(id, 1), Code::sealed, 1);
  EXPECT_EQ(facts_of(call(OffloadId::sequencer_seal, id, {}, epoch_bytes(0))).next, 24u);
  EXPECT_EQ(facts_of(advance(id, {1, 0, 0})).epoch, 2u);
  expect_error(take(id, 1, 1), Code::sealed, 2);
  expect_error(advance(id, {1, 0, 0}), Code::sealed, 2);
  const Response next = take(id, 1, 2);
  EXPECT_EQ(next.header.version, 24u);
  EXPECT_EQ(next.header.read_version, 2u);
  EXPECT_EQ(facts_of(advance(id, {0, 0, 100})).first, 100u);
}

TEST_F(SequencerOffloads, AreObjectsWithNamesOfAll) {
  const std::uint32_t id = create("n", 3);
  constexpr auto kSequencer = static_cast<std::uint32_t>(ObjectKind::sequencer);
  constexpr auto kMap = static_cast<std::uint32_t>(ObjectKind::map);
  expect_error(call(OffloadId::sequencer_create, 0, "n", epoch_bytes(0) + epoch_bytes(0)),
               Code::already_exists, kSequencer);
  expect_error(call(OffloadId::map_open, 0, "n", {}), Code::wrong_kind, kSequencer);
  expect_error(call(OffloadId::sequencer_open, 0, "m", {}), Code::wrong_kind, kMap);
  expect_error(call(OffloadId::sequencer_open, 0, "none", {}), Code::not_found, 0);
  EXPECT_EQ(take(id, 5).header.code, 0);
  const auto items = items_of(call(OffloadId::object_list, 0, {}, {}, kSequencer).payload);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].first, "n");
  wire::ObjectEntry entry{};
  ASSERT_EQ(items[0].second.size(), sizeof entry + sizeof(wire::SequencerFacts));
  std::memcpy(&entry, items[0].second.data(), sizeof entry);
  EXPECT_EQ(entry.kind, kSequencer);
  EXPECT_EQ(entry.entries, 5u);
  expect_error(call(OffloadId::object_drop, 0, "n", {}, kMap), Code::wrong_kind, kSequencer);
  EXPECT_EQ(call(OffloadId::object_drop, 0, "n", {}, kSequencer).header.code, 0);
  expect_error(take(id, 1), Code::not_found, id);
  expect_error(call(OffloadId::sequencer_seal, id, {}, epoch_bytes(0)), Code::not_found, id);
  expect_error(advance(id, {}), Code::not_found, id);
  EXPECT_NE(create("n"), id);
}

TEST_F(SequencerOffloads, RefuseFieldsThatCannotBe) {
  const std::uint32_t id = create("n");
  const std::uint32_t no_epoch = wire::kSequencerEpochMax + 1;
  expect_error(take(id, 0), Code::invalid_argument, 0);
  expect_error(take(id, 1, no_epoch), Code::invalid_argument, no_epoch);
  expect_error(take(id, 1, 2), Code::sealed, 1);
  expect_error(take(id + 1, 1), Code::not_found, id + 1);
  expect_error(take(node_.map(), 1), Code::not_found, node_.map());
  expect_error(call(OffloadId::sequencer_seal, id, {}, epoch_bytes(no_epoch)),
               Code::invalid_argument, no_epoch);
  expect_error(call(OffloadId::sequencer_seal, id, {}, epoch_bytes(9)), Code::sealed, 1);
  expect_error(advance(id, {no_epoch, 0, 0}), Code::invalid_argument, no_epoch);
  expect_error(advance(id, {1, 5, 0}), Code::invalid_argument, 5);
  expect_error(advance(id, {1, 0, kSequencerEnd + 1}), Code::invalid_argument, 0);
  expect_error(advance(id, {1, 0, kSequencerEnd}), Code::exhausted, 0);
  const std::uint64_t too_large = kSequencerEnd + 1;
  expect_error(call(OffloadId::sequencer_create, 0, "large", bytes_of(too_large)),
               Code::invalid_argument, 0);
  // Rings in shared memory have no atomics of a fabric.
  expect_error(call(OffloadId::one_sided_sequencer, id, {}, {}), Code::unsupported, 0);
  // What asked for the epoch's end before has sealed it.
  EXPECT_EQ(facts_of(advance(id, {1, 0, 0})).epoch, 2u);
  EXPECT_EQ(take(id, 1, 2).header.version, 0u);
}

class SequencerBatches : public SequencerOffloads {
 protected:
  /// Sends requests together, so that one turn takes them all, and returns what each got.
  std::vector<Response> take_together(std::uint32_t id, const std::vector<std::uint32_t>& counts,
                                      std::uint32_t epoch = 0) {
    for (const std::uint32_t count : counts) {
      client_->post(message_of(request_of(OffloadId::sequencer_take, id, ++tag_, count), {},
                               epoch_bytes(epoch)));
    }
    client_->ring();
    std::vector<Response> answers;
    for (std::size_t i = 0; i < counts.size(); ++i) answers.push_back(node_.wait(client_));
    return answers;
  }
  std::uint64_t adds_of(std::string_view name) {
    return facts_of(call(OffloadId::sequencer_open, 0, name, {})).adds;
  }
};

TEST_F(SequencerBatches, RequestsOfOneTurnShareAnAdd) {
  const std::uint32_t id = create("n", 100);
  const auto answers = take_together(id, {3, 1, 16, 1});
  const std::uint64_t firsts[] = {100, 103, 104, 120};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].header.code, 0);
    EXPECT_EQ(answers[i].header.version, firsts[i]);
  }
  const auto facts = facts_of(call(OffloadId::sequencer_open, 0, "n", {}));
  EXPECT_EQ(facts.next, 121u);
  EXPECT_EQ(facts.requests, 4u);
  EXPECT_EQ(facts.adds, 1u);
}

TEST_F(SequencerBatches, ThoseOfAnotherEpochAreRefusedAlone) {
  const std::uint32_t id = create("n");
  ASSERT_EQ(advance(id, {}).header.code, 0);
  client_->post(message_of(request_of(OffloadId::sequencer_take, id, 1, 2), {}, epoch_bytes(1)));
  client_->post(message_of(request_of(OffloadId::sequencer_take, id, 2, 2), {}, epoch_bytes(2)));
  client_->ring();
  const Response old = node_.wait(client_);
  const Response now = node_.wait(client_);
  expect_error(old, Code::sealed, 2);
  EXPECT_EQ(now.header.code, 0);
  EXPECT_EQ(now.header.read_version, 2u);
}

TEST_F(SequencerBatches, AtTheEndSomeGetWhatIsLeft) {
  const std::uint32_t id = create("n", kSequencerEnd - 10);
  const auto answers = take_together(id, {8, 100, 2});
  EXPECT_EQ(answers[0].header.version, kSequencerEnd - 10);
  expect_error(answers[1], Code::exhausted, 0);
  EXPECT_EQ(answers[2].header.version, kSequencerEnd - 2);
}

TEST_F(SequencerBatches, CountsThatOneAddCannotHoldAreOfSeveral) {
  const std::uint32_t id = create("n");
  const auto answers = take_together(id, {~0u, 5, ~0u});
  std::uint64_t next = 0;
  for (const auto& [answer, count] :
       {std::pair(&answers[0], ~0u), std::pair(&answers[1], 5u), std::pair(&answers[2], ~0u)}) {
    EXPECT_EQ(answer->header.code, 0);
    EXPECT_EQ(answer->header.version, next);
    next += count;
  }
  EXPECT_EQ(adds_of("n"), 3u);
}

TEST_F(SequencerBatches, WhoEndsMeanwhileLeavesAGap) {
  const std::uint32_t id = create("n");
  SchedulerFixture::Client& other = node_.connect();
  other->post(message_of(request_of(OffloadId::sequencer_take, id, 1, 7), {}, epoch_bytes(0)));
  other->ring();
  node_.disconnect(other);
  ASSERT_TRUE(node_.run_until_idle());
  const Response mine = take(id, 1);
  EXPECT_EQ(mine.header.code, 0);
  EXPECT_LE(mine.header.version, 7u);
}

}  // namespace
}  // namespace espalier::offload
