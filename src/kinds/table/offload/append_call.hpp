// SPDX-License-Identifier: Apache-2.0
// What offloads that append rows have in common, whether those came in the message or were written:
// the state, which a helper fills in, and the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/call.hpp"
#include "kinds/table/append_source.hpp"

namespace espalier::table {
class AppendRun;
class Table;
}  // namespace espalier::table

namespace espalier::offload {

struct AppendState {
  AppendState();
  ~AppendState();
  AppendState(const AppendState&) = delete;
  AppendState& operator=(const AppendState&) = delete;

  std::shared_ptr<table::Table> table;
  std::unique_ptr<const table::AppendSource> source;
  std::unique_ptr<table::AppendRun> run;  // null: it has not begun
  bool waits = false;                     // for another append's end
};

Next fail_for_part_of_a_row(Call& call, std::uint32_t row_bytes);

/// Appends rows of a source, which the state keeps from now on; or, where the state has no run
/// afterwards, it is to be called again, for too much waits for the disk. `reservation`: the number
/// of one of its session that they fill, where the table is encrypted; else empty.
Next begin_append(Call& call, AppendState& state, std::string_view reservation,
                  std::unique_ptr<const table::AppendSource> source, std::uint64_t rows);

/// Once a helper has given it back: the number of the first row, or why nothing was appended. Or it
/// is another append's turn still.
Next end_append(Call& call, AppendState& state);

}  // namespace espalier::offload
