// SPDX-License-Identifier: Apache-2.0
// When memory may be used again (DESIGN §2.1 rules 3 and 5): each rule is broken in turn, and a test
// notices.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/planting.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

constexpr MapOptions kNoLog{.node_bytes = 512, .log_bytes = 0};  // every write makes a new leaf
constexpr MapOptions kLog{.node_bytes = 512, .log_bytes = 128};

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
    const HeldHere held(*scene.map, scene.worker);
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
