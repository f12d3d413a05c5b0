// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of regions at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::region {

enum class Bug : std::uint8_t {
  none,
  keys_kept,                // a drop does not revoke the keys of sessions
  gate_open,                // a drop does not stop this process's threads
  not_counted,              // a region is not charged to its store's limit
  key_kept_beside_another,  // a request for another key does not revoke the previous one
};

using base::planted;

}  // namespace espalier::region
