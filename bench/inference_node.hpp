// SPDX-License-Identifier: Apache-2.0
// The load of one thread of `espalier-bench inference` on a node, with several requests in flight,
// and no-ops for comparison.
//
// Thread: each its own.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/histogram.hpp"
#include "bench/grouped_queries.hpp"
#include "bench/node_transport.hpp"
#include "bench/point_run.hpp"
#include "espalier/embedding_table.hpp"

namespace espalier::bench {

/// Sums the bags of a share, so many of them a request, by EmbeddingTable::reduce_many(); latencies
/// are of some hundred requests. Errors: throws std::runtime_error.
void reduce_many_bags(const EmbeddingTable& table, const QuerySet& queries,
                      std::pair<std::uint64_t, std::uint64_t> share, std::uint32_t bags_of_request,
                      std::uint32_t in_flight, std::span<float> sums, base::Histogram& latencies);

/// So many no-ops of a node started for this, with as many in flight. Errors: throws
/// std::runtime_error.
[[nodiscard]] PointSample measure_noops(NodeTransport transport, std::uint64_t ops,
                                        std::uint32_t in_flight);

}  // namespace espalier::bench
