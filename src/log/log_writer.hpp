// SPDX-License-Identifier: Apache-2.0
// The append side of a log: reservation, ordering, and group commit.
//
// Several writes may be on their way to the disk. Each is begun under a lock, which assigns its
// place in the segment, and ended under it. Its records are acknowledged when all writes begun
// before have ended, too. After one has failed, no further record is acknowledged.
//
// Thread: any may reserve, append, release, wait, remove, and carry out writes. flush(),
// prepare_spare() and close() run on one thread at a time, flush() and close() while no other write
// is under way. The owner decides which thread writes when (Flusher, or a test).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "catalog/redo_sink.hpp"
#include "log/acknowledgements.hpp"
#include "log/pending_write.hpp"
#include "log/record_queue.hpp"
#include "log/recovery.hpp"
#include "log/segment_list.hpp"
#include "log/segment_maker.hpp"

namespace espalier::log {

struct WriterOptions {
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  std::size_t block_bytes_max = std::size_t{256} << 10;
  std::size_t flush_bytes_max = std::size_t{1} << 20;  // of a write; longer records: alone
  std::size_t held_bytes_max = std::size_t{32} << 20;  // records and reserved room
  /// At so many full segments no more room is given until some are removed. Room given before may
  /// still fill more.
  std::size_t segments_max = 64;
  std::size_t writes_max = 4;  // under way at a time, each with memory for flush_bytes_max
};

/// Receives records that are on the disk, in order, and keeps them for other nodes.
class RecordKeeper {
 public:
  /// Passes ownership of the record until the keeper releases it in the writer's room. Must not
  /// wait. Thread: any that writes, one at a time.
  virtual void keep(QueuedRecord& record) noexcept = 0;
  /// Called after keep() for all records of some writes, before they are acknowledged.
  virtual void kept() noexcept = 0;

 protected:
  ~RecordKeeper() = default;
};

/// Result of begin().
enum class WriteBegun : std::uint8_t {
  nothing,  // there is nothing to write, or the log has failed
  begun,
  later,  // try again when the writes under way have ended
};

class LogWriter final : public catalog::RedoSink {
 public:
  /// Begins a new segment after what recovery has found. Errors: system.
  [[nodiscard]] static LogResult<std::unique_ptr<LogWriter>> begin(LogFolder& folder,
                                                                   std::uint64_t node,
                                                                   const WriterOptions& options,
                                                                   const Recovered& recovered);

  /// Errors: value_too_long, out_of_memory; busy (too many bytes are pending, or the log is at its
  /// bound: queue in room()); the error after which nothing is acknowledged.
  Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept override {
    return room_.reserve(bytes);
  }
  std::uint64_t hand_over(std::span<std::byte> record) noexcept override { return append(record); }
  [[nodiscard]] base::DurableMark& mark() noexcept override { return acknowledgements_.mark(); }
  [[nodiscard]] std::string failure() const override;
  [[nodiscard]] std::uint64_t handed_over() const noexcept override { return queue_.next() - 1; }
  void give_back(std::span<std::byte> room) noexcept override {
    room_.release(QueuedRecord::of(room));
  }
  /// Appends a record. Returns its sequence.
  std::uint64_t append(std::span<std::byte> record) noexcept { return queue_.append(record); }

  [[nodiscard]] const WriterOptions& options() const { return options_; }
  [[nodiscard]] PendingWrite pending_write() const {
    return PendingWrite(options_.block_bytes_max, options_.flush_bytes_max);
  }
  /// Takes appended records, as many as fit one write. Begins the next segment if the current one
  /// is full; if that fails, so does the log.
  [[nodiscard]] WriteBegun begin(PendingWrite& write);
  /// Performs the write; returns once the disk has it, or has failed.
  void carry_out(PendingWrite& write);
  /// Acknowledges it and ended later writes, if all before it have ended; or fails the log.
  /// Requires: it was carried out.
  void end(PendingWrite& write);
  /// Waits until no write is under way, or the log has failed.
  void await_ended();

  /// Writes and acknowledges all appended records. Errors: system, short_write, no_memory; from
  /// then on always the same, and records not acknowledged never are.
  LogResult<void> flush();
  /// Fills the next segment ahead, if the current one is half full. Errors: system, no_memory; they
  /// have no effect until the segment is needed, and a later call retries after some writes.
  LogResult<void> prepare_spare();
  /// Flushes, and writes a mark that all of it is durable. Needs no more disk space than flush().
  LogResult<void> close();
  /// Removes segments without records from here on and without records from keep_from() on. Errors:
  /// system, no_memory.
  LogResult<void> remove_below(std::uint64_t sequence);
  /// Keeps records from here on for another node; ~0 (the default): none. A removal under way may
  /// still remove them.
  void keep_from(std::uint64_t sequence) { keep_from_ = sequence; }

  /// Gives room at the bound, too, until keep_bound(): for the few records that a start cannot do
  /// without, for which the segment that it has begun has space.
  void lift_bound() { set_bound_lifted(true); }
  /// Gives no more room while the log is at its bound. Thread: any.
  void keep_bound() { set_bound_lifted(false); }

  /// Passes records to a keeper from now on. The keeper outlives the writer. Requires: nothing was
  /// appended yet.
  void have_kept_by(RecordKeeper& by) { kept_by_ = &by; }

  [[nodiscard]] Acknowledgements& acknowledgements() { return acknowledgements_; }
  [[nodiscard]] std::uint64_t durable() const { return acknowledgements_.durable(); }
  [[nodiscard]] RecordRoom& room() { return room_; }
  [[nodiscard]] RecordQueue& queue() { return queue_; }
  /// How often the log was opened, this time included.
  [[nodiscard]] std::uint64_t incarnation() const { return maker_.incarnation(); }
  [[nodiscard]] const SegmentList& segments() const { return segments_; }
  /// Size of its segment files, including those not full yet. Cost: a lock.
  [[nodiscard]] std::uint64_t bytes() const { return segments_.count() * options_.segment_bytes; }
  /// Whether room is refused until segments are removed. Thread: any.
  [[nodiscard]] bool is_at_bound() const { return room_.is_paused(); }
  [[nodiscard]] std::uint64_t segment_bytes() const { return options_.segment_bytes; }
  /// Bytes of blocks written. Thread: any.
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  void set_bound_lifted(bool lifted);
  void check_bound();
  LogWriter(LogFolder& folder, std::uint64_t node, const WriterOptions& options,
            const Recovered& recovered);

  LogResult<void> change_segment(bool after_loss = false);
  LogResult<WriteBegun> begin_locked(PendingWrite& write, RecordList& records);
  LogResult<void> write_blocks(std::uint64_t offset, std::span<const std::byte> blocks);
  void acknowledge_ended(std::unique_lock<std::mutex>& lock);
  void tell_failure(std::unique_lock<std::mutex>& lock);
  void let_go(RecordList& records);

  const WriterOptions options_;
  RecordKeeper* kept_by_ = nullptr;
  RecordRoom room_;
  RecordQueue queue_;
  Acknowledgements acknowledgements_;
  SegmentList segments_;
  std::mutex bound_;  // keeps the count of segments and room's pause consistent
  bool bound_lifted_ = false;  // guarded by bound_
  SegmentMaker maker_;
  PendingWrite flushing_;  // flush()'s and close()'s

  std::mutex writing_;             // guards the members below, up to failed_
  std::condition_variable ended_;  // a write has ended
  WriteOrder order_;
  OpenSegment current_;                    // another one only while no write is under way
  std::atomic<std::uint64_t> offset_ = 0;  // of its next block
  std::uint64_t written_;                  // all up to this sequence is written
  bool acknowledging_ = false;             // a thread acknowledges ended writes
  bool failure_told_ = false;
  std::optional<LogError> failed_;

  std::atomic<std::uint64_t> written_bytes_ = 0;  // of all segments
  std::atomic<std::uint64_t> keep_from_ = ~std::uint64_t{0};
  std::uint64_t spare_due_ = 0;  // retry of a spare after so many writes; prepare_spare() only
};

}  // namespace espalier::log
