// SPDX-License-Identifier: Apache-2.0
// What must hold of a key's item for a write to happen: one vocabulary for calls, batches, the tree
// and the wire.
#pragma once

#include <cstdint>
#include <string_view>

namespace espalier {

/// The numbers are the protocol's: never reused.
enum class ConditionKind : std::uint8_t {
  none = 0,     ///< always holds
  absent = 1,   ///< the key has no item
  present = 2,  ///< the key has an item
  value = 3,    ///< its item has this value
  version = 4,  ///< its item has this version
};

struct Condition {
  ConditionKind kind = ConditionKind::none;
  std::uint64_t version = 0;  ///< of kind version
  std::string_view value{};   ///< of kind value
};

}  // namespace espalier
