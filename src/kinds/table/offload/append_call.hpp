// SPDX-License-Identifier: Apache-2.0
// Shared code of calls that append rows, from the message or from a written window: the state,
// which a helper thread fills in, and the answer.
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
  std::unique_ptr<table::AppendRun> run;  // null: not started
  bool waits = false;                     // for the end of another append
};

Next fail_for_part_of_a_row(Call& call, std::uint32_t row_bytes);

/// Appends rows of a source, which the state owns from now on. If the state has no run afterwards,
/// call it again: too many records wait for the disk. `reservation`: for an encrypted table, the
/// number of a reservation of its session to fill; else empty.
Next begin_append(Call& call, AppendState& state, std::string_view reservation,
                  std::unique_ptr<const table::AppendSource> source, std::uint64_t rows);

/// After the helper's steps: answers with the number of the first row, or the error; or waits again
/// for the turn.
Next end_append(Call& call, AppendState& state);

}  // namespace espalier::offload
