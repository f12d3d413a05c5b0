// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of tables in switches at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::dataplane {

enum class Bug : std::uint8_t {
  none,
  separator_off_by_one,   // a key that equals a separator goes to the left of it
  icrc_not_updated,       // a redirected READ keeps the ICRC of what it was
  flip_waits_for_nobody,  // a copy of the tables is changed while frames use it
};

}  // namespace espalier::dataplane
