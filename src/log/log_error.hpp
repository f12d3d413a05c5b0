// SPDX-License-Identifier: Apache-2.0
// What may go wrong with a log, with the place where it did: whoever repairs a disk, or decides to
// accept a loss, has to know the file, the offset and the sequence. An error asks for no memory:
// there may be none.
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
  no_memory = 12,    // memory ran out
  store = 13,        // the file that says which store this is is damaged
  checkpoint = 14,   // a checkpoint is damaged
  copy = 15,         // an object cannot be copied into a checkpoint
};

/// The name of a file of a log.
class FileName {
 public:
  FileName() = default;
  /// Requires: at most 31 bytes, as the names of all files of a log have.
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
  std::uint64_t sequence = 0;  // the first that is concerned

  friend bool operator==(const LogError&, const LogError&) = default;
};

template <class T>
using LogResult = std::expected<T, LogError>;

[[nodiscard]] inline std::unexpected<LogError> log_fail(Error error, LogFault fault,
                                                        std::string_view file, std::uint64_t offset,
                                                        std::uint64_t sequence) {
  return std::unexpected(LogError{error, fault, FileName(file), offset, sequence});
}

/// What `body` returns, or an error where memory runs out in it.
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
