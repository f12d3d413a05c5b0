// SPDX-License-Identifier: Apache-2.0
// What must hold of a reclaimer, as checks that tests run on a good one and on a broken one.
#pragma once

#include "tree/testing/tree_fixture.hpp"

namespace espalier::tree {

/// A map, and buffers that are retired without ever having been nodes.
class ReclaimerUnderTest {
 public:
  explicit ReclaimerUnderTest(const MapOptions& options = {},
                              std::uint64_t bytes_max = std::uint64_t{256} << 20)
      : tree(options, bytes_max) {}

  /// Retires a fresh buffer at `version`; returns where it lies.
  std::uint64_t retire(std::uint64_t version) {
    const std::uint64_t offset = *tree.context().cache.allocate(tree.map().node_class);
    go_live(tree.map().at(offset), version);
    retire(tree.map(), {offset, version, tree.map().node_class, 0});
    return offset;
  }
  void retire(MapCore& map, const Retired& one) {
    EXPECT_TRUE(tree.context().retired.reserve(1));
    reclaimer().retire(map, tree.context().retired, {&one, 1});
  }
  /// Collects as often as it takes for what can be freed to be freed.
  void collect() {
    for (int i = 0; i < 4; ++i) reclaimer().collect(tree.context().cache);
  }
  [[nodiscard]] bool freed(std::uint64_t offset) {
    return base::load_plain<wire::BufferHeader>(tree.map().at(offset)).superseded == 0;
  }
  Reclaimer& reclaimer() { return tree.store().reclaimer; }

  TreeFixture tree;
};

/// Whether a buffer stays until the version that ended it is released, although no reader is there
/// now, and still from a reader that came before that.
inline bool waits_for_the_release() {
  ReclaimerUnderTest under;
  VersionClock& clock = under.tree.map().clock;
  const std::uint64_t version = clock.take();
  const std::uint64_t offset = under.retire(version);
  under.collect();
  auto reader = std::move(*under.tree.store().epochs.join());
  reader.enter();  // it reads at a version before the one that is still open
  clock.done(version);
  under.collect();
  const bool kept = !under.freed(offset);
  reader.exit();
  under.collect();
  return kept && under.freed(offset);
}

/// Whether a buffer stays for a snapshot that may need it, and goes when that does.
inline bool keeps_what_snapshots_need() {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const auto held = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t version = map.clock.take();
  map.clock.done(version);
  const std::uint64_t offset = under.retire(version);
  under.collect();
  const bool kept = !under.freed(offset);
  under.reclaimer().drop(map, held);
  under.collect();
  return kept && under.freed(offset);
}

/// Whether snapshots expire for who needs memory, the oldest first, and no more of them than that
/// takes.
inline bool gives_what_snapshots_hold() {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const auto retire_some = [&] {
    std::uint64_t offset = 0;
    for (std::uint64_t bytes = 0; bytes < Reclaimer::kDueBytes; bytes += map.options.node_bytes) {
      const std::uint64_t version = map.clock.take();
      map.clock.done(version);
      offset = under.retire(version);
    }
    return offset;
  };
  const auto first = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t of_first = retire_some();
  const auto second = under.reclaimer().hold(map, map.clock.released());
  const std::uint64_t of_second = retire_some();
  under.collect();
  bool good = !under.freed(of_first) && !under.freed(of_second);
  good = good && under.reclaimer().expire_oldest();
  under.collect();
  good = good && first->expired && under.freed(of_first);
  good = good && !second->expired && !under.freed(of_second);
  good = good && under.reclaimer().expire_oldest();
  under.collect();
  good = good && second->expired && under.freed(of_second);
  good = good && !under.reclaimer().expire_oldest();  // there is none any more
  under.reclaimer().drop(map, first);
  under.reclaimer().drop(map, second);
  return good;
}

/// Whether what a walk at a version reads stays for it when that version expires, even where it was
/// stamped before the walk began: until then only the version kept it.
inline bool keeps_what_walks_at_expiring_versions_read() {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  const auto retire_one = [&] {
    const std::uint64_t version = map.clock.take();
    map.clock.done(version);
    return under.retire(version);
  };
  const auto held = under.reclaimer().hold(map, map.clock.released());
  retire_one();
  under.collect();  // it is held, so that there is something to expire
  auto before = std::move(*under.tree.store().epochs.join());
  before.enter();
  const std::uint64_t offset = retire_one();
  under.collect();  // stamps it; the reader keeps it from being looked at
  auto walk = std::move(*under.tree.store().epochs.join());
  walk.enter();
  bool good = !held->has_expired();
  good = good && under.reclaimer().expire_oldest();
  before.exit();
  under.collect();
  good = good && !under.freed(offset);
  walk.exit();
  under.collect();
  good = good && under.freed(offset);
  under.reclaimer().drop(map, held);
  return good;
}

/// Whether what a walk has found stays while its epoch is pinned, although the walk has ended.
inline bool keeps_what_is_pinned() {
  ReclaimerUnderTest under;
  MapCore& map = under.tree.map();
  auto walk = std::move(*under.tree.store().epochs.join());
  walk.enter();
  const std::uint64_t version = map.clock.take();
  map.clock.done(version);
  const std::uint64_t offset = under.retire(version);
  base::EpochPin pin = under.tree.store().epoch_pins.pin(walk.exposed());
  walk.exit();
  under.collect();
  const bool kept = !under.freed(offset) && under.reclaimer().waits_for_pins();
  pin = base::EpochPin();
  under.collect();
  return kept && under.freed(offset) && !under.reclaimer().waits_for_pins();
}

/// Whether a walk at a version that has expired answers that, and no other.
inline bool refuses_expired_versions() {
  ReclaimerUnderTest under({.node_bytes = 512});
  MapCore& map = under.tree.map();
  under.tree.put("key", "before");
  const auto held = under.reclaimer().hold(map, map.clock.released());
  const auto read = [&] {
    const Request get = TreeFixture::request(Op::get, "key");
    return under.tree.run(get, *held);
  };
  for (int i = 0; i < 200; ++i) under.tree.put("key", "after" + std::to_string(i));
  under.collect();
  const auto before = read();
  bool good = before.completion.ok && before.value == "before";
  good = good && under.reclaimer().expire_oldest();
  const auto after = read();
  good = good && !after.completion.ok && after.completion.error.code == Code::snapshot_expired;
  under.reclaimer().drop(map, held);
  return good;
}

}  // namespace espalier::tree
