// SPDX-License-Identifier: Apache-2.0
// Black-box check of a hash map while clients use it: a walk delivers as many items as the map
// reports, and gets find what the walk delivers. Concurrent changes are no fault; versions show
// whether there may be any.
//
// It cannot detect a wrong structure, lost memory, or wrong answers that agree.
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
  /// No client writes meanwhile. If false, and the map has no versions, only the walk itself is
  /// checked.
  bool steady = false;
  /// Each of the first so many items is checked by a get, every 16th of later ones.
  std::uint64_t all_of_first = 4096;
};

struct HashCheckReport {
  static constexpr std::size_t kFaultsMax = 20;

  std::uint64_t items = 0;
  std::uint64_t gets = 0;
  bool quiet = false;               ///< no client wrote meanwhile, so that all was compared
  std::vector<std::string> faults;  ///< a sentence each; the first ones
  /// An error that ended the check early and is not a fault of the map, e.g. a lost connection.
  std::optional<Error> stopped_by;
};

/// Runs the check. `progress` receives the number of items checked so far.
/// Cost: reads all of the map; on a node as HashMap::walk, and a round trip for each get.
[[nodiscard]] HashCheckReport check_hash_map(
    const HashMap& map, const HashCheckOptions& options,
    const std::function<void(std::uint64_t items)>& progress);

}  // namespace espalier::tools
