// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_snapshot.hpp"

#include <deque>

#include "kinds/map/client/answer.hpp"
#include "kinds/map/client/parts_of_scan.hpp"
#include "shards/pause.hpp"
#include "shards/sharded_handlers.hpp"

namespace espalier::client {

Result<void> ShardedSnapshot::run(const Request& request, Handler& handler) {
  const wire::ShardMap& map = cut_.nodes->map();
  const std::uint32_t most = cut_.nodes->shape().key_bytes_max;
  if (is_scan(request.op) || (request.op == Op::floor && !request.key.empty())) {
    if (request.key.size() <= most && request.high.size() <= most) {
      return run_over_shards(map, runners(), request, handler, version_);
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

Result<std::vector<std::string>> ShardedSnapshot::borders_of(const Request& scan, ShardSpan span,
                                                             std::uint32_t parts) {
  const wire::ShardMap& map = cut_.nodes->map();
  const auto shards = static_cast<std::uint32_t>(span.last - span.first + 1);
  std::vector<std::string> borders;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    Request own = scan;
    const ShardPart part = part_of(map, span, i, scan.key, scan.high);
    own.key = part.low;
    own.high = part.high;
    if (i != span.first) borders.emplace_back(part.low);
    if (parts < 2 * shards) continue;
    auto inside = cut_.part(i).borders_of(own, parts / shards);
    if (!inside) return std::unexpected(error_of_shard(inside.error(), i));
    // A node has a say in its own part alone: else others' keys would be asked of it.
    for (std::string& key : *inside) {
      const bool is_own = key > own.key && (own.high.empty() || key < own.high);
      if (is_own) borders.push_back(std::move(key));
    }
  }
  return borders;
}

namespace {

/// The parts of a scan on the shards of a cut, each by the pipeline of its shard.
class PartsOnShards {
 public:
  PartsOnShards(const Cut& cut, PartsOfScan& parts) : cut_(cut), parts_(parts) {}

  /// Errors: those of opening a lane to a node, which the shard's is.
  Result<void> open(ShardSpan span) {
    first_ = span.first;
    pipeline_of_.assign(parts_.size(), kNone);
    for (std::size_t i = span.first; i <= span.last; ++i) {
      auto opened = cut_.part(i).open_pipeline(parts_.size());
      if (!opened) return std::unexpected(error_of_shard(opened.error(), i));
      pipelines_.push_back(std::move(*opened));
      namings_.emplace_back(parts_, i);
    }
    return {};
  }
  void submit(const Request& part) {
    // By where it begins at first: one that goes on does so at a key that a node has sent.
    std::size_t& at = pipeline_of_[part.tag];
    if (at == kNone) at = cut_.nodes->map().shard_of(part.key) - first_;
    pipelines_[at]->submit({&part, 1}, namings_[at]);
  }
  void poll() {
    const std::uint64_t before = parts_.progress();
    for (const auto& pipeline : pipelines_) pipeline->advance();
    in_vain_ = parts_.progress() == before ? in_vain_ + 1 : 0;
    if (in_vain_ != 0) pause_after(in_vain_);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  const Cut& cut_;
  PartsOfScan& parts_;
  std::size_t first_ = 0;
  std::vector<std::size_t> pipeline_of_;  // that of each part
  std::deque<Naming> namings_;
  std::vector<std::unique_ptr<PipelineImpl>> pipelines_;
  std::uint32_t in_vain_ = 0;
};

}  // namespace

Result<void> ShardedSnapshot::run_parts(const Request& request, std::uint32_t parts,
                                        Handler& handler) {
  const wire::ShardMap& map = cut_.nodes->map();
  if (!check_bounds(request.key, request.high, cut_.nodes->shape().key_bytes_max)) {
    return run(request, handler);
  }
  std::string floor;
  const auto scan = with_floor_found(map, runners(), request, floor);
  if (!scan) return std::unexpected(scan.error());
  const ShardSpan span = span_of(map, *scan);
  if (span.first > span.last) return run(request, handler);
  auto borders = borders_of(*scan, span, parts);
  if (!borders) return std::unexpected(borders.error());
  if (borders->empty()) return run(request, handler);
  PartsOfScan cut(*scan, std::move(*borders), handler);
  PartsOnShards walks(cut_, cut);
  if (const auto opened = walks.open(span); !opened) {
    // Without lanes of its own it is one walk, which needs none.
    if (opened.error().code == Code::too_many_participants) return run(request, handler);
    return opened;
  }
  walk_parts(cut, [&](const Request& part) { walks.submit(part); }, [&] { walks.poll(); });
  cut.finish(version_);
  return {};
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
