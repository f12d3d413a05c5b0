// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of tables at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::table {

enum class Bug : std::uint8_t {
  none,
  rows_counted_early,    // an append counts its rows before they are copied
  source_read_twice,     // copies by a second read, after the check
  null_is_zero,          // a null of a row is the value 0
  overflow_group_lost,   // a row whose group does not fit is left out
  slot_given_twice,      // slots of an abandoned reservation are issued again
  read_not_confirmed,    // rows read by READs are returned unconfirmed
  record_after_publish,  // a record is written after its rows are visible
  rows_before_durable,   // rows are visible although a crash can still lose them
};

using base::planted;

}  // namespace espalier::table
