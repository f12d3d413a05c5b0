// SPDX-License-Identifier: Apache-2.0
// The checkpoint that the tail of a chain gives, in pieces, to one that joins behind it. A finished
// one has records alone that all members had when it was made, so it is good whatever becomes of
// the chain meanwhile; its file is read though newer ones have replaced it.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/error.hpp"
#include "log/log_file.hpp"

namespace espalier::node {

class GivenCheckpoint {
 public:
  /// Of the store of this number, whose checkpoints lie in the folder, which outlives it.
  GivenCheckpoint(log::LogFolder& folder, std::uint64_t store) : folder_(folder), store_(store) {}

  /// Goes on with the newest one, if there is any. Errors: those of the disk, corrupt.
  Result<void> open_newest();
  /// Its number; 0: there was none.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Of its file, as far as it counts.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The record with which the log goes on behind it.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Bytes of the file from a multiple of log::kUnitBytes on, as many as are there, up to the most.
  /// Behind the last of them there is none any more: the disk may have its room again.
  /// Errors: those of the disk.
  Result<void> read(std::uint64_t offset, std::size_t most, std::string& into);

 private:
  log::LogFolder& folder_;
  const std::uint64_t store_;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t sequence_ = 1;
  std::unique_ptr<log::LogFile> file_;
};

}  // namespace espalier::node
