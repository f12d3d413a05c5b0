// SPDX-License-Identifier: Apache-2.0
// Clients report which leaves they have read, with the renewals of their leases. The reports may be
// false: they select the nodes in tables, and affect nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "channel/rings/known_secret.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/write/map_core.hpp"
#include "tests/support/in_network_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

using wire::OffloadId;

/// A session with a lease of a map, whose renewals report whatever the test wants.
class LyingClient {
 public:
  LyingClient(const std::string& address, std::string_view map)
      : connection_(*client::connect_to(*client::parse_node_address(address))),
        rings_(*client::ThreadRings::open(connection_)),
        link_(*connection_->open_beside(wire::LinkWay::reads)),
        requests_(*rings_, 1) {
    wire::CallMessage ask;
    ask.offload = OffloadId::map_open;
    ask.key = map;
    map_ = static_cast<std::uint32_t>((*requests_.call(ask)).header.version);
    ask = {};
    ask.offload = OffloadId::one_sided_open;
    ask.map = map_;
    lease_ = client::OneSidedOpening::read((*requests_.call(ask)).payload)->lease;
  }

  [[nodiscard]] std::uint32_t map() const { return map_; }
  /// Renews its lease with these bytes behind, as of leaves of a map. False: that was refused.
  bool renew(std::uint32_t map, std::string_view leaves) {
    const wire::LeaseRenewal renewal{lease_.lease, lease_.epoch};
    wire::CallMessage ask;
    ask.offload = OffloadId::lease_renew;
    ask.map = map;
    ask.payload = base::bytes_of(renewal);
    ask.more_payload = leaves;
    const auto reply = requests_.call(ask);
    if (!reply) return false;
    lease_.epoch = reply->header.version;
    return true;
  }

 private:
  std::shared_ptr<client::NodeConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
  std::unique_ptr<client::SideLink> link_;
  client::RemoteRequests requests_;
  std::uint32_t map_ = 0;
  wire::LeaseGrant lease_{};
};

std::string_view bytes_of(const std::vector<wire::Lid>& leaves) {
  return {reinterpret_cast<const char*>(leaves.data()), leaves.size() * sizeof(wire::Lid)};
}

class IndexCounts : public InNetwork {
 protected:
  [[nodiscard]] std::vector<tree::LeafHeat::Count> counted(const std::string& map) const {
    return (*node_->catalog().open<tree::MapCore>(map))
        ->heat.most_read(tree::LeafHeat::kLeavesMax, base::monotonic_ns());
  }
  /// A report that no correct client would send.
  static std::vector<wire::Lid> invented(Random& random) {
    std::vector<wire::Lid> leaves(wire::kSampledLeavesMax);
    const wire::Lid any = static_cast<wire::Lid>(random());
    switch (random.below(4)) {
      case 0:
        std::ranges::generate(leaves, [&] { return static_cast<wire::Lid>(random()); });
        break;
      case 1: std::ranges::fill(leaves, any); break;
      case 2: std::ranges::fill(leaves, random.one_in(2) ? 0 : ~wire::Lid{0}); break;
      default:  // some of these are nodes of the map, leaves or not
        std::ranges::generate(leaves, [&] { return static_cast<wire::Lid>(random.below(300)); });
    }
    return leaves;
  }
};

TEST_F(IndexCounts, LeavesOfOtherMapsAndOddLengthsCountNowhere) {
  start();
  fill(500);
  ASSERT_TRUE(writer_->create_map("other", kOptions));
  for (const std::string map : {"m", "other"}) {
    (*node_->catalog().open<tree::MapCore>(map))->heat.halve_each(3'600'000'000'000);
  }
  std::optional<LyingClient> client(std::in_place, config_.node.fabric, "m");
  const std::uint32_t of_m = client->map();
  const std::uint32_t of_other = LyingClient(config_.node.fabric, "other").map();
  // On a machine so busy that a lease is lost, by the next one.
  const auto says = [&](std::uint32_t map, std::string_view leaves) {
    for (int i = 0; i < 5; ++i) {
      if (client->renew(map, leaves)) return true;
      client.emplace(config_.node.fabric, "m");
    }
    return false;
  };
  std::vector<wire::Lid> leaves(wire::kSampledLeavesMax + 1);
  for (wire::Lid i = 0; i < leaves.size(); ++i) leaves[i] = 1'000'000 + i;
  const std::string_view too_many = bytes_of(leaves);
  const std::string_view all = too_many.substr(0, too_many.size() - sizeof(wire::Lid));
  for (const std::size_t odd : {1u, 2u, 3u, 5u, 7u, 126u, 127u}) {
    EXPECT_TRUE(says(of_m, all.substr(0, odd))) << odd;
  }
  EXPECT_FALSE(client->renew(of_m, too_many));
  EXPECT_TRUE(says(1'000'000, all)) << "of no map";
  EXPECT_TRUE(says(0, all));
  EXPECT_TRUE(says(of_m, {}));
  EXPECT_TRUE(counted("m").empty());
  EXPECT_TRUE(counted("other").empty());
  EXPECT_TRUE(says(of_other, all)) << "of which it holds no lease";
  EXPECT_TRUE(counted("m").empty());
  EXPECT_EQ(counted("other").size(), wire::kSampledLeavesMax);
  EXPECT_TRUE(says(of_m, all));
  EXPECT_EQ(counted("m").size(), wire::kSampledLeavesMax);
}

TEST_F(IndexCounts, AClientThatLiesCostsHitsAndNothingElse) {
  start();
  fill(3'000, {.node_bytes = 1024, .log_bytes = 128});
  open_switch();
  IndexController controller = this->controller(50, 0);
  ASSERT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(1));
  Random random(seed_from_environment(7));
  std::optional<LyingClient> liar(std::in_place, config_.node.fabric, "m");
  const std::uint64_t redirected = switch_->redirected();
  std::uint64_t lies = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) {
      const std::vector<wire::Lid> leaves = invented(random);
      const std::size_t cut = random.one_in(4) ? random.below(4) : 0;
      if (liar->renew(liar->map(), bytes_of(leaves).substr(cut))) {
        ++lies;
      } else {  // a machine so busy that its lease was lost
        liar.emplace(config_.node.fabric, "m");
      }
    }
    put(key_of(random.below(3'000)), "new " + std::to_string(round));
    did(controller);
    for (int i = 0; i < 3; ++i) trips_of(key_of(random.below(3'010)));
  }
  EXPECT_GT(lies, 0u);
  EXPECT_GT(switch_->redirected(), redirected);
  ASSERT_NE(controller.follower(), nullptr);
  EXPECT_LE(controller.follower()->tables().ways.size(), 50u);
  for (std::uint64_t i = 6'000; i < 6'500; ++i) put(key_of(i), std::string(40, 'w'));
  const std::uint64_t trees = controller.counts().trees;
  did(controller);
  EXPECT_GT(controller.counts().trees, trees) << "the tree has another shape";
  for (std::uint64_t i = 6'000; i < 6'500; i += 31) trips_of(key_of(i));
}

}  // namespace
}  // namespace espalier::test
