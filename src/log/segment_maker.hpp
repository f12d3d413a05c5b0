// SPDX-License-Identifier: Apache-2.0
// Creates segments. One is filled with zeros ahead, so that no commit waits for that.
//
// A segment is created under a temporary name, and renamed once its zeros and its header are
// durable. So a segment in use always has a header, whenever a crash comes.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "log/format.hpp"
#include "log/log_error.hpp"
#include "log/log_file.hpp"

namespace espalier::log {

struct OpenSegment {
  std::unique_ptr<LogFile> file;
  std::string name;
  SegmentHeader header{};
};

class SegmentMaker {
 public:
  SegmentMaker(LogFolder& folder, std::uint64_t node, std::uint64_t segment_bytes,
               std::uint64_t incarnation, std::uint64_t next_segment)
      : folder_(folder),
        node_(node),
        segment_bytes_(static_cast<std::uint32_t>(segment_bytes)),
        incarnation_(incarnation),
        next_segment_(next_segment) {}

  /// The incarnation of all segments it creates.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  /// Fills one ahead, if there is none. Errors: system; a later call starts over with another.
  [[nodiscard]] LogResult<void> prepare();
  /// A segment whose first record has this sequence. Requires: all records before it are durable,
  /// or their loss was accepted. Errors: system.
  [[nodiscard]] LogResult<OpenSegment> take(std::uint64_t first_sequence, bool after_loss);

 private:
  LogResult<void> fill_locked();

  LogFolder& folder_;
  const std::uint64_t node_;
  const std::uint32_t segment_bytes_;
  const std::uint64_t incarnation_;
  std::mutex mutex_;
  std::uint64_t next_segment_;
  std::uint64_t spare_number_ = 0;
  std::unique_ptr<LogFile> spare_;
};

}  // namespace espalier::log
