// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/remote_map.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/one_sided/one_sided_pipeline_impl.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/ring_pipeline.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/batch_entries.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/answer.hpp"
#include "kinds/map/client/asked_borders.hpp"
#include "kinds/map/client/datagram_caller.hpp"
#include "kinds/map/client/one_sided_caller.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/client/remote_snapshot.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/map/write/batch.hpp"

namespace espalier::client {
namespace {

Written written_of(const map_calls::ItemWritten& reply) {
  return {reply.applied ? reply.version : 0, reply.applied, reply.found};
}

}  // namespace

RemoteMap::RemoteMap(std::shared_ptr<RemoteSessions> sessions, std::string name,
                     std::uint64_t node_id, const OpenedMap& opened,
                     std::optional<ShardIdentity> shard)
    : sessions_(std::move(sessions)),
      name_(std::move(name)),
      options_(opened.options()),
      max_key_bytes_(opened.shape.key_bytes_max),
      shard_(shard),
      node_id_(node_id),
      id_(opened.id) {}

// Another node has other numbers for its maps: there it is opened by its name.
Result<Scope> RemoteMap::scope(RemoteSession& session) {
  return scope(session.requests, session.rings->connection());
}

Result<Scope> RemoteMap::scope(RemoteRequests& requests, const NodeConnection& connection) {
  const std::uint64_t node = connection.node_id();
  if (node_id_.load(std::memory_order_acquire) != node) {
    const auto opened = open_map_by(requests, name_, shard_.has_value());
    if (!opened) return std::unexpected(opened.error());
    // A part of another map, or no part, is not what this was made for.
    const auto same = [&] {
      return opened->shard && opened->shard->uid == shard_->uid &&
             opened->shard->own == shard_->number;
    };
    if (shard_ && !same()) return fail(Code::wrong_shard, shard_->number);
    const std::lock_guard lock(mutex_);
    id_.store(opened->id, std::memory_order_relaxed);
    node_id_.store(node, std::memory_order_release);
  }
  return Scope{id_.load(std::memory_order_relaxed), max_key_bytes_, 0};
}

Result<void> RemoteMap::run(const Request& request, Handler& handler) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto place = scope(**session);
  if (!place) return std::unexpected(place.error());
  if (sessions_->reads_alone() && OneSidedMaps::serves(request.op)) {
    RemoteSession& by = **session;
    auto& alone = by.parts.of<OneSidedCaller>(sessions_->walks());
    const tree::WalkTraffic before = alone.traffic();
    const auto done = alone.run(by.requests, by.rings->connection(), place->map, request, handler);
    sessions_->traffic().add(before, alone.traffic());
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
  }
  if (request.op == Op::get && sessions_->asks_by_datagrams() && options_.versions) {
    RemoteSession& by = **session;
    auto& datagrams = by.parts.of<DatagramCaller>();
    const tree::WalkTraffic before = datagrams.traffic();
    const bool done =
        datagrams.run(by.requests, by.rings->connection(), place->map, request, handler);
    sessions_->traffic().add(before, datagrams.traffic());
    if (done) return {};
  }
  (*session)->requests.submit({&request, 1}, handler, *place);
  (*session)->requests.drain();
  return {};
}

Result<bool> RemoteMap::get(std::string_view key, std::string& value, Version& version) {
  Request request;
  request.op = Op::get;
  request.key = key;
  Answer answer;
  answer.value = &value;
  if (const auto ran = run(request, answer); !ran) return std::unexpected(ran.error());
  if (!answer.completion.ok) return std::unexpected(answer.completion.error);
  if (answer.completion.found) version = answer.completion.version;
  return answer.completion.found;
}

Result<Written> RemoteMap::write_if(Op op, std::string_view key, std::string_view value,
                                    const Condition& condition) {
  if (condition.kind == ConditionKind::none) {
    Request request;
    request.op = op;
    request.key = key;
    request.value = value;
    Answer answer;
    if (const auto ran = run(request, answer); !ran) return std::unexpected(ran.error());
    const Completion& done = answer.completion;
    if (!done.ok) return std::unexpected(done.error);
    return Written{done.applied ? done.version : 0, done.applied, done.found};
  }
  if (key.empty() || key.size() > max_key_bytes_) return fail(Code::key_too_long, max_key_bytes_);
  if (value.size() > wire::kValueBytesMax) {
    return fail(Code::value_too_long, wire::kValueBytesMax);
  }
  // Nothing so long can be there.
  if (condition.value.size() > wire::kValueBytesMax) return fail(Code::condition_failed);
  if (condition.value.size() + value.size() > wire::kMessageBytesMax - 1024) {
    return fail(Code::invalid_argument, wire::kMessageBytesMax);
  }
  wire::Comparison comparison{};
  comparison.version = condition.version;
  comparison.kind = static_cast<std::uint8_t>(condition.kind);
  comparison.erase = op == Op::erase ? 1 : 0;
  const bool by_value = condition.kind == ConditionKind::value;
  if (by_value) comparison.expected_bytes = static_cast<std::uint32_t>(condition.value.size());
  const std::string_view expected = by_value ? condition.value : std::string_view();
  const auto reply = ask_here(map_calls::CompareAndSet{0, key, comparison, expected, value});
  if (!reply) return std::unexpected(reply.error());
  return written_of(*reply);
}

Result<std::uint64_t> RemoteMap::add(std::string_view key, std::uint64_t amount) {
  if (key.empty() || key.size() > max_key_bytes_) return fail(Code::key_too_long, max_key_bytes_);
  const auto reply = ask_here(map_calls::Add{0, key, amount});
  if (!reply) return std::unexpected(reply.error());
  return reply->sum;
}

// What is refused beside the memory is refused here in the same order, before anything travels.
Result<void> RemoteMap::check(const WriteBatch& batch) const {
  if (batch.writes().empty() || batch.writes().size() > tree::kBatchWritesMax ||
      batch.conditions().size() > tree::kBatchChecksMax) {
    return fail(Code::invalid_argument);
  }
  const auto bad = [this](const auto& one) {
    return one.key.empty() || one.key.size() > max_key_bytes_;
  };
  if (std::ranges::any_of(batch.writes(), bad) || std::ranges::any_of(batch.conditions(), bad)) {
    return fail(Code::key_too_long, max_key_bytes_);
  }
  for (const auto& write : batch.writes()) {
    if (write.value.size() > wire::kValueBytesMax) {
      return fail(Code::value_too_long, wire::kValueBytesMax);
    }
  }
  return {};
}

Result<Written> RemoteMap::write(const WriteBatch& batch) {
  if (const auto good = check(batch); !good) return std::unexpected(good.error());
  std::string entries;
  const auto add = [&entries](const tree::BatchStep& step) {
    tree::append_step(entries, step);
    return entries.size() <= wire::kMessageBytesMax - 64;
  };
  for (const auto& check : batch.conditions()) {
    if (!add({wire::BatchKind::check, check.key, {}, check.condition()})) {
      return fail(Code::invalid_argument, wire::kMessageBytesMax);
    }
  }
  for (const auto& write : batch.writes()) {
    const auto kind = write.erase ? wire::BatchKind::erase : wire::BatchKind::put;
    if (!add({kind, write.key, write.value, {}})) {
      return fail(Code::invalid_argument, wire::kMessageBytesMax);
    }
  }
  const std::size_t count = batch.writes().size() + batch.conditions().size();
  const auto reply =
      ask_here(map_calls::BatchToWrite{0, static_cast<std::uint32_t>(count), entries});
  if (!reply) return std::unexpected(reply.error());
  return written_of(*reply);
}

// The request names the map by its number on the node that is asked.
template <class Request>
Result<typename Request::Reply> RemoteMap::ask_here(Request request) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto place = scope(**session);
  if (!place) return std::unexpected(place.error());
  request.map = place->map;
  return ask((*session)->requests, request);
}

Result<std::uint64_t> RemoteMap::scan(std::string_view low, std::string_view high,
                                      const ItemSink& sink, ScanOptions options) {
  const auto request = scan_request(low, high, options);
  if (!request) return std::unexpected(request.error());
  return run_scan(*this, *request, sink, options.parts);
}

// By READs of our own. Returns false if it goes by the rings instead: then the handler was told
// nothing.
Result<bool> RemoteMap::walk_parts(const Request& scan, std::uint32_t parts, Handler& handler) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto place = scope(**session);
  if (!place) return std::unexpected(place.error());
  RemoteSession& by = **session;
  auto borders = ask_borders(by.requests, *place, scan, parts);
  if (!borders) return std::unexpected(borders.error());
  auto& alone = by.parts.of<OneSidedCaller>(sessions_->walks());
  const tree::WalkTraffic before = alone.traffic();
  const auto done =
      alone.run_parts(by.requests, by.rings->connection(), place->map, scan, *borders, handler);
  sessions_->traffic().add(before, alone.traffic());
  return done;
}

Result<void> RemoteMap::run_parts(const Request& scan, std::uint32_t parts, Handler& handler) {
  if (sessions_->reads_alone()) {
    const auto walked = walk_parts(scan, parts, handler);
    if (!walked) return std::unexpected(walked.error());
    if (*walked) return {};
  }
  if (!options_.versions) return run(scan, handler);
  const auto held = snapshot();
  if (!held) return std::unexpected(held.error());
  return (*held)->run_parts(scan, parts, handler);
}

Result<std::uint64_t> RemoteMap::count(std::string_view low, std::string_view high) {
  if (const auto fit = check_bounds(low, high, max_key_bytes_); !fit) {
    return std::unexpected(fit.error());
  }
  const auto reply = ask_here(map_calls::Count{0, low, {}, high});
  if (!reply) return std::unexpected(reply.error());
  return reply->count;
}

Result<std::uint64_t> RemoteMap::count_estimate(std::string_view low, std::string_view high) {
  if (const auto fit = check_bounds(low, high, max_key_bytes_); !fit) {
    return std::unexpected(fit.error());
  }
  const auto reply = ask_here(map_calls::CountEstimate{0, low, high});
  if (!reply) return std::unexpected(reply.error());
  return reply->count;
}

Result<std::unique_ptr<RemoteSnapshot>> RemoteMap::prepare_snapshot() {
  auto rings = sessions_->open_lane();
  if (!rings) return std::unexpected(rings.error());
  auto snapshot = std::make_unique<RemoteSnapshot>(sessions_, std::move(*rings));
  const auto place = scope(snapshot->requests(), snapshot->connection());
  if (!place) return std::unexpected(place.error());
  snapshot->bind(*place);
  return snapshot;
}

Result<std::unique_ptr<SnapshotImpl>> RemoteMap::snapshot() {
  auto snapshot = prepare_snapshot();
  if (!snapshot) return std::unexpected(snapshot.error());
  if (const auto held = (*snapshot)->open(); !held) return std::unexpected(held.error());
  return std::unique_ptr<SnapshotImpl>(std::move(*snapshot));
}

Result<std::unique_ptr<PipelineImpl>> RemoteMap::open_pipeline(std::uint32_t in_flight) {
  auto rings = sessions_->open_lane();
  if (!rings) return std::unexpected(rings.error());
  Scope place;
  {
    RemoteSession session(std::move(*rings));
    const auto found = scope(session);
    *rings = std::move(session.rings);
    if (!found) {
      sessions_->release(std::move(*rings));
      return std::unexpected(found.error());
    }
    place = *found;
  }
  if (sessions_->reads_alone()) {
    auto control = sessions_->open_lane();
    if (!control) {
      sessions_->release(std::move(*rings));
      return std::unexpected(control.error());
    }
    // The map's number is that of one node, and another may have come between.
    if ((*control)->connection().node_id() != (*rings)->connection().node_id()) {
      sessions_->release(std::move(*rings));
      sessions_->release(std::move(*control));
      return fail(Code::connection_lost);
    }
    return std::make_unique<OneSidedPipeline<OneSidedMaps>>(sessions_, std::move(*rings),
                                                            std::move(*control), place, in_flight);
  }
  return std::make_unique<RingPipeline>(sessions_, std::move(*rings), place, in_flight);
}

Result<MapStats> RemoteMap::stats() {
  const auto reply = ask_here(map_calls::Stats{});
  if (!reply) return std::unexpected(reply.error());
  return tree::stats_of(reply->numbers);
}

}  // namespace espalier::client
