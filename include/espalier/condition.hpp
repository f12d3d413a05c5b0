// SPDX-License-Identifier: Apache-2.0
// Preconditions of a conditional write. Calls, batches, the tree and the wire format share these
// types.
#pragma once

#include <cstdint>
#include <string_view>

namespace espalier {

/// The numbers are part of the protocol: never reused.
enum class ConditionKind : std::uint8_t {
  none = 0,     ///< always holds
  absent = 1,   ///< the key has no item
  present = 2,  ///< the key has an item
  value = 3,    ///< its item has this value
  version = 4,  ///< its item has this version
};

struct Condition {
  ConditionKind kind = ConditionKind::none;
  std::uint64_t version = 0;  ///< for kind version
  std::string_view value{};   ///< for kind value
};

}  // namespace espalier
