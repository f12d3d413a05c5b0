// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that WRITE: windows of memory to write into, and rows that lie there.
#include <memory>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "offload/append_call.hpp"
#include "offload/connection.hpp"
#include "offload/landing_host.hpp"
#include "offload/payload_reader.hpp"
#include "table/table.hpp"
#include "wire/landing.hpp"

namespace espalier::offload {
namespace {

constexpr const char* kNoWindow = "this session has no such window";

Next landing_open(Call& call) {
  LandingHost* const host = call.connection().landing.get();
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto opened = host->open(PayloadReader(call.payload()).take<std::uint64_t>());
  if (!opened) return call.fail(opened.error());
  wire::LandingGrant grant{};
  grant.window = opened->window;
  grant.base = opened->region.base;
  grant.bytes = opened->region.bytes;
  grant.key = opened->region.key;
  return call.answer({}, {base::bytes_of(grant)});
}

Next landing_close(Call& call) {
  LandingHost* const host = call.connection().landing.get();
  const auto window = PayloadReader(call.payload()).take<std::uint64_t>();
  if (host == nullptr || !host->close(window)) {
    return call.fail({Code::not_found, 0, 0}, kNoWindow);
  }
  return call.answer({});
}

/// Rows in a window. The window lasts as long as this.
class LandedSource final : public table::AppendSource {
 public:
  LandedSource(std::shared_ptr<const LandingWindow> window, std::uint64_t offset)
      : window_(std::move(window)), offset_(offset) {}
  void copy(std::uint64_t offset, std::span<std::byte> into) const override {
    // All of it is there: the window keeps its length, and this was checked against it.
    const auto copied = window_->region().read_once(offset_ + offset, into);
    ESPALIER_ASSERT(copied.size() == into.size());
  }

 private:
  std::shared_ptr<const LandingWindow> window_;
  std::uint64_t offset_;
};

// The first step of a commit: everything that the client says is checked here.
Next begin_commit(Call& call, AppendState& state) {
  const auto rows_there = PayloadReader(call.payload()).take<wire::LandedRows>();
  LandingHost* const host = call.connection().landing.get();
  auto window = host == nullptr ? nullptr : host->find(rows_there.window);
  if (!window) return call.fail({Code::not_found, 0, 0}, kNoWindow);
  state.table = call.services().catalog().find<table::Table>(call.map_number());
  if (!state.table) return call.fail({Code::not_found, 0, call.map_number()});
  const std::uint32_t row_bytes = state.table->schema().row_bytes();
  const std::uint64_t bytes = window->region().bytes();
  if (rows_there.offset > bytes || rows_there.bytes > bytes - rows_there.offset ||
      rows_there.offset % 8 != 0) {
    return call.fail({Code::invalid_argument, 0, 0},
                     "the rows do not lie in the window, at a multiple of 8 bytes");
  }
  if (rows_there.bytes % row_bytes != 0) {
    return fail_for_part_of_a_row(call, row_bytes);
  }
  return begin_append(call, state,
                      std::make_unique<LandedSource>(std::move(window), rows_there.offset),
                      rows_there.bytes / row_bytes);
}

Next table_commit(Call& call) {
  AppendState& state = call.state<AppendState>();
  return state.run ? end_append(call, state) : begin_commit(call, state);
}

constexpr Limits kWord{.payload_bytes_min = 8, .payload_bytes_max = 8};

const Offload kLandingOffloads[] = {
    {.id = wire::OffloadId::landing_open,
     .name = "landing_open",
     .format = "8 bytes: how many the client wants to write",
     .summary = "gives this session a window of memory to WRITE; answers a LandingGrant",
     .right = Right::write,
     .limits = kWord,
     .step = landing_open},
    {.id = wire::OffloadId::landing_close,
     .name = "landing_close",
     .format = "8 bytes: the window's number",
     .summary = "takes a window back",
     .right = Right::write,
     .limits = kWord,
     .step = landing_close},
    {.id = wire::OffloadId::table_commit,
     .name = "table_commit",
     .format = "map: the table's id; payload: LandedRows; key: of an encrypted table, a "
               "reservation's number",
     .summary = "appends all rows that lie in a window, or none; answers the number of the first",
     .right = Right::write,
     .limits = {.key_bytes_max = sizeof(std::uint64_t),
                .payload_bytes_min = sizeof(wire::LandedRows),
                .payload_bytes_max = sizeof(wire::LandedRows)},
     .object = Names::by_id,
     .step = table_commit},
};

}  // namespace

std::span<const Offload> landing_offloads() { return kLandingOffloads; }

}  // namespace espalier::offload
