// SPDX-License-Identifier: Apache-2.0
// Source, sink and error of a run of a pipeline, common to all executors.
//
// Thread: one run at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "espalier/error.hpp"
#include "kinds/table/snapshot.hpp"

namespace espalier::table {

class RowSource {
 public:
  virtual ~RowSource() = default;
  /// The next rows; releases those returned before. Empty at the end. Errors: dropped.
  virtual Result<RowSpan> next() = 0;
};

/// Takes rows of the result's schema.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// Current free memory for rows, aligned to 8 bytes. If shorter than a row, there is none.
  virtual std::span<std::byte> room() = 0;
  /// Accepts the first `rows` of the room, `bytes` in all, which were written.
  virtual void commit(std::size_t rows, std::size_t bytes) = 0;
};

/// Why a run ended early.
struct RunError {
  Error source;  ///< of the source; Code::invalid: it was an expression
  std::uint32_t operator_index = 0;
  std::uint64_t row = 0;  ///< in the table
  std::string reason;     ///< e.g. "a * b overflows"

  [[nodiscard]] std::string message() const;
};

}  // namespace espalier::table
