// SPDX-License-Identifier: Apache-2.0
// Reads that may need several shards in sequence: scans in either direction, floors that continue
// to the left, scans that begin at a floor. The runner of each shard's part is a parameter: a
// snapshot of a cut, or the map itself if it keeps no versions.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/map/client/map_impl.hpp"
#include "kinds/map/format/shard.hpp"

namespace espalier::client {

[[nodiscard]] constexpr bool is_scan(Op op) {
  return op == Op::scan || op == Op::scan_reverse || op == Op::scan_floor;
}

/// From the first to the last shard that a scan may need, its floor aside.
struct ShardSpan {
  std::size_t first = 0;
  std::size_t last = 0;
};
[[nodiscard]] ShardSpan span_of(const wire::ShardMap& map, const Request& scan);
/// The part of [low, high) that lies in a shard of the span.
struct ShardPart {
  std::string_view low;
  std::string_view high;
};
[[nodiscard]] ShardPart part_of(const wire::ShardMap& map, ShardSpan span, std::size_t shard,
                                std::string_view low, std::string_view high);

using ShardRunner = std::function<Result<Runner*>(std::size_t shard)>;

/// Converts a scan from a floor into one that begins at its floor, wherever that lies. `floor` has
/// the key. Errors: those of the runners.
Result<Request> with_floor_found(const wire::ShardMap& map, const ShardRunner& runner_of,
                                 const Request& scan, std::string& floor);

/// Runs a scan or floor to its completion. `read_version`: reported in the completion. Errors:
/// those of the runners, if nothing was delivered.
Result<void> run_over_shards(const wire::ShardMap& map, const ShardRunner& runner_of,
                             const Request& request, Handler& handler, Version read_version);

}  // namespace espalier::client
