// SPDX-License-Identifier: Apache-2.0
// The checkpoint that the tail of a chain sends, in pieces, to a joining node. A finished one has
// only records that all members had when it was made, so it stays valid whatever happens to the
// chain; its file is readable even after newer ones have replaced it.
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
  /// Reads checkpoints of the store of this number in the folder, which outlives it.
  GivenCheckpoint(log::LogFolder& folder, std::uint64_t store) : folder_(folder), store_(store) {}

  /// Switches to the newest one, if there is any. Errors: those of the disk, corrupt.
  Result<void> open_newest();
  /// Its number; 0: none.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Bytes of the file's valid part.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The first record of the log after it.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Reads the file from an offset, a multiple of log::kUnitBytes: as many bytes as there are, at
  /// most `most`. After the last of them the file is closed, so the disk can reuse its space.
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
