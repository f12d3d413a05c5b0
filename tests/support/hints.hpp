// SPDX-License-Identifier: Apache-2.0
// Where walks may enter a map besides its root: current nodes, former nodes, and references that
// never named a node. All that a cache of references may have, and more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// Entry points for the walkers of one thread.
class Hints {
 public:
  Hints(const tree::MapCore& map, std::uint64_t seed) : map_(&map), random_(seed) {}
  /// Switches to another map; former nodes of an earlier one are still offered.
  void follow(const tree::MapCore& map) { map_ = &map; }

  /// A current node of the map, or none.
  wire::Ref current() {
    constexpr wire::Lid kFirst = (wire::kHeaderWords << wire::kTablePageShift) + wire::kHeaderWords;
    const auto lids = static_cast<wire::Lid>(map_->table.in_use() + 8);
    const wire::Ref ref = map_->table.get(kFirst + static_cast<wire::Lid>(random_.below(lids)));
    if (ref) remember(ref);
    return ref;
  }
  /// A former node: by now perhaps superseded, free, or something else.
  wire::Ref remembered() { return seen_.empty() ? wire::Ref{} : random_.pick(seen_); }
  /// A predecessor or successor that a perhaps freed node names.
  wire::Ref linked() {
    const tree::NodeView node = map_->view(remembered());
    const wire::Ref refs[] = {node.old_ref(), node.old2_ref(), node.successor_ref()};
    const wire::Ref ref = random_.pick(refs);
    // Other memory may hold any bytes there.
    return ref.offset() + map_->geometry.node_bytes <= map_->store.region.bytes() ? ref
                                                                                  : wire::Ref{};
  }
  /// The same place, with its present generation.
  wire::Ref refreshed() {
    const wire::Ref ref = remembered();
    return wire::Ref::make(ref.offset(), map_->view(ref).generation());
  }
  /// The same place, with a future or an old generation.
  wire::Ref with_another_generation() {
    const wire::Ref ref = remembered();
    return wire::Ref::make(ref.offset(),
                           ref.generation() + 4 - static_cast<std::uint32_t>(random_.below(8)));
  }
  wire::Ref any() {
    switch (random_.below(6)) {
      case 0: return current();
      case 1: return remembered();
      case 2: return seen_.empty() ? wire::Ref{} : linked();
      case 3: return seen_.empty() ? wire::Ref{} : refreshed();
      case 4: return seen_.empty() ? wire::Ref{} : with_another_generation();
      default: return {random_()};  // mostly outside the region
    }
  }

 private:
  void remember(wire::Ref ref) {
    constexpr std::size_t kMost = 1000;
    if (seen_.size() < kMost) {
      seen_.push_back(ref);
    } else {
      seen_[random_.below(kMost)] = ref;
    }
  }

  const tree::MapCore* map_;
  Random random_;
  std::vector<wire::Ref> seen_;
};

}  // namespace espalier::test
