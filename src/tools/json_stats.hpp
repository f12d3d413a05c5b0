// SPDX-License-Identifier: Apache-2.0
// The numbers of maps, tables, queries, helpers, access control and READs by key as JSON, named
// alike by all commands.
#pragma once

#include <nlohmann/json.hpp>

#include "espalier/hash_map.hpp"
#include "espalier/types.hpp"
#include "memory/holders.hpp"
#include "node/metrics.hpp"
#include "tools/json_record.hpp"
#include "wire/node_numbers.hpp"

namespace espalier::tools {

/// Sets a member of `object` for each number.
inline void set_stats(nlohmann::ordered_json& object, const MapStats& stats) {
  object["items"] = stats.items;
  object["height"] = stats.height;
  object["leaves"] = stats.leaves;
  object["interior_nodes"] = stats.interior_nodes;
  object["node_bytes"] = stats.node_bytes;
  object["value_bytes"] = stats.value_bytes;
  object["retired_bytes"] = stats.retired_bytes;
  object["log_merges"] = stats.log_merges;
  object["splits"] = stats.splits;
  object["redistributions"] = stats.redistributions;
  object["merges"] = stats.merges;
  object["read_version"] = stats.read_version;
  object["write_version"] = stats.write_version;
  object["snapshots"] = stats.snapshots;
}

/// The same of a hash map.
inline void set_stats(nlohmann::ordered_json& object, const HashMapStats& stats) {
  object["items"] = stats.items;
  object["memory_bytes"] = stats.memory_bytes;
  object["segments"] = stats.segments;
  object["record_bytes"] = stats.record_bytes;
  object["long_bytes"] = stats.long_bytes;
  object["retired_bytes"] = stats.retired_bytes;
  object["splits"] = stats.splits;
  object["read_version"] = stats.read_version;
  object["write_version"] = stats.write_version;
  object["snapshots"] = stats.snapshots;
}

/// Of a map's mapping feed.
[[nodiscard]] inline nlohmann::ordered_json feed_json(const wire::FeedNumbers& feed) {
  nlohmann::ordered_json object;
  object["followers"] = feed.followers;
  object["entries"] = feed.entries;
  object["gaps"] = feed.gaps;
  return object;
}

/// Sets a member of `object` for each number of a sequencer.
inline void set_stats(nlohmann::ordered_json& object, const wire::SequencerFacts& facts) {
  object["epoch"] = facts.epoch;
  object["first"] = facts.first;
  object["next"] = facts.next;
  object["sealed"] = (facts.flags & wire::kSequencerIsSealed) != 0;
  object["overwritten"] = (facts.flags & wire::kSequencerOverwritten) != 0;
  object["requests"] = facts.requests;
  object["node_adds"] = facts.adds;
}

[[nodiscard]] inline nlohmann::ordered_json queries_json(const wire::QueryTotals& queries) {
  nlohmann::ordered_json object;
  object["running"] = queries.running;
  object["waiting"] = queries.waiting;
  object["ended"] = queries.ended;
  object["failed"] = queries.failed;
  object["refused"] = queries.refused;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json helpers_json(const wire::HelperTotals& helpers) {
  nlohmann::ordered_json object;
  object["threads"] = helpers.threads;
  object["jobs_ready"] = helpers.ready;
  object["jobs_running"] = helpers.running;
  object["jobs_waiting"] = helpers.waiting;
  object["jobs_refused"] = helpers.refused;
  object["steps"] = helpers.steps;
  object["long_steps"] = helpers.long_steps;
  object["longest_step_ns"] = helpers.longest_step_ns;
  object["busy_ns"] = helpers.busy_ns;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json index_reads_json(const wire::IndexReadTotals& reads) {
  nlohmann::ordered_json object;
  object["resolved"] = reads.resolved;
  object["leaves"] = reads.leaves;
  object["interior_nodes"] = reads.interior;
  object["nothing"] = reads.nothing;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json access_json(const wire::AccessTotals& access) {
  nlohmann::ordered_json object;
  object["authenticated"] = access.authenticated;
  object["wrong_proofs"] = access.wrong_proofs;
  object["failed"] = access.failed;
  object["timed_out"] = access.timed_out;
  object["limited"] = access.limited;
  object["pending"] = access.pending;
  object["denied"] = access.denied;
  object["audit_left_out"] = access.audit_left_out;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json snapshots_json(const wire::SnapshotTotals& snapshots) {
  nlohmann::ordered_json object;
  object["count"] = snapshots.count;
  object["bytes"] = snapshots.bytes;
  object["limit_bytes"] = snapshots.bytes_max;
  object["expired"] = snapshots.expired;
  object["principal_limit"] = snapshots.principal_max;
  object["connection_limit"] = snapshots.connection_max;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json connections_json(
    const wire::ConnectionTotals& connections) {
  nlohmann::ordered_json object;
  object["limit"] = connections.connections_max;
  object["principal_limit"] = connections.principal_max;
  object["limited"] = connections.limited;
  object["pending"] = connections.pending;
  object["ring_bytes"] = connections.ring_bytes;
  object["ring_limit_bytes"] = connections.ring_bytes_max;
  object["principal_ring_limit_bytes"] = connections.principal_ring_bytes_max;
  object["kept"] = connections.kept;
  object["pending_limit"] = connections.pending_max;
  object["user_pending_limit"] = connections.user_pending_max;
  return object;
}

/// Of packets over roce in names that may not be their senders'.
[[nodiscard]] inline nlohmann::ordered_json connects_json(const wire::ConnectTotals& connects) {
  nlohmann::ordered_json object;
  object["cookies_sent"] = connects.cookies_sent;
  object["cookies_accepted"] = connects.cookies_accepted;
  object["cookies_refused"] = connects.cookies_refused;
  object["messages_shed"] = connects.messages_shed;
  object["foreign"] = connects.foreign;
  object["out_of_window"] = connects.out_of_window;
  return object;
}

/// What one has of what principals share.
[[nodiscard]] inline nlohmann::ordered_json principal_json(const node::PrincipalNumbers& of) {
  nlohmann::ordered_json object;
  set_bytes(object, "principal", of.name);
  object["connections"] = of.connections;
  object["ring_bytes"] = of.ring_bytes;
  object["snapshots"] = of.snapshots;
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json log_json(const node::NodeNumbers& numbers) {
  nlohmann::ordered_json object;
  object["durable_sequence"] = numbers.log.durable;
  object["handed_over_sequence"] = numbers.log.handed_over;
  object["bytes"] = numbers.log.bytes;
  object["limit_bytes"] = numbers.log.bytes_max;
  object["failed"] = numbers.log.failed != 0;
  if (numbers.log.failed != 0) set_bytes(object, "failure", numbers.log_failure);
  object["recovered_records"] = numbers.data.recovered_records;
  object["recovery_ns"] = numbers.data.recovered_ns;
  object["checkpoints"] = numbers.data.checkpoints;
  object["checkpoints_failed"] = numbers.data.checkpoints_failed;
  if (numbers.data.checkpoints != 0) {
    object["checkpoint_records"] = numbers.data.checkpoint_records;
    object["checkpoint_bytes"] = numbers.data.checkpoint_bytes;
    object["checkpoint_ns"] = numbers.data.checkpoint_ns;
  }
  return object;
}

[[nodiscard]] inline nlohmann::ordered_json device_json(const wire::DeviceTotals& device) {
  nlohmann::ordered_json object;
  object["round_trips"] = device.round_trips;
  object["bytes"] = device.bytes;
  object["descents"] = device.descents;
  object["hits"] = device.hits;
  object["remembered_bytes"] = device.remembered_bytes;
  object["balanced"] = device.balanced;
  object["forwarded"] = device.forwarded;
  object["feed_reads"] = device.feed_reads;
  object["feed_changes"] = device.feed_changes;
  object["feed_replaced"] = device.feed_replaced;
  object["feed_behind"] = device.feed_behind;
  return object;
}

/// Sets a member of `object` for each number of a table.
inline void set_stats(nlohmann::ordered_json& object, const wire::TableNumbers& stats) {
  object["rows"] = stats.rows;
  object["row_bytes"] = stats.row_bytes;
  object["pages"] = stats.pages;
  object["memory_bytes"] = stats.memory_bytes;
  object["queries"] = queries_json(stats.queries);
  object["rows_read"] = stats.rows_read;
  object["bytes_read"] = stats.bytes_read;
  object["rows_sent"] = stats.rows_sent;
  object["bytes_sent"] = stats.bytes_sent;
}

/// One that keeps memory from being free.
[[nodiscard]] inline nlohmann::ordered_json holder_json(const memory::Holder& holder) {
  nlohmann::ordered_json object;
  object["kind"] = memory::name_of(holder.kind);
  set_bytes(object, "owner", holder.owner);
  if (holder.kind == memory::Holder::Kind::snapshot) set_bytes(object, "map", holder.object);
  object["since"] = holder.since;
  object["held_bytes"] = holder.bytes;
  return object;
}

}  // namespace espalier::tools
