// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/row_stream.hpp"

#include <algorithm>
#include <utility>

#include "channel/draw_seed.hpp"
#include "kinds/table/client/query_writer.hpp"
#include "kinds/table/client/rows.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/result.hpp"

namespace espalier::client {
namespace {

constexpr std::size_t kGroupsTogether = 1024;

}  // namespace

RowStreamImpl::RowStreamImpl(std::shared_ptr<const WrittenQuery> query,
                             std::unique_ptr<TableRun> run)
    : query_(std::move(query)),
      merge_(std::make_unique<table::ResultMerge>(query_->pipeline, draw_seed())),
      run_(run.release()) {}

RowStreamImpl::~RowStreamImpl() = default;

wire::QueryNumbers RowStreamImpl::numbers() const {
  return run_ && !mark_.is_copy() ? run_->numbers() : numbers_;
}

void RowStreamImpl::end() {
  if (!run_) return;
  run_->end();
  numbers_ = run_->numbers();
  run_.reset();
}

void RowStreamImpl::take_groups(std::vector<std::byte>& rows, std::size_t most) {
  const std::size_t row_bytes = query_->pipeline.result.row_bytes();
  const std::size_t end = std::min(merge_->size(), groups_taken_ + most);
  for (; groups_taken_ < end; ++groups_taken_) {
    const std::byte* const row = merge_->row(groups_taken_);
    rows.insert(rows.end(), row, row + row_bytes);
  }
}

TableResult<bool> RowStreamImpl::pull(std::vector<std::byte>& rows) {
  if (mark_.is_copy()) return fail(Code::forked);
  if (error_) return std::unexpected(*error_);
  while (run_) {
    const auto came = run_->next();
    if (!came) {
      error_ = came.error();
      end();
      return std::unexpected(*error_);
    }
    const bool last = came->empty();
    if (!last) {
      std::span<const std::byte> some = *came;
      // Merging reads them more than once.
      if (run_->may_change() && !merge_->is_streaming()) {
        copy_.assign(some.begin(), some.end());
        some = copy_;
      }
      const std::size_t taken = merge_->take(some) * query_->pipeline.result.row_bytes();
      if (merge_->is_streaming()) {
        rows.insert(rows.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(taken));
      }
    }
    // What comes behind the limit changes nothing.
    if (last || merge_->is_full()) {
      end();
      groups_known_ = !merge_->is_streaming();
    }
    if (!rows.empty()) return true;
  }
  return groups_known_ && groups_taken_ < merge_->size();
}

TableResult<std::optional<Rows>> RowStreamImpl::next() {
  std::vector<std::byte> rows;
  const auto more = pull(rows);
  if (!more) return std::unexpected(more.error());
  if (!*more) return std::nullopt;
  if (groups_known_) take_groups(rows, kGroupsTogether);
  return RowsImpl::handle(query_, std::move(rows));
}

TableResult<Rows> RowStreamImpl::all() {
  std::vector<std::byte> rows;
  std::vector<std::byte> piece;
  for (;;) {
    piece.clear();
    const auto more = pull(piece);
    if (!more) return std::unexpected(more.error());
    rows.insert(rows.end(), piece.begin(), piece.end());
    if (groups_known_) take_groups(rows, merge_->size());
    if (!*more || groups_known_) return RowsImpl::handle(query_, std::move(rows));
  }
}

}  // namespace espalier::client
