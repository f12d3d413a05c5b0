// SPDX-License-Identifier: Apache-2.0
// Gets by datagrams over a network that loses, repeats, delays and forges, while the map is
// written: each answer is what the item was at some moment of the get.
#include "kinds/map/client/datagram_gets.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
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

}  // namespace
}  // namespace espalier::client
