// SPDX-License-Identifier: Apache-2.0
// What a node keeps for all its tables. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/node_parts.hpp"
#include "kinds/table/offload/query_limits.hpp"
#include "kinds/table/query_counts.hpp"
#include "regex/regex_cache.hpp"

namespace espalier::offload {

struct TableServices final : NodePart {
  QueryLimits queries;
  table::QueryCounts query_counts;
  /// Bytes of results that were written into buffers of clients.
  std::atomic<std::uint64_t> result_buffer_bytes{0};
  regex::RegexCache regexes;
};

}  // namespace espalier::offload
