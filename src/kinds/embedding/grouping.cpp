// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/grouping.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/embedding/redo_record.hpp"

namespace espalier::embedding {
namespace {

constexpr std::size_t kSizesPerPiece = 64 << 10;
constexpr std::uint32_t kPagesPerPiece = 16;
constexpr std::size_t kIdsPerPiece = 4096;
constexpr std::uint64_t kRoomTimeoutNs = 1'000'000'000;

std::unexpected<TableError> no_groups(std::string words) {
  return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, std::move(words)));
}

}  // namespace

Grouping::Grouping(EmbeddingTable& table, const RowGroups& groups)
    : table_(table), groups_(groups), rows_(table.rows()) {}

Grouping::~Grouping() { end(); }

void Grouping::end() {
  stage_ = Stage::over;
  memo_.reset();  // the table has it, if it succeeded
  if (std::exchange(begun_, false)) table_.end_grouping();
}

TableResult<bool> Grouping::step() {
  ESPALIER_ASSERT(stage_ != Stage::over);
  const auto more = piece();
  if (!more || !*more) end();
  return more;
}

TableResult<bool> Grouping::piece() {
  if (table_.dropped()) return std::unexpected(Error{Code::not_found, 0, table_.id()});
  switch (stage_) {
    case Stage::begin: return begin();
    case Stage::counting: return count_sizes();
    case Stage::taking: return take_pages();
    case Stage::emptying:
      if (!memo_->empty_places()) stage_ = Stage::numbering;
      return true;
    case Stage::numbering: return number_rows();
    case Stage::summing: return compute_sums();
    case Stage::recording: return record_some();
    case Stage::showing: return show();
    case Stage::over: break;
  }
  return false;
}

TableResult<bool> Grouping::begin() {
  if (!table_.begin_grouping()) {
    return std::unexpected(TableError(Error{Code::busy, 0, table_.id()},
                                      "another grouping of this table is being made"));
  }
  begun_ = true;
  if (groups_.sizes.empty()) {
    if (auto fault = sizes_.fault_with(groups_.rows.size())) return no_groups(*std::move(fault));
    stage_ = Stage::showing;
    return true;
  }
  if (auto fault = fault_of_counts(rows_, groups_.sizes.size())) {
    return no_groups(*std::move(fault));
  }
  stage_ = Stage::counting;
  return true;
}

TableResult<bool> Grouping::count_sizes() {
  const std::size_t some = std::min(kSizesPerPiece, groups_.sizes.size() - group_);
  if (auto fault = sizes_.add(groups_.sizes.subspan(group_, some))) {
    return no_groups(*std::move(fault));
  }
  group_ += some;
  if (group_ < groups_.sizes.size()) return true;
  if (auto fault = sizes_.fault_with(groups_.rows.size())) return no_groups(*std::move(fault));
  memo_ = table_.new_memo(rows_, MemoNumbering(sizes_));
  if (memo_->pages_wanted() * kPageBytes > table_.free_bytes()) {
    return std::unexpected(table_.pool().region().out_of_memory().error());
  }
  for (std::uint32_t size = RowGroups::kRowsMin; size <= RowGroups::kRowsMax; ++size) {
    next_of_size_[size] = memo_->numbering().first_of_size(size);
  }
  group_ = 0;
  stage_ = Stage::taking;
  return true;
}

TableResult<bool> Grouping::take_pages() {
  const auto more = memo_->take_pages(kPagesPerPiece);
  if (!more) return std::unexpected(more.error());
  table_.count_grouping(memo_->memory_bytes());
  if (!*more) stage_ = Stage::emptying;
  return true;
}

TableResult<bool> Grouping::number_rows() {
  for (const std::size_t until = id_ + kIdsPerPiece; id_ < until;) {
    if (group_ == groups_.sizes.size()) {
      if (const auto begun = table_.begin_sums(memo_); !begun) {
        return std::unexpected(begun.error());
      }
      stage_ = Stage::summing;
      return true;
    }
    const std::uint8_t size = groups_.sizes[group_];
    const auto rows = groups_.rows.subspan(id_, size);
    if (const auto wrong = memo_->number_group(next_of_size_[size]++, rows)) {
      return no_groups(describe_wrong_member(rows[*wrong], id_ + *wrong, rows_));
    }
    id_ += size;
    ++group_;
  }
  return true;
}

TableResult<bool> Grouping::compute_sums() {
  const auto more = table_.compute_sums();
  if (!more) return std::unexpected(more.error());
  if (*more) return true;
  number_ = memo_->number();
  group_ = 0;
  id_ = 0;
  stage_ = table_.redo() == nullptr ? Stage::showing : Stage::recording;
  return true;
}

// A sink without room has some soon: the piece is repeated. Not for ever: a log at its limit waits
// for a checkpoint, and that for the end of these records.
TableResult<bool> Grouping::wait_for_room(const Error& error) {
  const std::uint64_t now = base::monotonic_ns();
  if (refused_since_ns_ == 0) refused_since_ns_ = now;
  const bool waits = error.code == Code::busy && now - refused_since_ns_ < kRoomTimeoutNs;
  if (!waits) return std::unexpected(error);
  std::this_thread::yield();
  return true;
}

TableResult<bool> Grouping::record_some() {
  std::size_t group = group_;
  std::size_t id = id_;
  while (group < groups_.sizes.size() && id - id_ < kIdsPerPiece) id += groups_.sizes[group++];
  const GroupsPart part{.first = !recorded_,
                        .last = false,
                        .rows = groups_.rows.subspan(id_, id - id_),
                        .sizes = groups_.sizes.subspan(group_, group - group_)};
  auto room = catalog::RedoRoom::reserve(table_.redo(), part.bytes());
  if (!room) return wait_for_room(room.error());
  refused_since_ns_ = 0;
  if (!std::exchange(recorded_, true)) table_.begin_group_records();
  part.write(room->bytes(), table_.id());
  room->hand_over();
  group_ = group;
  id_ = id;
  if (group_ == groups_.sizes.size()) stage_ = Stage::showing;
  return true;
}

TableResult<bool> Grouping::show() {
  const GroupsPart part{.first = !recorded_, .last = true, .rows = {}, .sizes = {}};
  auto room = catalog::RedoRoom::reserve(table_.redo(), part.bytes());
  if (!room) return wait_for_room(room.error());
  if (*room) part.write(room->bytes(), table_.id());
  if (!std::exchange(recorded_, true)) table_.begin_group_records();
  if (const auto shown = table_.show_groups(*room); !shown) return std::unexpected(shown.error());
  return false;
}

TableResult<std::uint32_t> group_rows(EmbeddingTable& table, const RowGroups& groups) {
  Grouping grouping(table, groups);
  for (;;) {
    const auto more = grouping.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return grouping.number();
  }
}

}  // namespace espalier::embedding
