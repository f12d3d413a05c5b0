// SPDX-License-Identifier: Apache-2.0
// Where bytes come from that are read once, from first to last.
//
// Thread: each object by one thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include "espalier/error.hpp"

namespace espalier::base {

/// Bytes that come one after another: a file, a pipe, a string.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads at least one byte into `into` unless the end is reached, which returns 0.
  /// Errors: system (detail: errno). Requires: `into` is not empty.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<char> into) = 0;
};

}  // namespace espalier::base
