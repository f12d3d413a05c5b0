// SPDX-License-Identifier: Apache-2.0
// What a walk must check of each node before it trusts it (DESIGN idea 1, §2.1 rules 1, 2, 8, 9):
// each check is left out in turn, and a test detects it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kinds/map/walk/find_point.hpp"
#include "tests/support/forged_leaf.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {
namespace {

using tree::Bug;
using tree::Moment;

/// Keeps what a get has found.
class FoundValue final : public Handler {
 public:
  void done(const Completion& completion) override { value = completion.value; }
  std::string value;
};

constexpr int kItems = 60;  // a dozen leaves or more

// A read at a held version, after a new leaf took the place of the one that answered then.
Wrong read_behind_a_new_leaf() {
  Scene scene(kNoLog);
  scene.a.put("k", "old");
  const HeldHere held(*scene.map, scene.context);
  scene.a.put("k", "new");
  return differs("at the held version", "old", scene.b.get("k", held.read()));
}

// The value of a key for a walk that is at this node already: the host lets no hint lead it there,
// but its own references may be late.
std::string get_from(const Scene& scene, std::string_view key, wire::Ref ref) {
  tree::Cursor cursor;
  cursor.read_version = scene.map->clock.released();
  cursor.key.assign(key);
  const tree::NodeView leaf = scene.map->view(find_leaf(*scene.map, cursor, ref));
  Completion answer;
  bool out_of_line = false;
  const bool found =
      tree::find_point(cursor.key, leaf, tree::probe_leaf(leaf, cursor.key, scene.map->kit),
                       cursor.read_version, answer, out_of_line);
  return found ? std::string(answer.value) : std::string(Actor::kNothing);
}

// --- idea 1: a node answers for itself -----------------------------------------------------------

TEST(WalkRules, ALeafAnswersOnlyForItsRange) {
  expect_rejected(Bug::skip_range_check, [] {
    Scene scene(kNoLog);
    scene.fill(kItems);
    const wire::Ref first = Scene::leaf_of(*scene.map, Scene::key(0));
    const std::string last = Scene::key(kItems - 1);
    return differs("a key of another leaf", Scene::value(kItems - 1),
                   scene.b.get(last, {nullptr, first}));
  });
}

TEST(WalkRules, ALeafDoesNotAnswerForVersionsBeforeIt) {
  expect_rejected(Bug::ignore_created, read_behind_a_new_leaf);
}

TEST(WalkRules, ALeafDoesNotAnswerForVersionsAfterIt) {
  expect_rejected(Bug::ignore_superseded, [] {
    Scene scene(kNoLog);
    scene.a.put("k", "old");
    const wire::Ref superseded = scene.leaf_of("k");
    scene.a.put("k", "new");
    return differs("by way of the old leaf", "new", get_from(scene, "k", superseded));
  });
}

// --- rule 1: identity ----------------------------------------------------------------------------

TEST(WalkRules, ANodeOfAnotherMapDoesNotAnswer) {
  expect_rejected(Bug::skip_map_check, []() -> Wrong {
    Scene scene(kLog);
    tree::MapCore& other = scene.add_map(kLog);
    Actor other_writer(scene.store, other, 3);
    other_writer.put("k", "theirs");
    scene.a.put("other", "ours");
    scene.a.put("k", "ours");
    return differs("by way of another map's leaf", "ours",
                   get_from(scene, "k", Scene::leaf_of(other, "k")));
  });
}

// A hint of another leaf, which a client may have kept or made up.
TEST(WalkRules, ALeafThatAHintNamesIsAskedWhetherItMayAnswer) {
  expect_rejected(Bug::hint_believed, [] {
    Scene scene(kNoLog);
    scene.fill(kItems);
    Clock clock;
    HostWalker walker(scene.store, *scene.map, 3, clock);
    const std::string last = Scene::key(kItems - 1);
    Request get;
    get.op = Op::get;
    get.key = last;
    FoundValue found;
    walker.executor.submit(get, found, scene.leaf_of(Scene::key(0)));
    walker.executor.drain();
    return differs("by a hint of another leaf", Scene::value(kItems - 1), found.value);
  });
}

// A client has forged leaves lie in its value, and names them in a hint.
TEST(WalkRules, TheHostEntersAtNodesOnly) {
  expect_rejected(Bug::hint_not_checked, enter_at_forged_leaves);
}

TEST(WalkRules, ABufferOfAnotherGenerationDoesNotAnswer) {
  expect_rejected(Bug::skip_generation_check, []() -> Wrong {
    Scene scene(kLog);
    scene.a.put("k", "honest");
    const std::string image = forged_leaf(scene, "k", "honest", "forged");
    if (image.empty()) return "no image was made";
    constexpr std::size_t kBlock = wire::kBlockBytes;
    const std::string padding(kBlock - sizeof(wire::ValueHeader), '.');
    scene.a.put("large", padding + image);
    const std::uint64_t offset = value_of(scene, "large").offset() + kBlock;
    const std::uint32_t generation =
        tree::NodeView(scene.map->at(offset), scene.map->geometry).generation();
    return differs("by way of a late reference", "honest",
                   get_from(scene, "k", wire::Ref::make(offset, generation + 1)));
  });
}

// The buffer of a value has the right map and, in a hint that names it, the right generation. Its
// content must not be trusted all the same.
TEST(WalkRules, AValueIsNoNode) {
  Scene scene(kLog);
  scene.a.put("k", "honest");
  std::string image = forged_leaf(scene, "k", "honest", "forged");
  ASSERT_FALSE(image.empty());
  // The first word of a value that counts as one of a header is its length: the low fence's head.
  scene.a.put("large", image.substr(sizeof(wire::ValueHeader)));
  const wire::Ref value = value_of(scene, "large");
  ASSERT_TRUE(value);
  EXPECT_EQ(scene.b.get("k", {nullptr, value}), "honest");
  EXPECT_EQ(scene.b.floor("k", {nullptr, value}), "k=honest");
  for (const auto& [offset, size_class] : scene.map->table.buffers()) {
    const auto header = base::load_plain<wire::BufferHeader>(scene.map->at(offset));
    EXPECT_EQ(scene.b.get("k", {nullptr, wire::Ref::make(offset, header.generation)}), "honest");
  }
}

// --- rule 2: the order of a read -----------------------------------------------------------------

TEST(WalkRules, AReadVersionIsNotOlderThanItsRequest) {
  expect_rejected(Bug::stale_read_version, []() -> Wrong {
    Scene scene(kLog);
    scene.a.put("k", "old");
    if (const Wrong wrong = differs("before", "old", scene.b.get("k")); !wrong.empty()) {
      return wrong;
    }
    scene.a.put("k", "new");
    return differs("after the write was acknowledged", "new", scene.b.get("k"));
  });
}

TEST(WalkRules, TheEpochComesBeforeTheReadVersion) {
  expect_rejected(Bug::read_version_before_epoch, [] {
    Scene scene(kNoLog);
    scene.a.put("k", "old");
    scene.collect();
    const At between(Moment::between_epoch_and_version, [&] {
      scene.a.put("k", "new");
      scene.collect();
    });
    return differs("a read that was overtaken as it began", "new", scene.b.get("k"));
  });
}

// --- rule 8: predecessors ------------------------------------------------------------------------

TEST(WalkRules, ANewLeafNamesItsPredecessor) {
  expect_rejected(Bug::no_predecessor, read_behind_a_new_leaf);
}

TEST(WalkRules, EveryNewNodeNamesItsPredecessor) {
  expect_rejected(Bug::no_predecessor, [] {
    Scene scene(kLog);
    scene.fill(kItems, "old");
    const HeldHere held(*scene.map, scene.context);
    for (int i = 0; i < 4 * kItems; ++i) scene.a.put(Scene::key(i), Scene::value(i, "new"));
    return differs("items at the held version", Scene::filled(kItems, "old"),
                   scene.b.scan(Op::scan, "", "", held.read()));
  });
}

TEST(WalkRules, ANewRootNamesItsPredecessor) {
  expect_rejected(Bug::root_without_predecessor, [] {
    Scene scene(kLog);
    scene.fill(kItems);
    const HeldHere held(*scene.map, scene.context);
    for (int i = 0; i < kItems; ++i) scene.a.erase(Scene::key(i));
    return differs("items before the tree was emptied", Scene::filled(kItems),
                   scene.b.scan(Op::scan, "", "", held.read()));
  });
}

// The root leads to all versions, so a walk without a predecessor may still get there, by a detour.
// The second predecessor avoids that detour.
TEST(WalkRules, AMergedNodeNamesBothPredecessors) {
  expect_rejected(Bug::one_predecessor_of_two, []() -> Wrong {
    constexpr int kMany = 4 * kItems;  // leaves are left after merging
    Scene scene(kLog);
    scene.fill(kMany);
    const HeldHere held(*scene.map, scene.context);
    for (int i = 0; i < kMany; ++i) {
      if (i % 4 != 0) scene.a.erase(Scene::key(i));
    }
    if (scene.map->merges == 0) return "nothing was merged";
    const std::uint64_t root = scene.map->table.get(scene.map->root).offset();
    for (int i = 0; i < kMany; ++i) {
      ReadFrom from = held.read();
      from.hint = scene.leaf_of(Scene::key(i));
      const Wrong wrong =
          differs("item at the held version", Scene::value(i), scene.b.get(Scene::key(i), from));
      if (!wrong.empty()) return wrong;
      if (std::ranges::count(scene.b.visited(), root) != 0) return "it went back to the root";
    }
    return {};
  });
}

// --- rule 9: going left --------------------------------------------------------------------------

TEST(WalkRules, ADescendingWalkTakesTheHighEndForInside) {
  expect_rejected(Bug::descending_like_ascending, []() -> Wrong {
    Scene scene(kLog);
    scene.fill(kItems);
    for (const std::string& border : scene.borders()) {
      std::vector<std::string> below = Scene::filled(kItems);
      std::erase_if(below, [&](const std::string& item) { return item >= border; });
      std::reverse(below.begin(), below.end());
      const Wrong wrong =
          differs("items below a border", below, scene.b.scan(Op::scan_reverse, "", border));
      if (!wrong.empty()) return wrong;
    }
    return {};
  });
}

TEST(WalkRules, AFloorGoesLeftOverLeavesThatHoldNothing) {
  expect_rejected(Bug::floor_stays_in_leaf, []() -> Wrong {
    Scene scene(kLog);
    scene.fill(kItems);
    for (int i = 1; i < kItems; ++i) {
      // The smallest key of the leaf, if it is that, is read, erased and read again.
      const std::string key = Scene::key(i);
      Wrong wrong = differs("floor", key + "=" + Scene::value(i), scene.b.floor(key));
      if (!wrong.empty()) return wrong;
      scene.a.erase(key);
      wrong = differs("floor of an erased key", Scene::key(0) + "=" + Scene::value(0),
                      scene.b.floor(key));
      if (!wrong.empty()) return wrong;
    }
    return {};
  });
}

// --- the log -------------------------------------------------------------------------------------

TEST(WalkRules, AMarkerHidesTheItem) {
  expect_rejected(Bug::ignore_erase_marks, []() -> Wrong {
    Scene scene(kLog);
    scene.a.put("k", "v");
    scene.a.put("l", "v");
    scene.a.erase("k");
    const Wrong wrong = differs("an erased key", std::string(Actor::kNothing), scene.b.get("k"));
    if (!wrong.empty()) return wrong;
    return differs("items left", {"l=v"}, scene.b.scan(Op::scan, "", ""));
  });
}

TEST(WalkRules, OrderHintsSortTheLog) {
  expect_rejected(Bug::wrong_order_hint, [] {
    Scene scene(kLog);
    // The log takes four entries: with the fifth they become a sorted block.
    for (const char* key : {"c", "a", "d", "b", "e"}) scene.a.put(key, "v");
    return differs("items in order", {"a=v", "b=v", "c=v", "d=v", "e=v"},
                   scene.b.scan(Op::scan, "", ""));
  });
}

}  // namespace
}  // namespace espalier::test
