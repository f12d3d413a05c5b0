// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of links to peers at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::peer {

enum class Bug : std::uint8_t {
  none,
  session_not_ended,  // the next session is opened while the peer may know the one before
};

using base::planted;

}  // namespace espalier::peer
