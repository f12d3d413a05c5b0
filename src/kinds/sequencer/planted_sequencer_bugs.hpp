// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of sequencers at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::sequencer {

enum class Bug : std::uint8_t {
  none,
  seal_ignored,     // a number of a sealed epoch counts as valid
  word_believed,    // a word that went backwards is trusted
  page_used_again,  // a new epoch reuses the page of the previous one
  mark_forgotten,   // numbers reserved for adding clients are issued again after a crash
};

using base::planted;

}  // namespace espalier::sequencer
