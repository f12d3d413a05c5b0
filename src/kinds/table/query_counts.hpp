// SPDX-License-Identifier: Apache-2.0
// Counters of the queries of a table or of a node, and of what they read and sent. The code that
// runs queries updates them; they start at 0 when the table is created or the node starts.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::table {

struct QueryCounts {
  std::atomic<std::uint64_t> running{0};
  std::atomic<std::uint64_t> waiting{0};  ///< for a place to run
  std::atomic<std::uint64_t> ended{0};    ///< after all rows, or early, as the client wanted
  std::atomic<std::uint64_t> failed{0};   ///< a wrong pipeline, a value, or the table was dropped
  std::atomic<std::uint64_t> refused{0};  ///< no table, or no place to run or to wait
  std::atomic<std::uint64_t> rows_read{0};
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> rows_sent{0};
  std::atomic<std::uint64_t> bytes_sent{0};
};

}  // namespace espalier::table
