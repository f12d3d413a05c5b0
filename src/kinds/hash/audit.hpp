// SPDX-License-Identifier: Apache-2.0
// Checks a whole hash map: each record is reachable once, in the bin that its hash selects, with
// the right tag; chains are dense and bounded; version links are in order, each with one entry;
// headers name this map and its parts, and generations of bins are those of their segments; memory
// in use, in stock, free and retired adds up to the total.
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
  std::vector<std::string> wrong;  ///< violations, as sentences
  std::uint64_t items = 0;
  std::uint64_t links = 0;          ///< that stay, as a reader may need what is older
  std::uint32_t longest_chain = 0;  ///< buckets
  std::uint64_t overflow_buckets = 0;
  /// Buffers of the map by class, including those that wait for readers; of long values only those
  /// that records in use name.
  std::array<std::uint64_t, memory::kClasses> buffers{};
};

[[nodiscard]] HashAudit audit(const HashMap& map);

}  // namespace espalier::hash
