// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the memory at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::memory {

enum class Bug : std::uint8_t {
  none,
  extent_changes_class,  // an empty extent of nodes is cut into values
};

using base::planted;

}  // namespace espalier::memory
