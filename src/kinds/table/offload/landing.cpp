// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that WRITE: windows of memory to write into, and rows that lie there.
#include <memory>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "engine/connection.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/offload/append_call.hpp"
#include "kinds/table/offload/landing_host.hpp"
#include "kinds/table/offload/table_offloads.hpp"
#include "kinds/table/table.hpp"

namespace espalier::offload {
namespace {

constexpr const char* kNoWindow = "this session has no such window";

Next open_window(Call& call, const table_calls::OpenWindow& asked) {
  LandingHost* const host = LandingHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto opened = host->open(asked.bytes);
  if (!opened) return call.fail(opened.error());
  wire::LandingGrant grant{};
  grant.window = opened->window;
  grant.base = opened->region.base;
  grant.bytes = opened->region.bytes;
  grant.key = opened->region.key;
  return answer(call, table_calls::WindowOpened{grant});
}

Next close_window(Call& call, const table_calls::CloseWindow& asked) {
  LandingHost* const host = LandingHost::of(call.connection());
  if (host == nullptr || !host->close(asked.window)) {
    return call.fail({Code::not_found, 0, 0}, kNoWindow);
  }
  return answer(call, wire::Nothing{});
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
Next begin_commit(Call& call, AppendState& state, const table_calls::Commit& asked) {
  const wire::LandedRows& rows_there = asked.rows;
  LandingHost* const host = LandingHost::of(call.connection());
  auto window = host == nullptr ? nullptr : host->find(rows_there.window);
  if (!window) return call.fail({Code::not_found, 0, 0}, kNoWindow);
  state.table = call.services().catalog().find<table::Table>(asked.table);
  if (!state.table) return call.fail({Code::not_found, 0, asked.table});
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
  return begin_append(call, state, asked.reservation,
                      std::make_unique<LandedSource>(std::move(window), rows_there.offset),
                      rows_there.bytes / row_bytes);
}

Next commit(Call& call, const table_calls::Commit& asked) {
  AppendState& state = call.state<AppendState>();
  return state.run ? end_append(call, state) : begin_commit(call, state, asked);
}

const Offload kLandingOffloads[] = {
    serve<table_calls::OpenWindow, open_window>(),
    serve<table_calls::CloseWindow, close_window>(),
    serve<table_calls::Commit, commit>(),
};

}  // namespace

std::span<const Offload> landing_offloads() { return kLandingOffloads; }

}  // namespace espalier::offload
