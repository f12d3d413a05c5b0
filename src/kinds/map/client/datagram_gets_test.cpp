// SPDX-License-Identifier: Apache-2.0
// Gets by datagrams over a network that loses, repeats, delays and forges, while the map is
// written: each answer is what the item was at some moment of the get.
#include "kinds/map/client/datagram_gets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/testing/seeds.hpp"
#include "crypto/datagram_tag.hpp"
#include "kinds/map/client/testing/datagram_world.hpp"

namespace espalier::client {
namespace {

TEST(DatagramGetsRandom, AnswersAreRightOverAnyNetwork) {
  const std::uint64_t base = base::seed_from_environment(45'000);
  base::Seeds seeds(60);
  DatagramWorldCounts counts;
  for (; seeds.more(counts.all_happened()); seeds.done()) {
    DatagramWorld world(base + seeds.ended(), counts);
    ASSERT_EQ(world.run(60), "") << "ESPALIER_SEED=" << base + seeds.ended();
  }
  seeds.report("gets answered by a datagram", counts.answered);
  seeds.report("gets left to the rings", counts.unanswered + counts.by_ring);
  EXPECT_TRUE(counts.all_happened());
}

/// A way on which nothing ever comes back.
class DeadWire final : public DatagramWire {
 public:
  void send(std::span<const std::byte>) override { ++sent; }
  std::optional<std::size_t> receive(std::span<std::byte>) override { return {}; }
  void wait(std::uint64_t until_ns) override { now = until_ns; }
  [[nodiscard]] std::uint64_t now_ns() const override { return now; }
  int sent = 0;
  std::uint64_t now = 0;
};

TEST(DatagramGets, NobodyWhoIsSilentIsAskedForLong) {
  DeadWire wire;
  auto key = crypto::Secret<crypto::SecretBytes>::make();
  ASSERT_TRUE(key);
  DatagramGets gets(wire, 1, std::move(*key));
  EXPECT_FALSE(gets.get(1, "a"));
  EXPECT_EQ(wire.sent, DatagramGets::kSends);
  EXPECT_LE(wire.now, DatagramGets::kSends * DatagramGets::kTimeoutNsMax);
  EXPECT_FALSE(gets.prove());
  EXPECT_EQ(wire.sent, 2 * DatagramGets::kSends);
}

/// A node that finds nothing, and whose answers take as long as is said.
class SlowWire final : public DatagramWire {
 public:
  void send(std::span<const std::byte> datagram) override {
    const auto request = wire::read_datagram_request(datagram);
    wire::DatagramReply reply{};
    reply.magic = wire::kDatagramMagic;
    reply.version = wire::kDatagramVersion;
    reply.kind = static_cast<std::uint8_t>(wire::DatagramKind::answer);
    reply.status = static_cast<std::uint8_t>(wire::DatagramStatus::absent);
    reply.session = request->header.session;
    reply.number = request->header.number;
    std::vector<std::byte> bytes(sizeof reply);
    std::memcpy(bytes.data(), &reply, sizeof reply);
    ASSERT_TRUE(crypto::sign_reply(crypto::SecretBytes{}, bytes));
    under_way_.emplace_back(now + take_ns, std::move(bytes));
  }
  std::optional<std::size_t> receive(std::span<std::byte> into) override {
    if (under_way_.empty() || under_way_.front().first > now) return {};
    const auto bytes = std::move(under_way_.front().second);
    under_way_.erase(under_way_.begin());
    std::ranges::copy(bytes, into.begin());
    return bytes.size();
  }
  void wait(std::uint64_t until_ns) override {
    now = under_way_.empty() ? until_ns : std::min(until_ns, under_way_.front().first);
  }
  [[nodiscard]] std::uint64_t now_ns() const override { return now; }
  std::uint64_t now = 1;
  std::uint64_t take_ns = 0;

 private:
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> under_way_;
};

TEST(DatagramGets, AnswersThatAreSlowerAllAtOnceAreWaitedForSoonEnough) {
  SlowWire wire;
  auto key = crypto::Secret<crypto::SecretBytes>::make();
  ASSERT_TRUE(key);
  DatagramGets gets(wire, 1, std::move(*key));
  wire.take_ns = 100'000;
  const auto ask = [&](int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(gets.get(1, "a")) << i;
  };
  ask(50);
  EXPECT_EQ(gets.counts().repeated, 0u);
  for (const std::uint64_t slower : {3'000'000u, 7'000'000u, 20'000'000u}) {
    SCOPED_TRACE(slower);
    wire.take_ns = slower;
    ask(20);
    const std::uint64_t repeated = gets.counts().repeated;
    ask(100);
    EXPECT_EQ(gets.counts().repeated, repeated) << "it goes on sending each of them again";
  }
  // Nor is it slow for good: when they are fast again, what is lost is asked for again soon.
  wire.take_ns = 100'000;
  ask(50);
  const std::uint64_t before = wire.now;
  wire.take_ns = 1'000'000'000;
  EXPECT_FALSE(gets.get(1, "a"));
  EXPECT_LT(wire.now - before, 20 * DatagramGets::kTimeoutNsMin);
}

}  // namespace
}  // namespace espalier::client
