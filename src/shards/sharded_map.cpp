// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_map.hpp"

#include <algorithm>
#include <utility>

#include "kinds/map/client/answer.hpp"
#include "kinds/map/map_forms.hpp"
#include "shards/sharded_handlers.hpp"
#include "shards/sharded_pipeline.hpp"
#include "shards/sharded_reads.hpp"
#include "shards/sharded_snapshot.hpp"

namespace espalier::client {
namespace {

// A scan for at most so many items across borders tries whether its first shard has them all.
constexpr std::uint32_t kKeptItemsMax = 256;

void refuse_request(const Request& request, Handler& handler, const Error& error) {
  Completion refused;
  refused.tag = request.tag;
  refused.op = request.op;
  refused.error = error;
  handler.done(refused);
}

// Runs a request on one shard, a scan in so many parts, and says whose error it was.
Result<void> run_on(ShardNodes& nodes, std::size_t shard, const Request& request, Handler& handler,
                    std::uint32_t parts = 1) {
  const auto map = nodes.shard(shard);
  if (!map) return std::unexpected(map.error());
  Naming naming(handler, shard);
  const auto ran =
      parts > 1 ? (*map)->run_parts(request, parts, naming) : (*map)->run(request, naming);
  if (!ran) return std::unexpected(error_of_shard(ran.error(), shard));
  return {};
}

void add_part(MapStats& sum, const MapStats& part) {
  sum.items += part.items;
  sum.leaves += part.leaves;
  sum.interior_nodes += part.interior_nodes;
  sum.height = std::max(sum.height, part.height);
  sum.node_bytes += part.node_bytes;
  sum.value_bytes += part.value_bytes;
  sum.retired_bytes += part.retired_bytes;
  sum.log_merges += part.log_merges;
  sum.splits += part.splits;
  sum.redistributions += part.redistributions;
  sum.merges += part.merges;
  sum.read_version += part.read_version;
  sum.write_version += part.write_version;
  sum.snapshots += part.snapshots;
}

}  // namespace

ShardedMap::ShardedMap(std::string name, const OpenedMap& opened, std::uint64_t node_id,
                       std::shared_ptr<RemoteSessions> home, std::shared_ptr<PeerSessions> peers)
    : name_(std::move(name)),
      options_(opened.options()),
      max_key_bytes_(opened.shape.key_bytes_max),
      home_(std::move(home)),
      peers_(std::move(peers)),
      nodes_(std::make_shared<ShardNodes>(name_, opened, node_id, home_, *peers_)) {}

ShardedMap::Nodes ShardedMap::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

// Only the node by which the map was opened is believed: any other that could say what the whole
// map is could take it over.
ShardedMap::Nodes ShardedMap::newer_than(const Nodes& known) {
  const std::lock_guard one_at_a_time(newer_);
  if (auto now = nodes(); now != known) return now;  // another thread has asked meanwhile
  const auto session = RemoteLease::take(home_);
  if (!session) return nullptr;
  const auto opened = open_map_by((*session)->requests, name_, true);
  if (!opened || !opened->shard || opened->shard->uid == known->map().uid) return nullptr;
  // Of other limits it is no map that this handle's caller knows.
  const MapOptions options = opened->options();
  if (opened->shape.key_bytes_max != max_key_bytes_ || options.versions != options_.versions) {
    return nullptr;
  }
  auto newer = std::make_shared<ShardNodes>(
      name_, *opened, (*session)->rings->connection().node_id(), home_, *peers_);
  const std::lock_guard lock(mutex_);
  nodes_ = newer;
  return newer;
}

// Calls again by a newer shard map what was refused by an older one.
template <class Call>
std::invoke_result_t<const Call&, const ShardedMap::Nodes&> ShardedMap::with_nodes(
    const Call& call) {
  Nodes by = nodes();
  for (int tries = 1;; ++tries) {
    auto result = call(by);
    if (result || !is_outdated(result.error()) || tries == kTries) return result;
    by = newer_than(by);
    if (by == nullptr) return result;
  }
}

template <class Call>
std::invoke_result_t<const Call&, RemoteMap&> ShardedMap::on_shard_of(std::string_view key,
                                                                      const Call& call) {
  using R = std::invoke_result_t<const Call&, RemoteMap&>;
  return with_nodes([&](const Nodes& by) -> R {
    const std::size_t shard = by->map().shard_of(key);
    const auto map = by->shard(shard);
    if (!map) return std::unexpected(map.error());
    R result = call(**map);
    if (!result) return std::unexpected(error_of_shard(result.error(), shard));
    return result;
  });
}

// --- single keys ---------------------------------------------------------------------------------

Result<bool> ShardedMap::get(std::string_view key, std::string& value, Version& version) {
  return on_shard_of(key, [&](RemoteMap& map) { return map.get(key, value, version); });
}

Result<Written> ShardedMap::write_if(Op op, std::string_view key, std::string_view value,
                                     const Condition& condition) {
  return on_shard_of(key, [&](RemoteMap& map) { return map.write_if(op, key, value, condition); });
}

Result<std::uint64_t> ShardedMap::add(std::string_view key, std::uint64_t amount) {
  return on_shard_of(key, [&](RemoteMap& map) { return map.add(key, amount); });
}

// One that the map's limits refuse, whichever shard it is, is refused as that and not for where its
// keys lie.
Result<Written> ShardedMap::write(const WriteBatch& batch) {
  const std::string_view any =
      batch.writes().empty() ? std::string_view() : std::string_view(batch.writes().front().key);
  return with_nodes([&](const Nodes& by) -> Result<Written> {
    const std::size_t shard = by->map().shard_of(any);
    const auto map = by->shard(shard);
    if (!map) return std::unexpected(map.error());
    if (const auto good = (*map)->check(batch); !good) return std::unexpected(good.error());
    const auto elsewhere = [&](const auto& one) { return !by->map().bounds(shard).has(one.key); };
    if (std::ranges::any_of(batch.writes(), elsewhere) ||
        std::ranges::any_of(batch.conditions(), elsewhere)) {
      return fail(Code::crosses_shards);
    }
    const auto written = (*map)->write(batch);
    if (!written) return std::unexpected(error_of_shard(written.error(), shard));
    return written;
  });
}

// --- ranges --------------------------------------------------------------------------------------

Result<void> ShardedMap::run(const Request& request, Handler& handler) {
  return run_by(request, handler, [&](const Nodes& nodes, Handler& caught) {
    return try_run(nodes, request, caught);
  });
}

Result<void> ShardedMap::run_parts(const Request& scan, std::uint32_t parts, Handler& handler) {
  return run_by(scan, handler, [&](const Nodes& nodes, Handler& caught) {
    return try_parts(nodes, scan, parts, caught);
  });
}

template <class Try>
Result<void> ShardedMap::run_by(const Request& request, Handler& handler, const Try& try_by) {
  if (request.key.size() > max_key_bytes_ ||
      (is_scan(request.op) && request.high.size() > max_key_bytes_)) {
    refuse_request(request, handler, {Code::key_too_long, 0, max_key_bytes_});
    return {};
  }
  OutdatedCatch caught(handler);
  Nodes by = nodes();
  for (int tries = 1;; ++tries) {
    const Result<void> ran = try_by(by, caught);
    const bool outdated =
        ran ? caught.kept().has_value() : is_outdated(ran.error()) && !caught.delivered();
    if (!outdated) return ran;
    auto newer = tries == kTries ? nullptr : newer_than(by);
    if (newer == nullptr) {
      if (ran) caught.give_up();
      return ran;
    }
    caught.forget();
    by = std::move(newer);
  }
}

Result<void> ShardedMap::try_run(const Nodes& nodes, const Request& request, Handler& handler) {
  if (is_scan(request.op)) return try_scan(nodes, request, handler);
  const std::size_t at = nodes->map().shard_of(request.key);
  if (request.op != Op::floor || at == 0) return run_on(*nodes, at, request, handler);
  FloorCatch caught(handler);
  if (const auto ran = run_on(*nodes, at, request, caught); !ran) return ran;
  return caught.goes_left() ? across(nodes, 0, at, request, handler) : Result<void>();
}

Result<void> ShardedMap::try_scan(const Nodes& nodes, const Request& request, Handler& handler) {
  const ShardSpan span = span_of(nodes->map(), request);
  const bool one = span.first == span.last;
  const bool begins_left = request.op == Op::scan_floor && span.first != 0;
  if (one && !begins_left) return run_on(*nodes, span.first, request, handler);
  if (one) {
    FromFloorCatch caught(handler, request.key);
    if (const auto ran = run_on(*nodes, span.first, request, caught); !ran) return ran;
    if (!caught.goes_left()) return {};
  } else if (request.op != Op::scan_floor && request.limit != 0 && request.limit <= kKeptItemsMax) {
    const std::size_t first = request.op == Op::scan_reverse ? span.last : span.first;
    const ShardPart part = part_of(nodes->map(), span, first, request.key, request.high);
    Request some = request;
    some.key = part.low;
    some.high = part.high;
    Keeping kept;
    if (const auto ran = run_on(*nodes, first, some, kept); !ran) return ran;
    if (!kept.completion().ok || kept.size() == request.limit) {
      kept.deliver(request.tag, handler);
      return {};
    }
  }
  const bool to_the_left = request.op == Op::scan_floor;
  return across(nodes, to_the_left ? 0 : span.first, std::max(span.first, span.last), request,
                handler);
}

Result<void> ShardedMap::try_parts(const Nodes& nodes, const Request& scan, std::uint32_t parts,
                                   Handler& handler) {
  const ShardSpan span = span_of(nodes->map(), scan);
  const bool from_floor = scan.op == Op::scan_floor;
  if (span.first == span.last && !(from_floor && span.first != 0)) {
    return run_on(*nodes, span.first, scan, handler, parts);
  }
  if (!options_.versions) return try_scan(nodes, scan, handler);
  auto cut = take_cut(nodes, from_floor ? 0 : span.first, std::max(span.first, span.last));
  if (!cut) return std::unexpected(cut.error());
  return ShardedSnapshot(std::move(*cut)).run_parts(scan, parts, handler);
}

Result<void> ShardedMap::across(const Nodes& nodes, std::size_t first, std::size_t last,
                                const Request& request, Handler& handler) {
  if (!options_.versions) {
    return run_over_shards(
        nodes->map(), [&](std::size_t i) -> Result<Runner*> { return nodes->shard(i); }, request,
        handler, 0);
  }
  auto cut = take_cut(nodes, first, last);
  if (!cut) return std::unexpected(cut.error());
  return ShardedSnapshot(std::move(*cut)).run(request, handler);
}

Result<std::uint64_t> ShardedMap::scan(std::string_view low, std::string_view high,
                                       const ItemSink& sink, ScanOptions options) {
  const auto request = scan_request(low, high, options);
  if (!request) return std::unexpected(request.error());
  return run_scan(*this, *request, sink, options.parts);
}

Result<std::uint64_t> ShardedMap::count(std::string_view low, std::string_view high) {
  return with_nodes([&](const Nodes& by) { return try_count(by, low, high, false); });
}

Result<std::uint64_t> ShardedMap::count_estimate(std::string_view low, std::string_view high) {
  return with_nodes([&](const Nodes& by) { return try_count(by, low, high, true); });
}

Result<std::uint64_t> ShardedMap::try_count(const Nodes& nodes, std::string_view low,
                                            std::string_view high, bool estimate) {
  if (const auto fit = check_bounds(low, high, max_key_bytes_); !fit) {
    return std::unexpected(fit.error());
  }
  Request range;
  range.op = Op::scan;
  range.key = low;
  range.high = high;
  const ShardSpan span = span_of(nodes->map(), range);
  if (span.first != span.last && options_.versions && !estimate) {
    auto cut = take_cut(nodes, span.first, span.last);
    if (!cut) return std::unexpected(cut.error());
    return ShardedSnapshot(std::move(*cut)).count(low, high);
  }
  std::uint64_t sum = 0;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    const auto map = nodes->shard(i);
    if (!map) return std::unexpected(map.error());
    const ShardPart part = part_of(nodes->map(), span, i, low, high);
    const auto counted =
        estimate ? (*map)->count_estimate(part.low, part.high) : (*map)->count(part.low, part.high);
    if (!counted) return std::unexpected(error_of_shard(counted.error(), i));
    sum += *counted;
  }
  return sum;
}

// --- the whole map -------------------------------------------------------------------------------

Result<std::unique_ptr<SnapshotImpl>> ShardedMap::snapshot() {
  if (!options_.versions) return fail(Code::unsupported);
  return with_nodes([&](const Nodes& by) -> Result<std::unique_ptr<SnapshotImpl>> {
    auto cut = take_cut(by, 0, by->map().size() - 1);
    if (!cut) return std::unexpected(cut.error());
    return std::make_unique<ShardedSnapshot>(std::move(*cut));
  });
}

Result<std::unique_ptr<PipelineImpl>> ShardedMap::open_pipeline(std::uint32_t in_flight) {
  return std::make_unique<ShardedPipeline>(*this, in_flight);
}

Result<MapStats> ShardedMap::stats() {
  return with_nodes([](const Nodes& by) -> Result<MapStats> {
    MapStats sum;
    for (std::size_t i = 0; i < by->map().size(); ++i) {
      const auto map = by->shard(i);
      if (!map) return std::unexpected(map.error());
      const auto part = (*map)->stats();
      if (!part) return std::unexpected(error_of_shard(part.error(), i));
      add_part(sum, *part);
    }
    return sum;
  });
}

}  // namespace espalier::client
