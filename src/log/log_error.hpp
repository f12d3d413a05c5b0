// SPDX-License-Identifier: Apache-2.0
// Errors of a log, with their location: an operator that repairs a disk, or accepts a loss, needs
// the file, the offset and the sequence. An error allocates no memory, because there may be none.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <expected>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/assert.hpp"
#include "espalier/error.hpp"

namespace espalier::log {

/// What a log found, beside the code. The numbers are never reused.
enum class LogFault : std::uint8_t {
  invalid = 0,
  system = 1,        // the operating system refused; the error's detail is errno
  short_write = 2,   // a write was short, and did not end at a unit
  locked = 3,        // another process has the folder, or this one has it twice
  newer = 4,         // the format is of a later version
  other_node = 5,    // the data belongs to another node
  header = 6,        // a segment has no valid header
  hole = 7,          // durable records are missing
  begins_late = 8,   // the first record wanted was removed
  out_of_order = 9,  // a valid block does not continue the sequence
  refused = 10,      // the applier rejected a record
  closed = 11,       // the log was closed before the record was written
  no_memory = 12,    // memory ran out
  store = 13,        // the file that identifies the store is damaged
  checkpoint = 14,   // a checkpoint is damaged
  copy = 15,         // an object cannot be copied into a checkpoint
};

/// The name of a file of a log.
class FileName {
 public:
  FileName() = default;
  /// Requires: at most 31 bytes, as all file names of a log have.
  explicit FileName(std::string_view name) : bytes_(static_cast<std::uint8_t>(name.size())) {
    ESPALIER_ASSERT(name.size() <= sizeof text_);
    name.copy(text_, sizeof text_);
  }
  [[nodiscard]] std::string_view text() const { return {text_, bytes_}; }
  [[nodiscard]] bool empty() const { return bytes_ == 0; }

  friend bool operator==(const FileName&, const FileName&) = default;
  friend bool operator==(const FileName& name, std::string_view text) {
    return name.text() == text;
  }

 private:
  char text_[31] = {};
  std::uint8_t bytes_ = 0;
};

struct LogError {
  Error error;  // busy, corrupt, unsupported or system
  LogFault fault = LogFault::invalid;
  FileName file;  // "." is the folder
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;  // the first one concerned

  friend bool operator==(const LogError&, const LogError&) = default;
};

template <class T>
using LogResult = std::expected<T, LogError>;

[[nodiscard]] inline std::unexpected<LogError> log_fail(Error error, LogFault fault,
                                                        std::string_view file, std::uint64_t offset,
                                                        std::uint64_t sequence) {
  return std::unexpected(LogError{error, fault, FileName(file), offset, sequence});
}

/// Runs `body`; turns std::bad_alloc into an error.
template <class Body>
[[nodiscard]] std::invoke_result_t<Body> catch_no_memory(std::uint64_t sequence, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return log_fail({Code::out_of_memory, 0, 0}, LogFault::no_memory, ".", 0, sequence);
  }
}

/// One sentence for people, with file, offset and sequence.
[[nodiscard]] std::string message(const LogError& error);

}  // namespace espalier::log
