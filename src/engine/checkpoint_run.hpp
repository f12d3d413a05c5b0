// SPDX-License-Identifier: Apache-2.0
// One checkpoint of a store, in steps: it copies the objects, and finally removes the segments of
// the log that recovery no longer needs (docs/design/checkpoints.md).
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
  /// Its inputs, all of which outlive it. Requires: `log` is the store's sink, and lies in the
  /// folder under this store's number. On a chain member behind the head: `log` has the records
  /// that are applied to the store, and the thread that applies one holds `applying` until it has
  /// appended it.
  struct Terms {
    Services& services;
    std::span<const Kind> own_kinds;
    log::LogFolder& folder;
    std::uint64_t store = 0;
    log::LogWriter& log;
    std::size_t write_bytes = log::CheckpointTerms{}.write_bytes;
    std::size_t piece_bytes = CopyPiece::kUsualBytes;  // copied in one step
    std::mutex* applying = nullptr;                    // held while a piece is copied
  };
  enum class State : std::uint8_t {
    copying,  // or verifying what was written
    waiting,  // for a flush of the log
    done,
  };

  /// Begins one. Errors: those of CheckpointWriter::begin(), no_memory. Requires: no other is
  /// running.
  [[nodiscard]] static log::LogResult<std::unique_ptr<CheckpointRun>> begin(const Terms& terms);
  CheckpointRun(const CheckpointRun&) = delete;
  CheckpointRun& operator=(const CheckpointRun&) = delete;

  /// Runs one step. Cost: copies a piece, perhaps a write; at the end a few writes and flushes of
  /// the folder. Errors: those of the checkpoint's writer, of the log once it has failed, of
  /// removing its segments; copy (an object cannot be copied). After an error the run is over, and
  /// this checkpoint is the newest if finished().
  log::LogResult<State> step();

  /// The sequence at which recovery continues after this checkpoint.
  [[nodiscard]] std::uint64_t sequence() const { return copy_.sequence(); }
  [[nodiscard]] std::uint64_t records() const { return writer_->records(); }
  [[nodiscard]] std::uint64_t bytes() const { return writer_->bytes(); }
  /// Bytes written to the disk and read back.
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
  std::uint64_t through_ = 0;  // once it is copied: the newest record at that time
};

}  // namespace espalier::offload
