// SPDX-License-Identifier: Apache-2.0
#include "rings/response_ring.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "rings/message_reader.hpp"

namespace espalier::rings {
namespace {

constexpr std::uint32_t kResponseSlots = 64;

class ResponseRingTest : public testing::Test {
 protected:
  void send(std::uint32_t tag, std::size_t payload) {
    const std::string bytes(payload, static_cast<char>('a' + tag % 26));
    const std::string_view all(bytes);
    // In parts, as offloads send them.
    ring_.send(wire::ResponseKind::answer, tag, {},
               {all.substr(0, payload / 3), {}, all.substr(payload / 3)});
  }
  /// Takes the next response and compares it. Returns false if none is there.
  bool take(std::uint32_t tag, std::size_t payload) {
    MessageBuffer message;
    if (reader_.take(message) != Taken::message) return false;
    const auto header = base::load_plain<wire::ResponseHeader>(message.data());
    EXPECT_EQ(header.tag, tag);
    EXPECT_EQ(header.bytes, sizeof header + payload);
    const std::string got(reinterpret_cast<const char*>(message.data()) + sizeof header, payload);
    EXPECT_EQ(got, std::string(payload, static_cast<char>('a' + tag % 26)));
    return true;
  }

  alignas(64) std::byte slots_[kResponseSlots * wire::kRingSlotBytes] = {};
  alignas(64) std::byte side_[sizeof(wire::ResponseSide)] = {};
  MessageBudget budget_{~std::uint64_t{0}};
  MessageShare share_{budget_};
  MessageShare no_limit_;
  ResponseRing ring_{slots_, kResponseSlots, side_, share_};
  MessageReader reader_{SlotReader(slots_, kResponseSlots, side_), wire::kResponseHeaderBytes,
                        no_limit_};
};

TEST_F(ResponseRingTest, SendsStraightWhileThereIsRoom) {
  for (std::uint32_t tag = 0; tag < 1000; ++tag) {
    send(tag, tag % 700);
    ASSERT_EQ(ring_.backlog_bytes(), 0u);
    ASSERT_TRUE(take(tag, tag % 700));
  }
  EXPECT_FALSE(ring_.flush_pending());
}

TEST_F(ResponseRingTest, PutsByWhatHasNoRoomAndSendsAllInOrder) {
  std::uint32_t sent = 0;
  while (ring_.backlog_bytes() == 0) send(sent++, 100);
  for (int i = 0; i < 100; ++i) send(sent++, 100);
  EXPECT_FALSE(ring_.flush_pending());  // nothing was read
  std::uint32_t taken = 0;
  while (taken < sent) {
    while (take(taken, 100)) ++taken;
    if (taken < sent) {
      ASSERT_TRUE(ring_.flush_pending());
    }
  }
  EXPECT_EQ(ring_.backlog_bytes(), 0u);
  EXPECT_FALSE(ring_.flush_pending());
  send(sent, 10);
  EXPECT_TRUE(take(sent, 10));
}

TEST_F(ResponseRingTest, ARingThatIsReadAtRandomLosesAndMixesNothing) {
  const std::uint64_t seed = base::seed_from_environment(6);
  SCOPED_TRACE(testing::Message() << "repeat with ESPALIER_SEED=" << seed);
  base::Random random(seed);
  std::deque<std::pair<std::uint32_t, std::size_t>> on_their_way;
  for (std::uint32_t tag = 0; tag < 20'000; ++tag) {
    const std::size_t payload = random.below(random.below(50) == 0 ? 20'000 : 200);
    send(tag, payload);
    on_their_way.emplace_back(tag, payload);
    for (std::uint64_t i = random.below(4); i != 0 && !on_their_way.empty(); --i) {
      const auto [next, bytes] = on_their_way.front();
      if (take(next, bytes)) on_their_way.pop_front();
      if (random.below(2) == 0) ring_.flush_pending();
    }
  }
  while (!on_their_way.empty()) {
    const auto [next, bytes] = on_their_way.front();
    if (take(next, bytes)) {
      on_their_way.pop_front();
    } else {
      ASSERT_TRUE(ring_.flush_pending());
    }
  }
  EXPECT_EQ(ring_.backlog_bytes(), 0u);
}

TEST_F(ResponseRingTest, AMessageLongerThanTheRingGoesThrough) {
  send(1, 200'000);
  EXPECT_NE(ring_.backlog_bytes(), 0u);
  while (!take(1, 200'000)) {
    ASSERT_TRUE(ring_.flush_pending());
  }
  EXPECT_EQ(ring_.backlog_bytes(), 0u);
}

TEST_F(ResponseRingTest, ALyingCreditHarmsNobodyButTheLiar) {
  send(1, 200'000);
  for (const std::uint64_t credit :
       {~std::uint64_t{0}, std::uint64_t{1} << 40, std::uint64_t{65}}) {
    base::store_shared(side_, credit);
    EXPECT_FALSE(ring_.flush_pending()) << credit;
  }
  // Within what was sent it is believed, and what was not read is lost.
  std::uint64_t sent = kResponseSlots;
  while (ring_.backlog_bytes() != 0) {
    base::store_shared(side_, sent);
    ASSERT_TRUE(ring_.flush_pending());
    sent = std::min<std::uint64_t>(sent + kResponseSlots, wire::slots_of(200'032));
  }
}

TEST_F(ResponseRingTest, SaysWhetherTheReaderSleepsAndWakesIt) {
  EXPECT_FALSE(ring_.reader_sleeps());
  base::store_shared(side_ + offsetof(wire::ResponseSide, sleeping), std::uint32_t{1});
  EXPECT_TRUE(ring_.reader_sleeps());
  ring_.wake_reader();
  EXPECT_FALSE(ring_.reader_sleeps());
}

}  // namespace
}  // namespace espalier::rings
