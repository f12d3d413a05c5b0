// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of sequencers at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::sequencer {

enum class Bug : std::uint8_t {
  none,
  seal_ignored,     // a number of a sealed epoch is taken as good
  word_believed,    // a word that went backwards is taken as it stands
  page_used_again,  // a new epoch has the page of the one before it
  mark_forgotten,   // what was reserved for those who add is given again after a crash
};

using base::planted;

}  // namespace espalier::sequencer
