// SPDX-License-Identifier: Apache-2.0
// Reads the next piece of a file while what came before it is worked on: by another thread, where
// reads wait for a disk.
//
// Thread: one, which reads the file by nothing else meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <system_error>

#include "log/log_file.hpp"

namespace espalier::log {

/// What is read at a time where all of a file is.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

class ReadAhead {
 public:
  explicit ReadAhead(LogFile& file) : file_(file) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  [[nodiscard]] bool is_reading() const { return piece_.valid(); }
  /// Begins to read, as LogFile::read(). Requires: nothing is being read; `to` stays until end().
  void begin(std::uint64_t offset, std::span<std::byte> to) {
    const auto read = [&file = file_, offset, to] { return file.read(offset, to); };
    if (file_.waits_for_disk()) {
      try {
        piece_ = std::async(std::launch::async, read);
        return;
      } catch (const std::system_error&) {  // no thread is to be had
      }
    }
    piece_ = std::async(std::launch::deferred, read);
  }
  /// What was begun is not wanted. Waits for its thread, as the end of this object does.
  void give_up() { piece_ = {}; }
  /// What was begun. Errors: those of the read. Requires: is_reading().
  [[nodiscard]] Result<std::size_t> end() { return piece_.get(); }

 private:
  LogFile& file_;
  std::future<Result<std::size_t>> piece_;
};

}  // namespace espalier::log
