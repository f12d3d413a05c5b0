// SPDX-License-Identifier: Apache-2.0
// Planted bug in a group of gets: a value out of line is read torn, while its buffer is freed and
// reused between its cache lines; the READ of its header after its last byte must detect that.
// Random tests do not meet this, since the group's leaf would have to stay in place.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/cache_scene.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kOthers = 40;
constexpr std::uint64_t kTornForNs = 100'000;

/// All of one class of buffers.
std::string value_of(char letter) { return std::string(2600, letter); }

class TornValue {
 public:
  explicit TornValue(std::uint64_t seed)
      : scene_({.seed = seed, .groups_gets = true, .key = numbered_key}) {
    scene_.fill(2'000);  // more than one leaf has
    scene_.put(key_, value_of('a'));
    for (int i = 0; i < 3; ++i) static_cast<void>(scene_.get(key_));  // and caches the path
  }

  /// What is wrong with its answer.
  Wrong check() {
    const std::uint64_t before = scene_.reader().grouped();
    if (scene_.get(key_) != value_of('a')) return "it was not read";
    if (scene_.reader().grouped() != before + 1) return "it was not read in a group";
    tear_value();
    const auto found = scene_.get(key_);
    scene_.world().middle = nullptr;
    if (!written_) return "the value was not torn";
    if (found == value_of('a') || found == value_of('b')) return {};
    return "neither what was there nor what is there now";
  }

 private:
  // What a group reads that is no part of the leaf, and comes behind that, is the value.
  void tear_value() {
    const wire::Ref leaf = Scene::leaf_of(scene_.map(), key_);
    scene_.world().middle = [this, leaf](fabric::RegionKey&, std::uint64_t& address) {
      const std::uint64_t at = address - scene_.address_of(leaf);
      leaf_came_ = leaf_came_ || at < scene_.reader().view().geometry.node_bytes;
      if (torn_ || !leaf_came_ || at < scene_.reader().view().geometry.node_bytes) return;
      torn_ = true;
      scene_.world().faults().tear = 1;
      scene_.world().faults().tear_ns = {kTornForNs, kTornForNs};
      scene_.world().after(kTornForNs / 2, [this] {
        scene_.world().faults().tear = 0;
        written_ = true;
        scene_.put(key_, value_of('b'));
        for (std::uint64_t i = 0; i < kOthers; ++i) {
          scene_.collect();
          scene_.put("other" + std::to_string(i), value_of('c'));
        }
      });
    };
  }

  CacheScene scene_;
  const std::string key_ = numbered_key(1'000);
  bool leaf_came_ = false;
  bool torn_ = false;
  bool written_ = false;
};

// The cached place of a leaf leads to its neighbour, whose fences tie with the key, too.
Wrong led_to_a_neighbour() {
  CacheScene scene({.groups_gets = true, .key = numbered_key});
  scene.fill(2'000);
  constexpr std::uint64_t kNumber = 1'000;
  const std::string key = numbered_key(kNumber);
  const wire::Ref leaf = Scene::leaf_of(scene.map(), key);
  std::uint64_t beside = kNumber;
  while (Scene::leaf_of(scene.map(), numbered_key(beside)) == leaf) ++beside;
  const std::string other = numbered_key(beside);
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(scene.get(key));
    static_cast<void>(scene.get(other));
  }
  scene.cache().keep_place(scene.map().id, scene.map().view(leaf).lid(),
                           Scene::leaf_of(scene.map(), other));
  return differs("by way of the neighbour", "value1000", scene.get(key).value_or("nothing"));
}

Wrong any_torn_value() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Wrong wrong = TornValue(seed).check();
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return {};
}

TEST(GetGroupRules, AMissOfALeafThatDoesNotCoverTheKeyIsNoAnswer) {
  expect_rejected(tree::Bug::miss_believed, led_to_a_neighbour);
}

TEST(GetGroupRules, AReadAfterItsLastByteConfirmsAValue) {
  expect_rejected(tree::Bug::value_not_confirmed, any_torn_value);
}

}  // namespace
}  // namespace espalier::test
