// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of regions at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::region {

enum class Bug : std::uint8_t {
  none,
  keys_kept,                // a drop leaves the keys of sessions good
  gate_open,                // a drop lets this process's threads go on
  not_counted,              // a region takes nothing of its store's limit
  key_kept_beside_another,  // a session that asks for another key keeps the one before
};

using base::planted;

}  // namespace espalier::region
