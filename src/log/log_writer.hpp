// SPDX-License-Identifier: Apache-2.0
// The end of a log that grows: room, order, and flushes that take all who wait.
//
// Several writes may be on their way to the disk. Each is begun under a lock, which gives it its
// place in the segment, and ends under it; what it has is acknowledged when all that began before
// have ended, too. After one has failed nothing is.
//
// Thread: any may reserve, hand over, give back, wait, remove, and carry out writes; flush(),
// prepare_spare() and close() are each one thread's at a time, flush() and close() while no other
// write is under way. Who writes when is for its owner to decide (Flusher, or a test).
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
  std::size_t flush_bytes_max = std::size_t{1} << 20;  // of one write; a longer record has its own
  std::size_t held_bytes_max = std::size_t{32} << 20;  // records, and room for some
  /// Behind so many full segments there is no more room until some are removed. Room that was given
  /// before may make some more.
  std::size_t segments_max = 64;
  std::size_t writes_max = 4;  // that are under way, each with memory for flush_bytes_max
};

/// Takes records that are on the disk, in their order, and keeps them, so that other nodes can have
/// them too.
class RecordKeeper {
 public:
  /// It is the keeper's until that releases it in the writer's room. Must not wait. Thread: any
  /// that writes, one at a time.
  virtual void keep(QueuedRecord& record) noexcept = 0;
  /// Has been given all of some writes, before they are acknowledged.
  virtual void kept() noexcept = 0;

 protected:
  ~RecordKeeper() = default;
};

/// What became of the wish to begin a write.
enum class WriteBegun : std::uint8_t {
  nothing,  // there is nothing to write, or the log has failed
  begun,
  later,  // once those that are under way have ended
};

class LogWriter final : public catalog::RedoSink {
 public:
  /// Begins a new segment behind what recovery has found. Errors: system.
  [[nodiscard]] static LogResult<std::unique_ptr<LogWriter>> begin(LogFolder& folder,
                                                                   std::uint64_t node,
                                                                   const WriterOptions& options,
                                                                   const Recovered& recovered);

  /// Errors: value_too_long, out_of_memory; busy (too much waits, or the log is at its bound: wait
  /// in room() for one's turn); the error after which nothing is acknowledged.
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
  /// Hands a record over. Returns its sequence.
  std::uint64_t append(std::span<std::byte> record) noexcept { return queue_.append(record); }

  [[nodiscard]] const WriterOptions& options() const { return options_; }
  [[nodiscard]] PendingWrite pending_write() const {
    return PendingWrite(options_.block_bytes_max, options_.flush_bytes_max);
  }
  /// Takes what was appended, as much as one write has. Begins the next segment where the current
  /// one is full. Where that fails, so does the log.
  [[nodiscard]] WriteBegun begin(PendingWrite& write);
  /// Writes it, and returns once the disk has it, or has failed.
  void carry_out(PendingWrite& write);
  /// Acknowledges it, and what has ended behind it, if all before it have ended; or has the log
  /// fail. Requires: it was carried out.
  void end(PendingWrite& write);
  /// Waits until no write is under way, or the log has failed.
  void await_ended();

  /// Writes all that was appended, and acknowledges it. Errors: system, short_write, no_memory;
  /// from then on always the same, and what was not acknowledged never is.
  LogResult<void> flush();
  /// Fills the next segment ahead, if the current one is half full. Errors: system, no_memory, of
  /// which nothing follows until the segment is needed; it is tried again some writes later.
  LogResult<void> prepare_spare();
  /// Flushes, and writes down that all of it is durable. Needs no more of the disk than flush().
  LogResult<void> close();
  /// Removes segments that have no records from here on, nor from keep_from() on. Errors: system,
  /// no_memory.
  LogResult<void> remove_below(std::uint64_t sequence);
  /// Another node may want records from here on; ~0, as at first: none does. What is removed just
  /// now may go all the same.
  void keep_from(std::uint64_t sequence) { keep_from_ = sequence; }

  /// Has room given at the bound, too, until keep_bound(): for few records that a start cannot do
  /// without, for which the segment that it has begun has space.
  void lift_bound() { room_.pause(false); }
  /// No more room is given while the log is at its bound. Thread: any.
  void keep_bound();

  /// Has records kept from now on. The keeper outlives the writer. Requires: nothing was appended
  /// yet.
  void have_kept_by(RecordKeeper& by) { kept_by_ = &by; }

  [[nodiscard]] Acknowledgements& acknowledgements() { return acknowledgements_; }
  [[nodiscard]] std::uint64_t durable() const { return acknowledgements_.durable(); }
  [[nodiscard]] RecordRoom& room() { return room_; }
  [[nodiscard]] RecordQueue& queue() { return queue_; }
  /// How often the log was opened, this time included.
  [[nodiscard]] std::uint64_t incarnation() const { return maker_.incarnation(); }
  [[nodiscard]] const SegmentList& segments() const { return segments_; }
  /// Of the files of its segments, those that are not full yet included. Cost: a lock.
  [[nodiscard]] std::uint64_t bytes() const { return segments_.count() * options_.segment_bytes; }
  /// Whether nothing more is taken before segments are removed. Thread: any.
  [[nodiscard]] bool is_at_bound() const { return room_.is_paused(); }
  [[nodiscard]] std::uint64_t segment_bytes() const { return options_.segment_bytes; }
  /// Bytes of blocks that it has written. Thread: any.
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }

 private:
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
  std::mutex bound_;  // so that the count of segments and what follows of it belong together
  SegmentMaker maker_;
  PendingWrite flushing_;  // flush()'s and close()'s

  std::mutex writing_;             // of what follows, up to failed_
  std::condition_variable ended_;  // a write has
  WriteOrder order_;
  OpenSegment current_;                    // another one only while no write is under way
  std::atomic<std::uint64_t> offset_ = 0;  // where its next block goes
  std::uint64_t written_;                  // up to this sequence all is
  bool acknowledging_ = false;             // a thread acknowledges what has ended
  bool failure_told_ = false;
  std::optional<LogError> failed_;

  std::atomic<std::uint64_t> written_bytes_ = 0;  // of all segments
  std::atomic<std::uint64_t> keep_from_ = ~std::uint64_t{0};
  std::uint64_t spare_due_ = 0;  // no spare is tried before so many are; prepare_spare()'s
};

}  // namespace espalier::log
