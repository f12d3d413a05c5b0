// SPDX-License-Identifier: Apache-2.0
// When memory may be reused (DESIGN §2.1 rules 3 and 5): each rule is broken in turn, and a test
// detects it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory/planted_memory_bugs.hpp"
#include "tests/support/copy_walker.hpp"
#include "tests/support/forged_leaf.hpp"
#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

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
  copy.submit({Op::scan, {}, {}, {}, 0}, nullptr, scene.map->root_ref());
  copy.drain();
  if (!appended) return "nothing came between the lines";
  const Operation& scan = copy.recorder.log().back();
  return differs("at the scan's version", last,
                 scan.items.empty() ? std::string(Actor::kNothing) : scan.items.front().value);
}

TEST(MemoryRules, ALogIsFilledBeforehand) {
  expect_rejected(Bug::log_not_prefilled, scan_overtaken_by_an_append);
}

// A leaf whose first items were erased, so that a short scan finds too little in the bytes that it
// brings first, and brings the rest.
constexpr int kErased = 14;
const std::string kWhat(24, 'v');
void fill_with_erased_items(Scene& scene) {
  scene.fill(40, kWhat);
  const auto log_entries = [&] { return scene.map->node(scene.map->root).lock_word().entries(); };
  while (log_entries() != 0) scene.a.put(Scene::key(39), Scene::value(39, kWhat));
  for (int i = 0; i < kErased; ++i) scene.a.erase(Scene::key(i));
  if (log_entries() != kErased) throw std::runtime_error("the log does not hold what was erased");
}

// A short scan over copies, while the leaf's buffer becomes another node after so many lines.
Operation scan_of_a_leaf_used_again_after(Scene& scene, std::uint64_t lines) {
  const std::uint32_t bytes = scene.map->geometry.node_bytes;
  std::byte* const leaf = scene.map->at(scene.map->root_ref().offset());
  const std::vector<std::byte> before(leaf, leaf + bytes);
  Clock clock;
  CopyWalker copy(scene.store, *scene.map, 3, clock, 1, 1);
  std::uint64_t seen = 0;
  copy.machine.between_lines = [&](std::size_t) {
    if (seen++ != lines) return;
    for (std::uint32_t i = scene.map->geometry.sorted_begin; i < bytes; ++i)
      leaf[i] ^= std::byte{1};
    leaf[offsetof(wire::BufferHeader, generation)] ^= std::byte{1};
  };
  copy.submit({Op::scan, {}, {}, {}, 2});
  copy.drain();
  std::copy(before.begin(), before.end(), leaf);
  return copy.recorder.log().back();
}

Wrong scan_of_a_leaf_used_again() {
  Scene scene({.node_bytes = 2048, .log_bytes = 512});
  fill_with_erased_items(scene);
  for (std::uint64_t lines = 0; lines < 100; ++lines) {
    const Operation scan = scan_of_a_leaf_used_again_after(scene, lines);
    if (scan.refused) continue;
    for (std::size_t i = 0; i < scan.items.size(); ++i) {
      const Wrong wrong =
          differs("after so many lines: " + std::to_string(lines),
                  Scene::value(kErased + static_cast<int>(i), kWhat), scan.items[i].value);
      if (!wrong.empty()) return wrong;
    }
    if (scan.items.size() != 2) return "items are missing";
  }
  return {};
}

TEST(MemoryRules, TheRestOfALeafIsConfirmedToo) {
  expect_rejected(Bug::rest_not_confirmed, scan_of_a_leaf_used_again);
}

// A remote reader keeps references to freed nodes. If their extent were given to values, a value
// that looks like a leaf could answer it.
TEST(MemoryRules, AnExtentKeepsWhatItHolds) {
  ASSERT_EQ(keep_references_to_forged_leaves(), "") << "without a bug";
  const base::Planted planted(memory::Bug::extent_changes_class);
  const Wrong wrong = keep_references_to_forged_leaves();
  EXPECT_NE(wrong.find("answered from what is no node"), std::string::npos) << wrong;
}

// Until the superseding version is released, readers may still begin at versions before it.
TEST(MemoryRules, ABufferIsStampedAfterTheReleaseOfWhatSupersededIt) {
  expect_rejected(memory::Bug::stamp_at_unlink, []() -> Wrong {
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
  expect_rejected(memory::Bug::snapshot_not_held, []() -> Wrong {
    constexpr int kFewItems = 30;
    Scene scene(kNoLog);
    scene.fill(kFewItems, "old");
    const HeldHere held(*scene.map, scene.context);
    scene.fill(kFewItems, "new");
    scene.collect();
    for (int i = 0; i < kFewItems; ++i) {
      const Wrong wrong = differs("at the held version", Scene::value(i, "old"),
                                  scene.b.get(Scene::key(i), held.read()));
      if (!wrong.empty()) return wrong;
    }
    return {};
  });
}

TEST(MemoryRules, AWalkAtAnExpiredVersionIsRefused) {
  expect_rejected(memory::Bug::snapshot_expiry_ignored, []() -> Wrong {
    Scene scene(kNoLog);
    scene.write({{"k", "old"}});
    const HeldHere held(*scene.map, scene.context);
    scene.write({{"k", "new"}});
    scene.collect();
    Wrong wrong = differs("at the held version", "old", scene.b.get("k", held.read()));
    if (!wrong.empty()) return wrong;
    if (!scene.store.reclaimer.expire_oldest()) return "nothing has expired";
    scene.b.begin(Op::get, "k", {}, held.read());
    if (!scene.b.finish()) return "no answer at the expired version";
    const Completion& refused = scene.b.completion();
    return !refused.ok && refused.error.code == Code::snapshot_expired ? "" : "it was answered";
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
