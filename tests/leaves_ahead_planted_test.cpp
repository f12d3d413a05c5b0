// SPDX-License-Identifier: Apache-2.0
// Planted bug in a scan's read-ahead: a leaf is read torn, while its buffer is freed and reused
// between its cache lines; the READ of its header after its last byte must detect that. No seed of
// one_sided_world.hpp meets this: it cannot happen while leases hold memory back, and otherwise the
// scan's later leaves are gone as well.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/cache_scene.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

constexpr std::uint64_t kKeys = 100;
constexpr std::uint64_t kTearNs = 100'000;

std::string counted_key(std::uint64_t i) { return std::to_string(1000 + i); }

/// A scan of two leaves, of which the second one comes ahead.
class TornAhead {
 public:
  TornAhead(std::uint64_t seed, bool in_order)
      : scene_(setting(seed, in_order)), write_after_ns_((in_order ? 3 : 1) * kTearNs / 2) {
    scene_.fill(kKeys);
    Request all;
    all.op = Op::scan;
    for (auto& [key, value] : scene_.scan(all)) before_[key] = value;  // and caches the path
    static_cast<void>(scene_.scan(all));
    while (leaf_of(low_) == leaf_of(low_ + 1)) ++low_;
    high_ = low_ + 1;
    leaf_ = leaf_of(high_);
    while (high_ + 1 != kKeys && leaf_of(high_ + 1) == leaf_) ++high_;
  }

  /// What is wrong with its answer.
  Wrong check() {
    tear_second_leaf();
    // Behind the first leaf's last key: a scan that has delivered nothing may begin anew, at a
    // version of which everything is there.
    const std::string from = counted_key(low_) + "+";
    const std::string to = counted_key(high_) + "+";
    Request request;
    request.op = Op::scan;
    request.key = from;
    request.high = to;
    const CacheScene::Items found = scene_.scan(request);
    scene_.world().middle = nullptr;
    if (!torn_) return "the leaf did not come ahead";
    if (!reused_) return "its buffer was not used again";
    CacheScene::Items now;
    for (std::uint64_t i = low_ + 1; i <= high_; ++i) {
      now.emplace_back(counted_key(i), *scene_.get(counted_key(i)));
    }
    const CacheScene::Items then(before_.lower_bound(from), before_.lower_bound(to));
    if (found == now || found == then) return {};
    return std::to_string(found.size()) + " items, of neither of both moments";
  }

 private:
  static CacheSetting setting(std::uint64_t seed, bool in_order) {
    CacheSetting setting;
    setting.seed = seed;
    setting.in_order = in_order;
    setting.key = counted_key;
    setting.map = {.node_bytes = 1024, .log_bytes = 128};
    return setting;
  }
  [[nodiscard]] wire::Ref leaf_of(std::uint64_t key) const {
    return Scene::leaf_of(scene_.map(), counted_key(key));
  }

  // READs take long from its first one on, and in the middle of that one the host writes. Where
  // READs keep their order, the first leaf's is as long, and comes before.
  void tear_second_leaf() {
    scene_.world().middle = [this](fabric::RegionKey&, std::uint64_t& address) {
      if (torn_ || address != scene_.address_of(leaf_)) return;
      torn_ = true;
      scene_.world().faults().tear = 1;
      scene_.world().faults().tear_ns = {kTearNs, kTearNs};
      scene_.world().after(write_after_ns_, [this] {
        scene_.world().faults().tear = 0;
        std::vector<std::string> keys;
        for (std::uint64_t i = low_ + 1; i <= high_; ++i) keys.push_back(counted_key(i));
        reused_ = scene_.write_until_reused(leaf_, keys);
      });
    };
  }

  CacheScene scene_;
  const std::uint64_t write_after_ns_;
  std::map<std::string, std::string> before_;
  std::uint64_t low_ = 0;   // the first leaf's last key
  std::uint64_t high_ = 0;  // the second one's
  wire::Ref leaf_{};        // the second one
  bool torn_ = false;
  bool reused_ = false;
};

Wrong any_torn_seed(bool in_order) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Wrong wrong = TornAhead(seed, in_order).check();
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return {};
}

TEST(LeavesAheadRules, AReadAfterItsLastByteConfirmsALeafThatCameAhead) {
  for (const bool in_order : {false, true}) {
    expect_rejected(Bug::ahead_not_confirmed, [&] { return any_torn_seed(in_order); });
  }
}

}  // namespace
}  // namespace espalier::test
