// SPDX-License-Identifier: Apache-2.0
// Looks up one key in one leaf.
#pragma once

#include "espalier/types.hpp"
#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {

/// Fills in `value` and `version` of the answer; returns whether the key exists.
/// Requires: the probe's chunk and the log are at hand.
inline bool find_point(const SearchKey& key, const NodeView& leaf, const LeafProbe& probe,
                       std::uint64_t read_version, Completion& answer, bool& out_of_line) {
  if (probe.log_matches != 0) {
    if (const auto entry = find_in_log(leaf, key, probe.log_matches, read_version)) {
      if (entry->erase() && !planted(Bug::ignore_erase_marks)) return false;
      out_of_line = entry->out_of_line;
      answer.value = {entry->value, entry->value_bytes};
      answer.version = entry->version;
      return true;
    }
  }
  SortedItem item;
  if (!find_sorted(leaf, key, probe, item)) return false;
  out_of_line = item.out_of_line;
  answer.value = {item.value, item.value_bytes};
  answer.version = leaf.created();
  return true;
}

}  // namespace espalier::tree
