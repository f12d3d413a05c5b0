// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/append_call.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "catalog/unflushed_age.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/append_run.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/offload/table_session.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {
namespace {

// So long an append rests that waits for another's end.
constexpr std::uint64_t kAppendAgainNs = 200'000;

// Has a helper go on with it.
Next go_on_appending(Call& call, AppendState& state) {
  return call.helper_steps([&run = *state.run](StepContext& context) {
    while (run.step() == table::AppendRun::Step::again) {
      if (context.should_return()) return JobStep::again;
    }
    return JobStep::done;
  });
}

}  // namespace

AppendState::AppendState() = default;
AppendState::~AppendState() = default;

Next fail_for_part_of_a_row(Call& call, std::uint32_t row_bytes) {
  return call.fail({Code::invalid_argument, 0, row_bytes},
                   "not a whole number of rows of " + std::to_string(row_bytes) + " bytes");
}

Next begin_append(Call& call, AppendState& state, std::string_view reservation,
                  std::unique_ptr<const table::AppendSource> source, std::uint64_t rows) {
  if (catalog::must_wait_for_disk(*state.table)) return call.after_release();
  std::optional<table::ReservationClaim> claim;
  if (!reservation.empty()) {
    ESPALIER_ASSERT(reservation.size() == sizeof claim->number);
    claim.emplace().reserver = TableSession::reserver_of(call.connection());
    std::memcpy(&claim->number, reservation.data(), sizeof claim->number);
  }
  state.source = std::move(source);
  state.run =
      std::make_unique<table::AppendRun>(*state.table, *state.source, rows, std::move(claim));
  return go_on_appending(call, state);
}

Next end_append(Call& call, AppendState& state) {
  if (std::exchange(state.waits, false)) return go_on_appending(call, state);
  if (!state.run->ended()) {
    state.waits = true;
    return call.at(base::monotonic_ns() + kAppendAgainNs);
  }
  const table::AppendRun::Appended& result = state.run->result();
  if (!result) {
    const table::AppendError& error = result.error();
    return call.fail(error.error, table::describe(error, state.table->schema()));
  }
  return answer(call, table_calls::Appended{*result});
}

}  // namespace espalier::offload
