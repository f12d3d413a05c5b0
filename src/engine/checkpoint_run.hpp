// SPDX-License-Identifier: Apache-2.0
// One checkpoint of a store, a step at a time, from the copy of its objects to the segments of its
// log that are needed no more (docs/design/checkpoints.md).
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "engine/store_copy.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"
#include "log/log_writer.hpp"

namespace espalier::offload {

class CheckpointRun {
 public:
  /// What it is of, all of which outlives it. Requires: `log` is the sink of the store, and lies in
  /// the folder as of this store's number. Or, of a member of a chain behind its head: `log` has
  /// the records that are applied to the store, by whom holds `applying` while it applies one and
  /// hands it over.
  struct Terms {
    Services& services;
    std::span<const Kind> own_kinds;
    log::LogFolder& folder;
    std::uint64_t store = 0;
    log::LogWriter& log;
    std::size_t write_bytes = log::CheckpointTerms{}.write_bytes;
    std::size_t piece_bytes = CopyPiece::kUsualBytes;  // that are copied in a step
    std::mutex* applying = nullptr;                    // held while something is copied
  };
  enum class State : std::uint8_t {
    copying,  // or reading again what was written
    waiting,  // for a flush of the log
    done,
  };

  /// Begins one. Errors: those of CheckpointWriter::begin(), no_memory. Requires: no other is made.
  [[nodiscard]] static log::LogResult<std::unique_ptr<CheckpointRun>> begin(const Terms& terms);
  CheckpointRun(const CheckpointRun&) = delete;
  CheckpointRun& operator=(const CheckpointRun&) = delete;

  /// Goes on. Cost: a piece is copied, perhaps a write; at the end a few writes and flushes of the
  /// folder. Errors: those of the checkpoint's writer, of the log once it has failed, of removing
  /// its segments; copy (an object cannot be copied); after an error it is over, and the newest
  /// checkpoint is this one if finished().
  log::LogResult<State> step();

  /// The sequence with which recovery goes on behind it.
  [[nodiscard]] std::uint64_t sequence() const { return copy_.sequence(); }
  [[nodiscard]] std::uint64_t records() const { return writer_->records(); }
  [[nodiscard]] std::uint64_t bytes() const { return writer_->bytes(); }
  /// What it has had of the disk: bytes that were written, and read again.
  [[nodiscard]] std::uint64_t moved_bytes() const { return bytes() + writer_->checked_bytes(); }
  [[nodiscard]] bool finished() const { return writer_->finished(); }

 private:
  explicit CheckpointRun(const Terms& terms)
      : terms_(terms),
        copy_(terms.services, terms.own_kinds, terms.log.handed_over() + 1),
        piece_(terms.piece_bytes) {}

  [[nodiscard]] static std::unique_lock<std::mutex> hold(const Terms& terms) {
    return terms.applying != nullptr ? std::unique_lock(*terms.applying)
                                     : std::unique_lock<std::mutex>();
  }
  log::LogResult<State> copy_some();
  log::LogResult<State> finish();

  const Terms terms_;
  StoreCopy copy_;
  std::unique_ptr<log::CheckpointWriter> writer_;
  CopyPiece piece_;
  bool copied_ = false;
  std::uint64_t through_ = 0;  // once it is copied: the newest record then
};

}  // namespace espalier::offload
