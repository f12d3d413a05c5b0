// SPDX-License-Identifier: Apache-2.0
// For tests: conditions of a feed that must not mislead its readers, each with a planted bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kinds/map/remote/testing/feed_table.hpp"

namespace espalier::place {

/// Has a node move, and shows the reader its entry with every combination of old words. Returns how
/// many of these it accepted. Requires: the reader has taken all entries.
inline std::uint64_t halves_taken(FeedTable& table, FeedReader& reader, std::uint64_t version) {
  constexpr std::size_t kWords = sizeof(wire::FeedEntry) / 8;
  std::byte* const at = table.region().at(reader.cursor().entries_offset());
  std::uint64_t before[kWords];
  std::memcpy(before, at, sizeof before);
  table.move(5, version);
  std::uint64_t now[kWords];
  std::memcpy(now, at, sizeof now);
  reader.poll();  // reads the header, whose tail includes the entry
  reader.bring();
  std::uint64_t taken = 0;
  for (unsigned old = 1; old + 1 < 1u << kWords; ++old) {
    FeedReader one = reader;
    std::uint64_t mixed[kWords];
    for (std::size_t i = 0; i < kWords; ++i) mixed[i] = (old >> i & 1) != 0 ? before[i] : now[i];
    if (std::memcmp(mixed, now, sizeof now) == 0) continue;
    std::memcpy(one.landing().entries.data(), mixed, sizeof mixed);
    const std::uint64_t had = one.taken();
    one.take();
    taken += one.taken() - had;
  }
  return taken;
}

/// Has a reader begin in the middle of a change. Returns whether it learned of the change.
/// Requires: a build with moments (planted_tree_bugs.hpp); elsewhere no reader begins.
inline bool knows_a_change_of_its_beginning() {
  FeedTable table(8);
  FeedReader first = table.follow();
  first.catch_up();
  std::optional<FeedReader> second;
#if defined(ESPALIER_PLANTED_BUGS)
  tree::on_moment = [&](tree::Moment moment) {
    if (moment != tree::Moment::feed_claimed) return;
    second.emplace(table.follow());
    second->poll();
  };
#endif
  table.move(3, 1);
#if defined(ESPALIER_PLANTED_BUGS)
  tree::on_moment = nullptr;
#endif
  if (!second) return false;
  second->catch_up();
  return table.knows_all(*second);
}

}  // namespace espalier::place
