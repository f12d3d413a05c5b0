// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_snapshot.hpp"

#include "kinds/map/client/answer.hpp"

namespace espalier::client {

Result<void> ShardedSnapshot::run(const Request& request, Handler& handler) {
  const wire::ShardMap& map = cut_.nodes->map();
  const std::uint32_t most = cut_.nodes->shape().key_bytes_max;
  if (is_scan(request.op) || (request.op == Op::floor && !request.key.empty())) {
    if (request.key.size() <= most && request.high.size() <= most) {
      return run_over_shards(
          map, [this](std::size_t i) -> Result<Runner*> { return &cut_.part(i); }, request, handler,
          version_);
    }
    Completion refused;
    refused.tag = request.tag;
    refused.op = request.op;
    refused.error = {Code::key_too_long, 0, most};
    handler.done(refused);
    return {};
  }
  return cut_.part(map.shard_of(request.key)).run(request, handler);
}

Result<std::uint64_t> ShardedSnapshot::count(std::string_view low, std::string_view high) {
  const wire::ShardMap& map = cut_.nodes->map();
  const std::uint32_t most = cut_.nodes->shape().key_bytes_max;
  if (const auto fit = check_bounds(low, high, most); !fit) return std::unexpected(fit.error());
  Request range;
  range.op = Op::scan;
  range.key = low;
  range.high = high;
  const ShardSpan span = span_of(map, range);
  std::uint64_t sum = 0;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    const ShardPart part = part_of(map, span, i, low, high);
    const auto counted = cut_.part(i).count(part.low, part.high);
    if (!counted) return std::unexpected(error_of_shard(counted.error(), i));
    sum += *counted;
  }
  return sum;
}

}  // namespace espalier::client
