// SPDX-License-Identifier: Apache-2.0
// A ranking model of DLRM's usual size over the table of `espalier-bench inference`, and its
// requests: 512 dense features, networks of 512-512-64 and 1024-1024-1024-1, and eight bags per
// query.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/grouped_queries.hpp"
#include "bench/point_run.hpp"
#include "espalier/map.hpp"
#include "espalier/ranking_model.hpp"

namespace espalier::bench {

/// Bags of a query: the model reads one table under one name so many times.
inline constexpr std::uint32_t kModelBags = 8;
/// Bytes of so many queries on the wire, with bags of so many rows.
[[nodiscard]] std::uint64_t model_query_bytes(std::uint64_t queries, std::uint64_t length);

/// A model of random weights, the same in each call. Errors: throws std::runtime_error.
[[nodiscard]] RankingModel make_bench_model(Store& store, std::string_view table,
                                            std::uint32_t dimension);

/// Ranks all bags, kModelBags for each query, so many queries a request; ops are queries, and the
/// checksum is the number of ranks between 0 and 1. Errors: throws std::runtime_error.
[[nodiscard]] PointSample rank_queries(const RankingModel& model, const QuerySet& bags,
                                       std::uint32_t queries_of_request);

}  // namespace espalier::bench
