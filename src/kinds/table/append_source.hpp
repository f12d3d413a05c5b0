// SPDX-License-Identifier: Apache-2.0
// Source of appended rows: memory of a message, or memory that its owner may write concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace espalier::table {

class AppendSource {
 public:
  virtual ~AppendSource() = default;
  /// Copies bytes [offset, offset + into.size()) of the rows, each word of 8 bytes once and whole.
  /// `offset` and the length are multiples of 8. Thread: that of the append.
  virtual void copy(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

}  // namespace espalier::table
