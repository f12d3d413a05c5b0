// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of what sessions are given at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::offload {

enum class Bug : std::uint8_t {
  none,
  lease_without_end,  // rule 4: one that is not renewed holds memory back for ever
  lease_not_fenced,   // rule 4: a lease ends while its reader's key is good
};

using base::planted;

}  // namespace espalier::offload
