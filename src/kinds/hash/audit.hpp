// SPDX-License-Identifier: Apache-2.0
// The check of a whole hash map: each record reachable once, in the bin that its hash has, with the
// right tag; chains dense and bounded; links in order, each with one entry; headers of this map and
// its parts, and generations of bins those of their segments; memory in use, in stock, free and
// waiting together all that there is.
//
// Requires: no thread writes meanwhile, and none has since RecordStore::trim().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

struct HashAudit {
  std::vector<std::string> wrong;  ///< what is wrong, as sentences
  std::uint64_t items = 0;
  std::uint64_t links = 0;          ///< that stay, as somebody may need what is older
  std::uint32_t longest_chain = 0;  ///< buckets
  std::uint64_t overflow_buckets = 0;
  /// Buffers that the map has of each class, those that wait for readers included; of long values
  /// those that records in use name.
  std::array<std::uint64_t, memory::kClasses> buffers{};
};

[[nodiscard]] HashAudit audit(const HashMap& map);

}  // namespace espalier::hash
