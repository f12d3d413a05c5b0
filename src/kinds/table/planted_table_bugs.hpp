// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of tables at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::table {

enum class Bug : std::uint8_t {
  none,
  rows_counted_early,    // an append counts its rows before they are copied
  source_read_twice,     // what is copied is not what was checked, but read once more
  null_is_zero,          // a null of a row is the value 0
  overflow_group_lost,   // a row whose group does not fit is left out
  slot_given_twice,      // slots of a reservation that was given up are reserved once more
  read_not_confirmed,    // rows that were read from elsewhere are given out as they came
  record_after_publish,  // a record is handed over when its rows are visible
  rows_before_durable,   // rows are visible although a crash can still lose them
};

using base::planted;

}  // namespace espalier::table
