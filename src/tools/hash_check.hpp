// SPDX-License-Identifier: Apache-2.0
// Examines a hash map from outside: a walk delivers as many items as the map says that it has, and
// gets find what the walk delivers, while others use it. What changed meanwhile is no fault;
// whether anything may have, versions tell.
//
// What this cannot see: how the table is built, what memory is lost, and wrong answers that agree.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "espalier/hash_map.hpp"

namespace espalier::tools {

struct HashCheckOptions {
  /// Nobody writes meanwhile. If not, and the map has no versions, only the walk itself is looked
  /// at.
  bool steady = false;
  /// Of the first so many items each is asked for by a get, of those behind every 16th.
  std::uint64_t all_of_first = 4096;
};

struct HashCheckReport {
  static constexpr std::size_t kFaultsMax = 20;

  std::uint64_t items = 0;
  std::uint64_t gets = 0;
  bool quiet = false;               ///< nobody wrote meanwhile, so that all could be compared
  std::vector<std::string> faults;  ///< a sentence each; the first ones
  /// What ended the check before its end, and says nothing about the map: the node is gone, ...
  std::optional<Error> stopped_by;
};

/// Runs the check. `progress` is told of the items looked at so far.
/// Cost: reads all of the map; on a node as HashMap::walk, and a round trip for each get.
[[nodiscard]] HashCheckReport check_hash_map(
    const HashMap& map, const HashCheckOptions& options,
    const std::function<void(std::uint64_t items)>& progress);

}  // namespace espalier::tools
