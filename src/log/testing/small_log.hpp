// SPDX-License-Identifier: Apache-2.0
// For tests: small segments over a folder in memory, and a reader of their records.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/log.hpp"
#include "log/testing/faulty_folder.hpp"

namespace espalier::log {

/// A header, seven units for records, and one for a mark.
inline constexpr std::uint64_t kSmallSegment = 9 * kUnitBytes;
inline constexpr std::uint64_t kSomeNode = 0x1122;

[[nodiscard]] inline LogOptions small_options() {
  LogOptions options;
  options.recovery.node = kSomeNode;
  options.writer.segment_bytes = kSmallSegment;
  options.writer.block_bytes_max = kUnitBytes;
  options.threads = false;
  return options;
}

/// Appends a text; it must find room. Returns its sequence.
inline std::uint64_t append(LogWriter& writer, std::string_view text) {
  const auto room = writer.reserve(text.size()).value();
  if (!text.empty()) std::memcpy(room.data(), text.data(), text.size());
  return writer.append(room);
}

/// Collects records as texts.
class ReadRecords {
 public:
  [[nodiscard]] ApplyRecord apply() {
    return [this](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
      if (texts_.empty()) first_ = sequence;
      if (sequence != first_ + texts_.size()) return fail(Code::corrupt);
      texts_.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
      return {};
    };
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }
  [[nodiscard]] std::uint64_t first() const { return first_; }

 private:
  std::uint64_t first_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace espalier::log
