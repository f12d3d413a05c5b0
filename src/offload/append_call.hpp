// SPDX-License-Identifier: Apache-2.0
// What offloads that append rows have in common, whether those came in the message or were written:
// the state, which a helper fills in, and the answer.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "offload/call.hpp"
#include "table/table.hpp"

namespace espalier::offload {

struct AppendState {
  std::shared_ptr<table::Table> table;
  std::optional<std::expected<std::uint64_t, table::AppendError>> done;
};

inline Next fail_for_part_of_a_row(Call& call, std::uint32_t row_bytes) {
  return call.fail({Code::invalid_argument, 0, row_bytes},
                   "not a whole number of rows of " + std::to_string(row_bytes) + " bytes");
}

/// The number of the first row, or why nothing was appended. Requires: it is done.
inline Next answer_append(Call& call, const AppendState& state) {
  if (!*state.done) {
    const table::AppendError& error = state.done->error();
    return call.fail(error.error, table::describe(error, state.table->schema()));
  }
  wire::ResponseHeader header{};
  header.version = **state.done;
  return call.answer(header);
}

}  // namespace espalier::offload
