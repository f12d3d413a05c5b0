// SPDX-License-Identifier: Apache-2.0
// Fault injection: switches that break one rule of embedding tables at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::embedding {

enum class Bug : std::uint8_t {
  none,
  torn_row_believed,        // rows are used whatever the sequences of their pages
  sequence_not_moved,       // a replacement does not change the sequence of its page
  rows_counted_early,       // an append counts its rows before they are stored
  record_after_publish,     // a record is handed over after its rows are visible
  rows_before_durable,      // readers see rows that a crash can still lose
  rows_counted_last,        // durable rows are counted behind replacements of later records
  group_not_unmemoised,     // a replacement leaves its group's sums to be read meanwhile
  sums_not_recomputed,      // a replacement leaves the sums of its group as they were
  old_sums_believed,        // sums are believed whatever the sequences of their pages say
  one_store_counted,        // of several rows of a page of sums the first is the last, too
  group_border_off_by_one,  // the last sum of a group is read from the next one
  repeated_id_once,         // an id that a bag has twice is summed once
  name_asked_once,          // a writer asks for the table's name before its lock alone
  summed_when_taken,        // a node sums a request's rows before it has taken others of its turn
  // Of readers elsewhere (remote/bag_reader.hpp):
  header_not_looked_at,  // rows are believed whatever the header behind them says
  old_list_believed,     // no reader looks whether another page list has replaced the first
  proof_with_rows,       // what proves rows is asked for with them, where READs keep no order
};

using base::planted;

}  // namespace espalier::embedding
