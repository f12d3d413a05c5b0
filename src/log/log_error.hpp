// SPDX-License-Identifier: Apache-2.0
// What may go wrong with a log, with the place where it did: whoever repairs a disk, or decides to
// accept a loss, has to know the file, the offset and the sequence.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::log {

/// What a log found, beside the code. The numbers are never used again.
enum class LogFault : std::uint8_t {
  invalid = 0,
  system = 1,        // the operating system refused; the error's detail is errno
  short_write = 2,   // it wrote less than it was given, and not up to the end of a unit
  locked = 3,        // another process has the folder, or this one has it twice
  newer = 4,         // the format is of a later version
  other_node = 5,    // the data of another node
  header = 6,        // a segment has no header that is right
  hole = 7,          // records are missing that were durable
  begins_late = 8,   // the first record that is wanted is no longer there
  out_of_order = 9,  // a block that is right goes on with another sequence than the next
  refused = 10,      // whoever applies the records takes one for none of its own
  closed = 11,       // the log was closed before that was written
};

struct LogError {
  Error error;  // busy, corrupt, unsupported or system
  LogFault fault = LogFault::invalid;
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;  // the first that is concerned

  friend bool operator==(const LogError&, const LogError&) = default;
};

template <class T>
using LogResult = std::expected<T, LogError>;

[[nodiscard]] inline std::unexpected<LogError> log_fail(Error error, LogFault fault,
                                                        std::string_view file, std::uint64_t offset,
                                                        std::uint64_t sequence) {
  return std::unexpected(LogError{error, fault, std::string(file), offset, sequence});
}

/// One sentence for people, with file, offset and sequence.
[[nodiscard]] std::string message(const LogError& error);

}  // namespace espalier::log
