// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of embedding tables at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::embedding {

enum class Bug : std::uint8_t {
  none,
  torn_row_believed,     // what was read is believed whatever the sequences of its pages say
  sequence_not_moved,    // a replacement leaves the sequence of its page as it is
  rows_counted_early,    // an append counts its rows before they are there
  record_after_publish,  // a record is handed over when its rows are visible
};

using base::planted;

}  // namespace espalier::embedding
