// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/batch_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "kinds/table/batch_kernels.hpp"
#include "kinds/table/batch_range.hpp"
#include "kinds/table/planted_table_bugs.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kScratchBytes = 64 * 1024;
constexpr std::uint32_t kPrefetchRows = 64;
constexpr std::uint32_t kGrowthsOfStep = 1;

/// A row of the result before its items are packed. Groups begin by it; that without keys begins
/// before a row has come, and its states have seen nothing then.
std::vector<std::byte> blank_row(const Pipeline& pipeline, const BatchAggregates& aggregates) {
  std::vector<std::byte> row = initial_row(pipeline, aggregates.slots());
  if (pipeline.keys != 0) aggregates.prepare(row.data());
  return row;
}

}  // namespace

BatchRun::BatchRun(const BatchProgram& program, RowSource& source, RowSink& sink,
                   const RunOptions& options)
    : program_(program),
      pipeline_(program.pipeline()),
      source_(source),
      sink_(sink),
      aggregates_(program),
      packer_(program, blank_row(program.pipeline(), aggregates_)),
      memory_(program.registers() * Register::kBytes + base::kLineBytes) {
  std::byte* at = memory_.data();
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  at += (base::kLineBytes - address % base::kLineBytes) % base::kLineBytes;
  registers_.resize(program.registers());
  for (Register& reg : registers_) {
    reg.memory = at;
    at += Register::kBytes;
  }
  for (const auto& [reg, constant] : program.constants()) fill(registers_[reg], *constant);
  ESPALIER_ASSERT(pipeline_.decrypt == (options.decrypt != nullptr));
  if (options.decrypt) {
    const WantedLines& lines = program.lines();
    decrypted_.emplace(*options.decrypt, pipeline_.schema.row_bytes(),
                       program.is_smart()
                           ? std::max<std::size_t>(lines.filters.size() + lines.items.size(), 1)
                           : 0);
  }
  if (pipeline_.distinct || pipeline_.grouped) {
    groups_.emplace(KeyLayout::of(pipeline_.result, pipeline_.key_columns()), options.group_bytes,
                    options.seed);
    if (groups_->layout().words() == 1) direct_sums_ = DirectSums::of(program, aggregates_.slots());
    key_stride_ = static_cast<std::uint32_t>(packer_.row_bytes());
    if (pipeline_.grouped && groups_->layout().words() != 0) {
      key_stride_ = 8 * groups_->layout().words();
    }
    const std::size_t rows = std::max<std::size_t>(1, kScratchBytes / key_stride_);
    scratch_rows_ = static_cast<std::uint32_t>(std::min<std::size_t>(rows, kBatchRows));
    scratch_.resize(scratch_rows_ * std::size_t{key_stride_});
  }
  choose_range_copy(options.isa);
  // Without keys there is one group, even of no rows.
  if (pipeline_.grouped && pipeline_.keys == 0) {
    groups_->find_or_insert(packer_.blank());
  }
  if (is_full() || (pipeline_.limit && *pipeline_.limit == 0)) phase_ = Phase::done;
}

void BatchRun::choose_range_copy(base::Isa isa) {
  if (pipeline_.distinct || pipeline_.grouped || program_.is_smart()) return;
  if (!packer_.packs_whole_rows() || packer_.row_bytes() != RangeCopy::kRowBytes) return;
  std::vector<ColumnRange> ranges;
  for (const Stage& filter : program_.filters()) {
    if (!filter.range) return;
    ranges.push_back(*filter.range);
  }
  range_copy_ = RangeCopy::of(ranges, isa);
}

std::size_t BatchRun::memory_bytes() const {
  return memory_.size() + scratch_.size() + (decrypted_ ? decrypted_->memory_bytes() : 0) +
         (groups_ ? groups_->memory_bytes() : 0);
}

void BatchRun::fail(RunError error) {
  error_ = std::move(error);
  phase_ = Phase::failed;
}

RunState BatchRun::step(std::uint32_t rows_max) {
  ESPALIER_ASSERT(rows_max > 0);
  const std::uint64_t end = numbers_.rows_read + rows_max;
  if (groups_) groups_->allow_growths(kGrowthsOfStep);
  for (;;) {
    switch (phase_) {
      case Phase::reading:
        if (numbers_.rows_read >= end) return RunState::running;
        if (range_copy_) {
          if (!copy_ranges(static_cast<std::uint32_t>(end - numbers_.rows_read))) {
            return RunState::stalled;
          }
          break;
        }
        if (!next_batch(static_cast<std::uint32_t>(end - numbers_.rows_read))) break;
        begin_items();
        break;
      case Phase::emitting:
        if (!(pipeline_.distinct ? emit_distinct() : emit())) return RunState::stalled;
        if (phase_ == Phase::emitting && is_paused()) return RunState::running;
        break;
      case Phase::grouping:
        group();
        if (phase_ == Phase::grouping && is_paused()) return RunState::running;
        break;
      case Phase::flushing:
        if (!flush(rows_max)) return RunState::stalled;
        // One part of the groups for each step: they may be many.
        return phase_ == Phase::done ? RunState::done : RunState::running;
      case Phase::done: return RunState::done;
      case Phase::failed: return RunState::failed;
    }
  }
}

/// Sees to it that there are rows in the span. False: there are none, or it failed.
bool BatchRun::next_span() {
  if (span_at_ != span_.count) return true;
  Result<RowSpan> span = source_.next();
  if (!span) {
    fail({span.error(), 0, 0, {}});
    return false;
  }
  span_ = *span;
  span_at_ = 0;
  if (span_.count != 0) return true;
  end_of_rows();
  return false;
}

/// Filters the next rows right into the sink. False: it has no room.
bool BatchRun::copy_ranges(std::uint32_t rows_max) {
  if (!next_span()) return true;
  const std::span<std::byte> room = sink_.room();
  std::uint64_t left = room.size() / RangeCopy::kRowBytes;
  if (pipeline_.limit) left = std::min(left, *pipeline_.limit - certain_rows_);
  // All of them may pass.
  const std::uint32_t together = decrypted_ ? decrypted_->rows_max() : rows_max;
  const auto rows = static_cast<std::uint32_t>(
      std::min<std::uint64_t>({left, span_.count - span_at_, rows_max, together}));
  if (rows == 0) return false;
  const std::byte* from = span_[span_at_];
  std::size_t ahead = RangeCopy::kAheadBytes;
  if (decrypted_) {
    ahead = 0;  // they lie in the cache
    from = decrypted_->begin(span_, span_at_, rows);
    decrypted_->decrypt_all();
  }
  const std::uint32_t kept = range_copy_->copy(from, rows, ahead, room.data());
  if (kept != 0) sink_.commit(kept, std::size_t{kept} * RangeCopy::kRowBytes);
  span_at_ += rows;
  certain_rows_ += kept;
  numbers_.rows_read += rows;
  numbers_.rows_passed += kept;
  numbers_.rows_sent += kept;
  numbers_.bytes_read += std::uint64_t{rows} * RangeCopy::kRowBytes;
  if (is_full()) phase_ = Phase::done;
  return true;
}

/// Takes the next rows and runs the filters over them. False: there are none, or it failed.
bool BatchRun::next_batch(std::uint32_t rows_max) {
  if (!next_span()) return false;
  std::uint32_t rows = std::min({kBatchRows, span_.count - span_at_, rows_max});
  if (decrypted_) {
    rows = std::min(rows, decrypted_->rows_max());
    batch_.rows = decrypted_->begin(span_, span_at_, rows);
  } else {
    batch_.rows = span_.rows + std::size_t{span_at_} * span_.row_bytes;
  }
  batch_.row_bytes = span_.row_bytes;
  batch_.count = rows;
  batch_.dense = true;
  batch_.ahead =
      decrypted_ || rows == span_.count - span_at_ ? 0 : std::size_t{rows} * span_.row_bytes;
  batch_first_ = span_.first_row + span_at_;
  const bool smart = program_.is_smart();
  if (smart) prefetch_ahead(rows);
  if (decrypted_) decrypt_batch();
  span_at_ += rows;
  numbers_.rows_read += rows;
  for (const Stage& stage : program_.filters()) {
    if (batch_.count == 0) break;
    if (stage.range) {
      select(batch_, *stage.range);
      continue;
    }
    run_stage(stage);
    select(batch_, registers_[stage.result]);
  }
  numbers_.rows_passed += batch_.count;
  const WantedLines& lines = program_.lines();
  if (smart) {
    if (decrypted_) {
      for (std::uint32_t i = 0; i < batch_.count; ++i) {
        decrypted_->decrypt_lines(batch_.number(i), lines.items);
      }
    } else if (!program_.filters().empty()) {
      prefetch(lines.items);
    }
    numbers_.bytes_read +=
        base::kLineBytes * (rows * lines.filters.size() + batch_.count * lines.items.size());
  } else {
    numbers_.bytes_read += std::uint64_t{rows} * span_.row_bytes;
  }
  return true;
}

/// Whole rows, or the lines that filters want; those of items follow for rows that pass.
void BatchRun::decrypt_batch() {
  if (!program_.is_smart()) return decrypted_->decrypt_all();
  for (std::uint32_t row = 0; row < batch_.count; ++row) {
    decrypted_->decrypt_lines(row, program_.lines().filters);
  }
}

/// The lines that filters want, of rows behind this batch.
void BatchRun::prefetch_ahead(std::uint32_t rows) const {
  const WantedLines& wanted = program_.lines();
  const auto& lines = program_.filters().empty() ? wanted.items : wanted.filters;
  const std::uint32_t begin = std::min(span_.count, span_at_ + kPrefetchRows);
  const std::uint32_t end = std::min(span_.count, span_at_ + rows + kPrefetchRows);
  for (std::uint32_t row = begin; row < end; ++row) {
    const std::byte* const at = span_.rows + std::size_t{row} * span_.row_bytes;
    for (const std::uint32_t line : lines) __builtin_prefetch(at + line * base::kLineBytes);
  }
}

void BatchRun::prefetch(const std::vector<std::uint32_t>& lines) const {
  for (std::uint32_t i = 0; i < batch_.count; ++i) {
    const std::byte* const at = batch_.row(i);
    for (const std::uint32_t line : lines) __builtin_prefetch(at + line * base::kLineBytes);
  }
}

void BatchRun::run_stage(const Stage& stage) {
  for (const Instruction& instruction : stage.code) {
    const std::uint32_t bad = instruction.kernel(instruction, registers_.data(), batch_);
    if (bad == batch_.count) continue;
    // Rows before it go on: one of them may fail later in the pipeline, and is the first then.
    pending_ = RunError{{},
                        stage.operator_index,
                        batch_first_ + batch_.number(bad),
                        expression_text(pipeline_, instruction.node) + " overflows"};
    batch_.count = bad;
  }
}

void BatchRun::begin_items() {
  position_ = 0;
  packed_from_ = packed_to_ = 0;
  // Rows behind the limit are not looked at.
  if (pipeline_.limit && !pipeline_.grouped && !pipeline_.distinct) {
    const std::uint64_t left = *pipeline_.limit - certain_rows_;
    batch_.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_.count, left));
  }
  items_loaded_ = false;
  // Else only where they turn out to be needed: they are columns, and cannot fail.
  if (batch_.count != 0 && !direct_sums_) load_items();
  phase_ = pipeline_.grouped ? Phase::grouping : Phase::emitting;
}

void BatchRun::load_items() {
  if (!items_loaded_) run_stage(program_.items());
  items_loaded_ = true;
}

void BatchRun::end_batch() {
  if (is_full()) {
    phase_ = Phase::done;
  } else if (pending_) {
    fail(*std::exchange(pending_, std::nullopt));
  } else {
    phase_ = Phase::reading;
  }
}

void BatchRun::end_of_rows() {
  at_end_ = true;
  flushed_ = 0;
  phase_ = pipeline_.grouped ? Phase::flushing : Phase::done;
}

bool BatchRun::emit() {
  const std::size_t row_bytes = packer_.row_bytes();
  while (position_ < batch_.count) {
    const std::span<std::byte> room = sink_.room();
    const std::uint32_t rows = static_cast<std::uint32_t>(
        std::min<std::size_t>(batch_.count - position_, room.size() / row_bytes));
    if (rows == 0) return false;
    packer_.pack(registers_.data(), batch_, position_, rows, room.data());
    sink_.commit(rows, rows * row_bytes);
    position_ += rows;
    certain_rows_ += rows;
    numbers_.rows_sent += rows;
  }
  end_batch();
  return true;
}

/// The rows behind this batch, which are read next: while keys are looked for, memory is idle else.
/// None where rows have many lines.
RowSpan BatchRun::rows_ahead() const {
  if (program_.is_smart() || span_.row_bytes > 2 * base::kLineBytes || span_at_ == span_.count)
    return {};
  return {span_[span_at_], 0, span_.row_bytes, 0};
}

/// The rows of the batch from position_ on.
DirectRows BatchRun::direct_rows() const {
  const std::size_t skipped = batch_.dense ? std::size_t{position_} * batch_.row_bytes : 0;
  const RowSpan ahead = rows_ahead();
  return {batch_.rows + skipped, batch_.row_bytes,
          batch_.dense ? nullptr : batch_.selected + position_, batch_.count - position_,
          ahead.rows};
}

/// Packs the next rows of the batch, as many as the scratch holds, and looks for all of them.
/// False: the table must grow first, in another step.
bool BatchRun::find_distinct() {
  packed_from_ = packed_to_;
  packed_to_ = std::min(batch_.count, packed_from_ + scratch_rows_);
  const std::uint32_t count = packed_to_ - packed_from_;
  packer_.pack(registers_.data(), batch_, packed_from_, count, scratch_.data());
  kept_ = groups_->size();
  const RowSpan ahead = rows_ahead();
  packed_to_ = packed_from_ + groups_->find_or_insert({scratch_.data(), key_stride_, count, nullptr,
                                                       false, ahead.rows, ahead.row_bytes},
                                                      row_groups_);
  numbers_.growths = groups_->growths();
  return packed_to_ != packed_from_;
}

bool BatchRun::emit_distinct() {
  const std::size_t row_bytes = packer_.row_bytes();
  std::span<std::byte> room = sink_.room();
  std::size_t used = 0;
  bool has_room = true;
  while (position_ < batch_.count && !is_full()) {
    if (position_ == packed_to_ && takes_rows_as_they_are()) {
      const std::uint32_t known = groups_->count_known(direct_rows(), direct_sums_->key_from);
      numbers_.direct_rows += known;
      position_ += known;
      packed_to_ = position_;
      if (position_ == batch_.count) break;
    }
    if (position_ == packed_to_ && !find_distinct()) break;
    // Rows of the table are in the order of their first sight, and so are those of the batch.
    const std::byte* const found = row_groups_[position_ - packed_from_];
    const bool is_new = found != nullptr && kept_ < groups_->size() && found == groups_->row(kept_);
    if (found != nullptr && !is_new) {
      ++position_;
      continue;
    }
    if ((has_room = room.size() - used * row_bytes >= row_bytes); !has_room) break;
    const std::byte* const row = scratch_.data() + (position_ - packed_from_) * row_bytes;
    std::memcpy(room.data() + used * row_bytes, row, row_bytes);
    ++position_;
    ++used;
    if (is_new) {
      ++kept_;
      ++certain_rows_;
    } else {
      ++numbers_.unsure_rows;
    }
  }
  if (used != 0) sink_.commit(used, used * row_bytes);
  numbers_.rows_sent += used;
  if (!has_room && used == 0) return false;
  if (position_ == batch_.count || is_full()) end_batch();
  return true;
}

/// Finds the groups of the next rows. Returns: of how many; the group of one behind these does not
/// fit, or not in this step.
std::uint32_t BatchRun::find_groups(std::uint32_t count) {
  const bool words = groups_->layout().words() != 0;
  if (words) {
    packer_.pack_begins(registers_.data(), batch_, position_, count, key_stride_, scratch_.data());
  } else {
    packer_.pack(registers_.data(), batch_, position_, count, scratch_.data());
  }
  const RowSpan ahead = rows_ahead();
  return groups_->find_or_insert(
      {scratch_.data(), key_stride_, count, words ? packer_.blank() : nullptr, true, ahead.rows,
       ahead.row_bytes},
      row_groups_);
}

void BatchRun::group() {
  if (pipeline_.keys == 0) {
    aggregates_.add_all(registers_.data(), batch_.count, groups_->row(0));
    end_batch();
    return;
  }
  while (position_ < batch_.count) {
    std::uint32_t count = batch_.count - position_;
    std::uint32_t found = 0;
    if (takes_rows_as_they_are()) {
      found = groups_->add_direct(direct_rows(), *direct_sums_, packer_.blank());
      numbers_.direct_rows += found;
    } else {
      load_items();
      count = std::min(count, scratch_rows_);
      found = find_groups(count);
      aggregates_.add(registers_.data(), row_groups_, position_, found);
    }
    position_ += found;
    numbers_.growths = groups_->growths();
    if (found == count) continue;
    if (groups_->is_paused()) return;
    // The group of this row does not fit: all go to the client, and the row begins the next ones.
    ++numbers_.flushes;
    if (planted(Bug::overflow_group_lost)) ++position_;
    flushed_ = 0;
    phase_ = Phase::flushing;
    return;
  }
  end_batch();
}

bool BatchRun::flush(std::uint32_t groups_max) {
  const std::size_t row_bytes = packer_.row_bytes();
  std::size_t wanted = groups_->size();
  // Groups that were all here may be cut here; partial ones only once they are merged.
  if (at_end_ && numbers_.flushes == 0 && pipeline_.limit) {
    wanted = std::min<std::uint64_t>(wanted, *pipeline_.limit);
  }
  const std::span<std::byte> room = sink_.room();
  const std::size_t rows =
      std::min({wanted - flushed_, room.size() / row_bytes, std::size_t{groups_max}});
  if (rows == 0 && flushed_ < wanted) return false;
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(room.data() + i * row_bytes, groups_->row(flushed_ + i), row_bytes);
  }
  if (rows != 0) sink_.commit(rows, rows * row_bytes);
  flushed_ += rows;
  numbers_.rows_sent += rows;
  if (flushed_ < wanted) return true;
  groups_->clear();
  phase_ = at_end_ ? Phase::done : Phase::grouping;
  return true;
}

}  // namespace espalier::table
