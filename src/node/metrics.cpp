// SPDX-License-Identifier: Apache-2.0
#include "node/metrics.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "espalier/kind.hpp"
#include "node/metric_samples.hpp"
#include "node/sample_metrics.hpp"

namespace espalier::node {

namespace {

constexpr double kNsPerSecond = 1e9;

template <auto Member>
void of_node(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.*Member);
}

template <auto Member>
void of_workers(Samples& samples, const NodeNumbers& numbers) {
  for (std::size_t i = 0; i < numbers.workers.size(); ++i) {
    samples.add(numbers.workers[i].*Member, {{"worker", std::to_string(i)}});
  }
}

template <auto Member>
void of_maps(Samples& samples, const NodeNumbers& numbers) {
  for (const MapNumbers& map : numbers.maps) {
    samples.add(std::uint64_t{map.stats.*Member}, {{"map", shown_name(map.name)}});
  }
}

template <auto Member>
void of_feeds(Samples& samples, const NodeNumbers& numbers) {
  for (const MapNumbers& map : numbers.maps) {
    samples.add(map.feed.*Member, {{"map", shown_name(map.name)}});
  }
}

template <auto Member>
void of_sequencers(Samples& samples, const NodeNumbers& numbers) {
  for (const SequencerNumbers& sequencer : numbers.sequencers) {
    samples.add(std::uint64_t{sequencer.facts.*Member},
                {{"sequencer", shown_name(sequencer.name)}});
  }
}

void sealed(Samples& samples, const NodeNumbers& numbers) {
  for (const SequencerNumbers& sequencer : numbers.sequencers) {
    const bool is_sealed = (sequencer.facts.flags & wire::kSequencerIsSealed) != 0;
    samples.add(std::uint64_t{is_sealed}, {{"sequencer", shown_name(sequencer.name)}});
  }
}

template <auto Member>
void of_peers(Samples& samples, const NodeNumbers& numbers) {
  for (const PeerNumbers& peer : numbers.peers) {
    samples.add(peer.totals.*Member, {{"peer", shown_name(peer.name)}});
  }
}

template <auto Member>
void of_device(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.device.*Member);
}

template <auto Member>
void of_tables(Samples& samples, const NodeNumbers& numbers) {
  for (const TableNumbers& table : numbers.tables) {
    samples.add(table.stats.*Member, {{"table", shown_name(table.name)}});
  }
}

template <auto Member>
void of_table_queries(Samples& samples, const NodeNumbers& numbers) {
  for (const TableNumbers& table : numbers.tables) {
    samples.add(table.stats.queries.*Member, {{"table", shown_name(table.name)}});
  }
}

template <auto Member>
void of_queries(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.queries.*Member);
}

template <auto Member>
void of_helpers(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.helpers.*Member);
}

template <auto Member>
void seconds_of_helpers(Samples& samples, const NodeNumbers& numbers) {
  samples.add(static_cast<double>(numbers.helpers.*Member) / kNsPerSecond);
}

template <auto Member>
void of_access(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.access.*Member);
}

void connection_cookies(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.connects.cookies_sent, {{"result", "sent"}});
  samples.add(numbers.connects.cookies_accepted, {{"result", "accepted"}});
  samples.add(numbers.connects.cookies_refused, {{"result", "refused"}});
}

void messages_shed(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.connects.messages_shed);
}

void packets_dropped(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.connects.foreign, {{"reason", "foreign"}});
  samples.add(numbers.connects.out_of_window, {{"reason", "out_of_window"}});
}

template <auto Member>
void of_principals(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.principal_totals.*Member);
}

template <auto Member>
void of_snapshots(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.snapshots.*Member);
}

template <auto Member>
void of_connections(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.connections.*Member);
}

void authentications(Samples& samples, const NodeNumbers& numbers) {
  const wire::AccessTotals& access = numbers.access;
  samples.add(access.authenticated, {{"result", "accepted"}});
  samples.add(access.wrong_proofs, {{"result", "wrong_proof"}});
  samples.add(access.failed, {{"result", "failed"}});
  samples.add(access.timed_out, {{"result", "timed_out"}});
  samples.add(access.limited, {{"result", "limited"}});
}

// Of a node without a data folder there is nothing to tell.
template <auto Member>
void of_log(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.log.is_there != 0) samples.add(numbers.log.*Member);
}

template <auto Member>
void of_data(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.log.is_there != 0) samples.add(numbers.data.*Member);
}

// Where none was finished yet there is nothing to tell of the last one.
template <auto Member>
void of_checkpoint(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.data.checkpoints != 0) samples.add(numbers.data.*Member);
}

template <auto Member>
void data_seconds(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.data.*Member != 0) {
    samples.add(static_cast<double>(numbers.data.*Member) / kNsPerSecond);
  }
}

void log_failed(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.log.is_there == 0) return;
  samples.add(numbers.log.failed, {{"reason", shown_name(numbers.log_failure)}});
}

template <auto Member>
void of_chain(Samples& samples, const NodeNumbers& numbers) {
  if (numbers.chain) samples.add((*numbers.chain).*Member);
}

void helper_jobs(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.helpers.ready, {{"state", "ready"}});
  samples.add(numbers.helpers.running, {{"state", "running"}});
  samples.add(numbers.helpers.waiting, {{"state", "waiting"}});
}

void objects(Samples& samples, const NodeNumbers& numbers) {
  samples.add(std::uint64_t{numbers.maps.size()}, {{"kind", name(ObjectKind::map)}});
  samples.add(std::uint64_t{numbers.tables.size()}, {{"kind", name(ObjectKind::table)}});
  samples.add(numbers.sequencer_count, {{"kind", name(ObjectKind::sequencer)}});
  samples.add(numbers.sampled.count, {{"kind", "other"}});
}

static_assert(wire::kSampledObjectsMax == 256, "as the page says");
void objects_left_out(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.sampled.left_out());
}

void index_reads(Samples& samples, const NodeNumbers& numbers) {
  samples.add(numbers.index_reads.resolved, {{"met", "no_table"}});
  samples.add(numbers.index_reads.leaves, {{"met", "leaf"}});
  samples.add(numbers.index_reads.interior, {{"met", "interior_node"}});
  samples.add(numbers.index_reads.nothing, {{"met", "nothing"}});
}

void requests(Samples& samples, const NodeNumbers& numbers) {
  for (const OffloadNumbers& offload : numbers.offloads) {
    samples.add(offload.requests, {{"offload", offload.name}});
  }
}

void durations(Samples& samples, const NodeNumbers& numbers) {
  for (const OffloadNumbers& offload : numbers.offloads) {
    samples.add_histogram(offload.durations, {"offload", offload.name});
  }
}

// Of all holders of one kind and owner together, for a series must be told once.
void held(Samples& samples, const NodeNumbers& numbers) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint64_t> sums;
  for (const memory::Holder& holder : numbers.holders) {
    sums[{memory::name_of(holder.kind), holder.owner, holder.object}] += holder.bytes;
  }
  for (const auto& [key, bytes] : sums) {
    const auto& [kind, owner, map] = key;
    samples.add(bytes, {{"kind", kind}, {"owner", owner}, {"map", shown_name(map)}});
  }
}

void build_info(Samples& samples, const NodeNumbers& numbers) {
  samples.add(std::uint64_t{1}, {{"version", numbers.version}});
}

constexpr Metric kMetrics[] = {
    {"espalier_build_info", "gauge", "version", "Always 1; the label says what runs.", build_info},
    {"espalier_process_start_time_seconds", "gauge", "",
     "When the process started, in seconds since 1970.", of_node<&NodeNumbers::start_time_seconds>},

    {"espalier_requests_total", "counter", "offload", "Requests taken.", requests},
    {"espalier_requests_refused_total", "counter", "", "Requests answered with an error.",
     of_node<&NodeNumbers::refused>},
    {"espalier_request_duration_seconds", "histogram", "offload",
     "Time from the beginning of a request to its answer, of about one request in 64.", durations},
    {"espalier_requests_in_flight", "gauge", "worker",
     "Requests that have begun and are not answered, or wait for their clients to read.",
     of_workers<&WorkerNumbers::in_flight>},
    {"espalier_unannounced_requests_total", "counter", "",
     "Rings that had requests although their doorbells had not rung.",
     of_node<&NodeNumbers::unannounced>},

    {"espalier_connections", "gauge", "worker", "Clients connected.",
     of_workers<&WorkerNumbers::connections>},
    {"espalier_connections_refused_total", "counter", "", "Clients turned away as they came.",
     of_node<&NodeNumbers::connections_refused>},
    {"espalier_connections_limit", "gauge", "", "Clients that may be connected.",
     of_connections<&wire::ConnectionTotals::connections_max>},
    {"espalier_principal_connections_limit", "gauge", "",
     "The same of one principal: a secret, a user or an address.",
     of_connections<&wire::ConnectionTotals::principal_max>},
    {"espalier_connections_kept", "gauge", "",
     "Of the places for clients, those that are kept for those who run the node.",
     of_connections<&wire::ConnectionTotals::kept>},
    {"espalier_connections_limited_total", "counter", "",
     "Clients turned away for what their principal has already, or what is kept for those who run "
     "the node.",
     of_connections<&wire::ConnectionTotals::limited>},
    {"espalier_pending_connections", "gauge", "",
     "Clients at the socket that have not said hello yet.",
     of_connections<&wire::ConnectionTotals::pending>},
    {"espalier_pending_connections_limit", "gauge", "", "What that may be.",
     of_connections<&wire::ConnectionTotals::pending_max>},
    {"espalier_user_pending_connections_limit", "gauge", "",
     "The same of one user; of one that runs the node twice as many.",
     of_connections<&wire::ConnectionTotals::user_pending_max>},
    {"espalier_ring_bytes", "gauge", "",
     "Memory of the rings of all clients, as they are laid out.",
     of_connections<&wire::ConnectionTotals::ring_bytes>},
    {"espalier_ring_limit_bytes", "gauge", "", "What it may be: clients.ring_bytes_max.",
     of_connections<&wire::ConnectionTotals::ring_bytes_max>},
    {"espalier_principal_ring_limit_bytes", "gauge", "", "The same of one principal.",
     of_connections<&wire::ConnectionTotals::principal_ring_bytes_max>},
    {"espalier_principals", "gauge", "", "Principals that have connections or snapshots.",
     of_principals<&wire::PrincipalTotals::count>},
    {"espalier_principal_connections_most", "gauge", "",
     "Connections of the principal that has most.",
     of_principals<&wire::PrincipalTotals::connections_most>},
    {"espalier_principal_ring_bytes_most", "gauge", "",
     "Memory of the rings of the principal that has most.",
     of_principals<&wire::PrincipalTotals::ring_bytes_most>},
    {"espalier_principal_snapshots_most", "gauge", "",
     "Snapshots of the principal that holds most.",
     of_principals<&wire::PrincipalTotals::snapshots_most>},
    {"espalier_principal_snapshots_limit", "gauge", "", "What that may be.",
     of_snapshots<&wire::SnapshotTotals::principal_max>},
    {"espalier_requests_denied_total", "counter", "",
     "Requests refused, for the role of their client does not allow them.",
     of_access<&wire::AccessTotals::denied>},
    {"espalier_authentications_total", "counter", "result",
     "Peers over fabrics that were asked for a proof: accepted, wrong_proof (a wrong mark of a "
     "session too), failed (a good proof, but no session could be made), timed_out, or limited "
     "(refused or pushed out, for as many as may be were pending).",
     authentications},
    {"espalier_pending_peers", "gauge", "", "Peers over fabrics that are not authenticated yet.",
     of_access<&wire::AccessTotals::pending>},
    {"espalier_connection_cookies_total", "counter", "result",
     "Cookies of those who ask for connections over roce while many do: sent (the request was "
     "forgotten), accepted (it came back), or refused (it was not right, or too old).",
     connection_cookies},
    {"espalier_connection_messages_shed_total", "counter", "",
     "Connection messages over roce that were dropped, for too many came in one turn.",
     messages_shed},
    {"espalier_packets_dropped_total", "counter", "reason",
     "Packets over roce for a pair that were dropped and not answered: foreign (not from its "
     "peer), "
     "or out_of_window (its peer cannot have sent it now).",
     packets_dropped},
    {"espalier_audit_left_out_total", "counter", "",
     "Refusals and acts of which the audit log has no line, for too many came.",
     of_access<&wire::AccessTotals::audit_left_out>},
    {"espalier_worker_sleeps_total", "counter", "worker",
     "How often a worker went to sleep for want of work.", of_workers<&WorkerNumbers::sleeps>},
    {"espalier_worker_wake_ups_total", "counter", "worker",
     "How often a sleeping worker was woken, by a client or another thread.",
     of_workers<&WorkerNumbers::wake_ups>},
    {"espalier_client_wakes_total", "counter", "",
     "How often a worker woke a client that slept until its answer came.",
     of_node<&NodeNumbers::client_wakes>},

    {"espalier_helper_threads", "gauge", "", "Threads that do what would keep a worker too long.",
     of_helpers<&wire::HelperTotals::threads>},
    {"espalier_helper_jobs", "gauge", "state",
     "Jobs of helpers: ready for a thread, running, or waiting for something else.", helper_jobs},
    {"espalier_helper_busy_seconds_total", "counter", "", "Time that helpers have worked.",
     seconds_of_helpers<&wire::HelperTotals::busy_ns>},
    {"espalier_helper_steps_total", "counter", "", "Steps of jobs that helpers have done.",
     of_helpers<&wire::HelperTotals::steps>},
    {"espalier_helper_long_steps_total", "counter", "",
     "Steps that took longer than a step should.", of_helpers<&wire::HelperTotals::long_steps>},
    {"espalier_helper_longest_step_seconds", "gauge", "", "The longest step since the start.",
     seconds_of_helpers<&wire::HelperTotals::longest_step_ns>},
    {"espalier_helper_jobs_refused_total", "counter", "",
     "Jobs refused, for their client or all together had too many.",
     of_helpers<&wire::HelperTotals::refused>},

    {"espalier_queries_running", "gauge", "", "Queries of tables that run.",
     of_queries<&wire::QueryTotals::running>},
    {"espalier_queries_waiting", "gauge", "", "Queries that wait for a place to run.",
     of_queries<&wire::QueryTotals::waiting>},
    {"espalier_queries_ended_total", "counter", "",
     "Queries that ended with all rows, or early, as the client wanted.",
     of_queries<&wire::QueryTotals::ended>},
    {"espalier_queries_failed_total", "counter", "",
     "Queries that ended with an error: a wrong pipeline, a value, or a table that was dropped.",
     of_queries<&wire::QueryTotals::failed>},
    {"espalier_queries_refused_total", "counter", "",
     "Queries that never began: there was no such table, or no place to run or wait.",
     of_queries<&wire::QueryTotals::refused>},
    {"espalier_result_buffer_bytes_total", "counter", "",
     "Bytes of results that were written into memory of clients.",
     of_node<&NodeNumbers::result_buffer_bytes>},

    {"espalier_index_reads_total", "counter", "met",
     "READs by key, and what they met: no table, or by a table a leaf, a node above, or nothing.",
     index_reads},

    {"espalier_objects", "gauge", "kind",
     "Objects that have a name; other: of all kinds of which this page has samples alone.",
     objects},
    {"espalier_objects_left_out", "gauge", "",
     "Objects of other kinds that this page leaves out: it has the 256 that take most memory, or "
     "fewer if their samples are long.",
     objects_left_out},
    {"espalier_memory_taken_bytes", "gauge", "", "Memory that all objects take together.",
     of_node<&NodeNumbers::memory_taken_bytes>},
    {"espalier_memory_limit_bytes", "gauge", "", "Memory that all objects may take together.",
     of_node<&NodeNumbers::memory_limit_bytes>},
    {"espalier_long_message_bytes", "gauge", "",
     "Memory of large requests and of answers that wait.",
     of_node<&NodeNumbers::long_message_bytes>},
    {"espalier_long_message_limit_bytes", "gauge", "",
     "Memory that large requests and answers that wait may take together.",
     of_node<&NodeNumbers::long_message_limit_bytes>},

    {"espalier_memory_held_bytes", "gauge", "", "Memory that the system has given for objects.",
     of_node<&NodeNumbers::memory_held_bytes>},
    {"espalier_memory_free_bytes", "gauge", "",
     "Memory that is taken and in no use, but free for some sizes only.",
     of_node<&NodeNumbers::memory_free_bytes>},
    {"espalier_memory_leased_bytes", "gauge", "",
     "Memory that waits for leases of clients that read by themselves, and for nothing else.",
     of_node<&NodeNumbers::leased_bytes>},
    {"espalier_memory_dropped_bytes", "gauge", "", "Memory of dropped maps that waits for leases.",
     of_node<&NodeNumbers::dropped_bytes>},
    {"espalier_snapshots", "gauge", "", "Snapshots of all maps, and versions that long scans hold.",
     of_snapshots<&wire::SnapshotTotals::count>},
    {"espalier_snapshot_bytes", "gauge", "", "Memory of old versions that these hold.",
     of_snapshots<&wire::SnapshotTotals::bytes>},
    {"espalier_snapshot_limit_bytes", "gauge", "",
     "What that may be for all maps together, a quarter of memory.limit.",
     of_snapshots<&wire::SnapshotTotals::bytes_max>},
    {"espalier_snapshots_expired_total", "counter", "",
     "Snapshots that were given up, for they held too much, or writes needed the memory.",
     of_snapshots<&wire::SnapshotTotals::expired>},
    {"espalier_dropped_maps", "gauge", "", "Dropped maps whose memory waits for leases.",
     of_node<&NodeNumbers::dropped_maps>},
    {"espalier_leases", "gauge", "", "Leases of clients that read by themselves.",
     of_node<&NodeNumbers::leases>},
    {"espalier_held_bytes", "gauge", "kind,map,owner",
     "Memory that waits for this reader, lease or snapshot, perhaps with others.", held},

    {"espalier_log_durable_sequence", "gauge", "",
     "Up to this record all that was done is on the disk.", of_log<&wire::LogTotals::durable>},
    {"espalier_log_handed_over_sequence", "gauge", "",
     "Up to this record all was handed to the log: what lies between waits for the disk.",
     of_log<&wire::LogTotals::handed_over>},
    {"espalier_log_bytes", "gauge", "", "The segments of the log on the disk.",
     of_log<&wire::LogTotals::bytes>},
    {"espalier_log_limit_bytes", "gauge", "", "What that may be: data.log_bytes_max.",
     of_log<&wire::LogTotals::bytes_max>},
    {"espalier_log_failed", "gauge", "reason",
     "1: the log has failed, and nothing is acknowledged any more; reason says what the disk did.",
     log_failed},
    {"espalier_checkpoints_total", "counter", "", "Checkpoints of its data that were finished.",
     of_data<&wire::DataTotals::checkpoints>},
    {"espalier_checkpoints_failed_total", "counter", "",
     "Checkpoints that were not finished; the log keeps what it has.",
     of_data<&wire::DataTotals::checkpoints_failed>},
    {"espalier_checkpoint_last_records", "gauge", "", "Records of the last one that was finished.",
     of_checkpoint<&wire::DataTotals::checkpoint_records>},
    {"espalier_checkpoint_last_bytes", "gauge", "", "Its bytes.",
     of_checkpoint<&wire::DataTotals::checkpoint_bytes>},
    {"espalier_checkpoint_last_seconds", "gauge", "", "How long it took.",
     data_seconds<&wire::DataTotals::checkpoint_ns>},
    {"espalier_recovered_records", "gauge", "",
     "Records that the start of the node has read and applied.",
     of_data<&wire::DataTotals::recovered_records>},
    {"espalier_recovered_bytes", "gauge", "", "Their bytes.",
     of_data<&wire::DataTotals::recovered_bytes>},
    {"espalier_recovery_seconds", "gauge", "", "How long that took.",
     data_seconds<&wire::DataTotals::recovered_ns>},

    {"espalier_chain_epoch", "gauge", "", "Of the chain that it is a member of.",
     of_chain<&ChainNumbers::epoch>},
    {"espalier_chain_members", "gauge", "", "Members of that chain.",
     of_chain<&ChainNumbers::members>},
    {"espalier_chain_serves", "gauge", "", "1: it is the head, and may answer.",
     of_chain<&ChainNumbers::serves>},
    {"espalier_chain_held_sequence", "gauge", "", "The newest record that it holds.",
     of_chain<&ChainNumbers::held>},
    {"espalier_chain_acknowledged_sequence", "gauge", "",
     "Up to here all members behind it have every record on their disks.",
     of_chain<&ChainNumbers::acknowledged>},

    {"espalier_epoch_current", "gauge", "",
     "The epoch, which moves on each time that memory is collected.", of_node<&NodeNumbers::epoch>},
    {"espalier_epoch_oldest", "gauge", "",
     "The oldest epoch at which somebody still reads; nothing unlinked since then is free.",
     of_node<&NodeNumbers::epoch_oldest>},
    {"espalier_epoch_participants", "gauge", "", "Places for readers that are taken.",
     of_node<&NodeNumbers::epoch_participants>},
    {"espalier_epoch_participants_limit", "gauge", "", "Places for readers.",
     of_node<&NodeNumbers::epoch_participants_limit>},

    {"espalier_map_items", "gauge", "map", "Items.", of_maps<&MapStats::items>},
    {"espalier_map_leaves", "gauge", "map", "Leaf nodes.", of_maps<&MapStats::leaves>},
    {"espalier_map_interior_nodes", "gauge", "map", "Nodes above the leaves.",
     of_maps<&MapStats::interior_nodes>},
    {"espalier_map_height", "gauge", "map", "Levels of nodes; a lone leaf is 1.",
     of_maps<&MapStats::height>},
    {"espalier_map_node_bytes", "gauge", "map", "Memory of nodes in the tree.",
     of_maps<&MapStats::node_bytes>},
    {"espalier_map_value_bytes", "gauge", "map", "Memory of values that lie beside the nodes.",
     of_maps<&MapStats::value_bytes>},
    {"espalier_map_retired_bytes", "gauge", "map",
     "Memory that is unlinked and waits for readers or snapshots before it is free.",
     of_maps<&MapStats::retired_bytes>},
    {"espalier_map_snapshots", "gauge", "map", "Snapshots held; they keep old versions.",
     of_maps<&MapStats::snapshots>},
    {"espalier_map_read_version", "gauge", "map", "The version at which reads begin.",
     of_maps<&MapStats::read_version>},
    {"espalier_map_write_version", "gauge", "map",
     "The last version that a write has taken; what lies between is on its way.",
     of_maps<&MapStats::write_version>},
    {"espalier_map_log_merges_total", "counter", "map",
     "Leaves rebuilt because their logs were full.", of_maps<&MapStats::log_merges>},
    {"espalier_map_splits_total", "counter", "map", "Leaves split.", of_maps<&MapStats::splits>},
    {"espalier_map_redistributions_total", "counter", "map",
     "Splits avoided by giving items to a neighbour.", of_maps<&MapStats::redistributions>},
    {"espalier_map_merges_total", "counter", "map", "Nodes merged.", of_maps<&MapStats::merges>},

    {"espalier_feed_followers", "gauge", "map", "Readers from elsewhere that follow its feed.",
     of_feeds<&wire::FeedNumbers::followers>},
    {"espalier_feed_entries_total", "counter", "map",
     "Moves of nodes that its mapping feed has told.", of_feeds<&wire::FeedNumbers::entries>},
    {"espalier_feed_gaps_total", "counter", "map",
     "Times that entries of its feed may be missing: one was left out, or the feed was off.",
     of_feeds<&wire::FeedNumbers::gaps>},

    {"espalier_sequencer_next", "gauge", "sequencer", "All numbers that it gave are below.",
     of_sequencers<&wire::SequencerFacts::next>},
    {"espalier_sequencer_epoch", "gauge", "sequencer", "Its epoch.",
     of_sequencers<&wire::SequencerFacts::epoch>},
    {"espalier_sequencer_sealed", "gauge", "sequencer", "1: its epoch has ended.", sealed},
    {"espalier_sequencer_requests_total", "counter", "sequencer",
     "Requests for its numbers that the node answered.",
     of_sequencers<&wire::SequencerFacts::requests>},
    {"espalier_sequencer_adds_total", "counter", "sequencer",
     "Adds to its word that the node made for them.", of_sequencers<&wire::SequencerFacts::adds>},

    {"espalier_peer_links_up", "gauge", "peer", "Links of workers to a peer that are there.",
     of_peers<&offload::PeerTotals::links_up>},
    {"espalier_peer_links_opened_total", "counter", "peer", "Times that one was made.",
     of_peers<&offload::PeerTotals::opened>},
    {"espalier_peer_posts_total", "counter", "peer", "READs, WRITEs and atomics that left.",
     of_peers<&offload::PeerTotals::posts>},
    {"espalier_peer_doorbells_total", "counter", "peer", "Doorbells by which they left.",
     of_peers<&offload::PeerTotals::doorbells>},
    {"espalier_peer_completions_total", "counter", "peer", "Completions that told of their ends.",
     of_peers<&offload::PeerTotals::completions>},
    {"espalier_peer_failures_total", "counter", "peer", "Posts and calls that did not end as done.",
     of_peers<&offload::PeerTotals::failures>},
    {"espalier_device_round_trips_total", "counter", "",
     "Times that walks of a device waited for READs of its host's memory.",
     of_device<&DeviceNumbers::round_trips>},
    {"espalier_device_read_bytes_total", "counter", "",
     "Bytes that a device has read of its host's memory.", of_device<&DeviceNumbers::bytes>},
    {"espalier_device_descents_total", "counter", "",
     "Ways down that a device's cache was asked for.", of_device<&DeviceNumbers::descents>},
    {"espalier_device_hits_total", "counter", "", "Those that it knew down to the leaf.",
     of_device<&DeviceNumbers::hits>},
    {"espalier_device_remembered_bytes_total", "counter", "",
     "Bytes of nodes that a device took of its own memory.",
     of_device<&DeviceNumbers::remembered_bytes>},
    {"espalier_device_balanced_total", "counter", "",
     "Nodes that a device remembered, and read of its host's memory to share the load.",
     of_device<&DeviceNumbers::balanced>},
    {"espalier_device_forwarded_total", "counter", "",
     "Reads that a device with too many had its host do.", of_device<&DeviceNumbers::forwarded>},
    {"espalier_device_feed_reads_total", "counter", "",
     "READs by which a device follows mapping feeds.", of_device<&DeviceNumbers::feed_reads>},
    {"espalier_device_feed_changes_total", "counter", "", "Moves of nodes that feeds have told it.",
     of_device<&DeviceNumbers::feed_changes>},
    {"espalier_device_feed_replaced_total", "counter", "",
     "Of these, moves of nodes that its cache knew.", of_device<&DeviceNumbers::feed_replaced>},
    {"espalier_device_feed_behind_total", "counter", "",
     "Times that it began with a feed or was lapped by it, and asks the page table again.",
     of_device<&DeviceNumbers::feed_behind>},

    {"espalier_table_rows", "gauge", "table", "Rows.", of_tables<&wire::TableNumbers::rows>},
    {"espalier_table_row_bytes", "gauge", "table", "Bytes of one row.",
     of_tables<&wire::TableNumbers::row_bytes>},
    {"espalier_table_pages", "gauge", "table", "Pages of rows.",
     of_tables<&wire::TableNumbers::pages>},
    {"espalier_table_memory_bytes", "gauge", "table", "Memory of pages, page list and header.",
     of_tables<&wire::TableNumbers::memory_bytes>},
    {"espalier_table_queries_running", "gauge", "table", "Queries of it that run.",
     of_table_queries<&wire::QueryTotals::running>},
    {"espalier_table_queries_waiting", "gauge", "table",
     "Queries of it that wait for a place to run.", of_table_queries<&wire::QueryTotals::waiting>},
    {"espalier_table_queries_ended_total", "counter", "table",
     "Queries of it that ended with all rows, or early, as the client wanted.",
     of_table_queries<&wire::QueryTotals::ended>},
    {"espalier_table_queries_failed_total", "counter", "table",
     "Queries of it that ended with an error.", of_table_queries<&wire::QueryTotals::failed>},
    {"espalier_table_queries_refused_total", "counter", "table",
     "Queries of it for which there was no place to run or wait.",
     of_table_queries<&wire::QueryTotals::refused>},
    {"espalier_table_read_rows_total", "counter", "table",
     "Rows that queries have read beside the memory.", of_tables<&wire::TableNumbers::rows_read>},
    {"espalier_table_read_bytes_total", "counter", "table",
     "Bytes that queries have read beside the memory.", of_tables<&wire::TableNumbers::bytes_read>},
    {"espalier_table_sent_rows_total", "counter", "table",
     "Rows of results that were sent to clients.", of_tables<&wire::TableNumbers::rows_sent>},
    {"espalier_table_sent_bytes_total", "counter", "table",
     "Bytes of results that were sent to clients.", of_tables<&wire::TableNumbers::bytes_sent>},
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

std::string metrics_text(const NodeNumbers& numbers) {
  std::string text;
  for (const Metric& metric : kMetrics) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                        metric.type);
    Samples samples(text, metric.name);
    metric.write(samples, numbers);
  }
  append_sample_metrics(text, numbers.sampled);
  return text;
}

}  // namespace espalier::node
