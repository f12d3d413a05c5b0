// SPDX-License-Identifier: Apache-2.0
// When memory may be used again (DESIGN §2.1 rules 3 and 5): each rule is broken in turn, and a
// test notices.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "memory/planted_memory_bugs.hpp"
#include "tests/support/copy_walker.hpp"
#include "tests/support/forged_leaf.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

constexpr MapOptions kNoLog{.node_bytes = 512, .log_bytes = 0};  // every write makes a new leaf
constexpr MapOptions kLog{.node_bytes = 512, .log_bytes = 128};

// Which steps of a scan over copies a write comes between: the log's lines were copied before it,
// the count of its entries and their slots after it.
Wrong scan_overtaken_by_an_append() {
  Scene scene(kLog);
  // Until the leaf has an empty log, in a buffer that had a full one of the same layout before.
  std::string last;
  for (int i = 0; i < 100; ++i) {
    last = "value" + Scene::key(i);
    scene.a.put("k", last);
    scene.collect();
    const bool empty = scene.map->node(scene.map->root).lock_word().entries() == 0;
    if (i > 50 && empty) break;
  }
  Clock clock;
  CopyWalker copy(scene.store, *scene.map, 3, clock, 1, 1, CopyMachine::Order::last_line_first);
  const std::size_t lines = scene.map->geometry.node_bytes / 64;
  const std::size_t lines_before_items = scene.map->geometry.sorted_begin / 64;
  bool whole_node = false;
  bool appended = false;
  copy.machine.between_lines = [&](std::size_t left) {
    whole_node = whole_node || left == lines;
    if (!whole_node || left != lines_before_items || std::exchange(appended, true)) return;
    scene.a.put("k", "appended");
  };
  copy.submit({Op::scan, {}, {}, {}, 0});
  copy.drain();
  if (!appended) return "nothing came between the lines";
  const Operation& scan = copy.recorder.log().back();
  return differs("at the scan's version", last,
                 scan.items.empty() ? std::string(Actor::kNothing) : scan.items.front().value);
}

TEST(MemoryRules, ALogIsFilledBeforehand) {
  expect_rejected(Bug::log_not_prefilled, scan_overtaken_by_an_append);
}

// A reader elsewhere keeps references to nodes that are gone. Where their extent was given to
// values, it would be answered from a value that looks like a leaf.
TEST(MemoryRules, AnExtentKeepsWhatItHolds) {
  ASSERT_EQ(keep_references_to_forged_leaves(), "") << "without a bug";
  memory::active_bug = memory::Bug::extent_changes_class;
  const Wrong wrong = keep_references_to_forged_leaves();
  memory::active_bug = memory::Bug::none;
  EXPECT_NE(wrong.find("answered from what is no node"), std::string::npos) << wrong;
}

// Until the superseding version is released, readers may still begin at versions before it.
TEST(MemoryRules, ABufferIsStampedAfterTheReleaseOfWhatSupersededIt) {
  expect_rejected(Bug::stamp_at_unlink, []() -> Wrong {
    Scene scene(kNoLog);
    scene.write({{"k", "old"}});
    const std::uint64_t open = scene.map->clock.take();  // keeps what follows from being released
    scene.write({{"k", "new"}});
    scene.collect();
    const Wrong wrong = differs("before the release", "old", scene.b.get("k"));
    scene.map->clock.done(open);
    if (!wrong.empty()) return wrong;
    return differs("after the release", "new", scene.b.get("k"));
  });
}

TEST(MemoryRules, SnapshotsKeepWhatTheyNeed) {
  expect_rejected(Bug::snapshot_not_held, []() -> Wrong {
    constexpr int kItems = 30;
    Scene scene(kNoLog);
    scene.fill(kItems, "old");
    const HeldHere held(*scene.map, scene.context);
    scene.fill(kItems, "new");
    scene.collect();
    for (int i = 0; i < kItems; ++i) {
      const Wrong wrong = differs("at the held version", Scene::value(i, "old"),
                                  scene.b.get(Scene::key(i), held.read()));
      if (!wrong.empty()) return wrong;
    }
    return {};
  });
}

// A read that stops after so many steps while the value is replaced and others are stored.
Wrong reads_a_whole_value(int steps) {
  constexpr std::size_t kValueBytes = 1000;
  Scene scene(kLog);
  const std::string before(kValueBytes, 'a');
  const std::string after(kValueBytes, 'b');
  scene.a.put("k", before);
  scene.b.begin(Op::get, "k");
  for (int i = 0; i < steps; ++i) scene.b.step();
  scene.a.put("k", after);
  for (int i = 0; i < 200; ++i) scene.a.put(Scene::key(i % 8), std::string(kValueBytes, 'c'));
  scene.collect();
  if (!scene.b.finish()) return "not answered";
  // Its version was read before the first step.
  return differs("a value read while it is replaced", before, scene.b.value_found());
}

TEST(MemoryRules, AValueStaysWhileItIsRead) {
  expect_rejected(Bug::value_freed_at_once, []() -> Wrong {
    for (int steps = 0; steps < 5; ++steps) {
      const Wrong wrong = reads_a_whole_value(steps);
      if (!wrong.empty()) return wrong;
    }
    return {};
  });
}

}  // namespace
}  // namespace espalier::test
