// SPDX-License-Identifier: Apache-2.0
// The table of a node's counters and gauges: a new one is one row.
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/map/offload/held_snapshots.hpp"
#include "node/checkpoint_thread.hpp"
#include "node/data_folder.hpp"
#include "node/listener.hpp"
#include "node/metric_lists.hpp"
#include "node/node_number.hpp"
#include "node/reading.hpp"

namespace espalier::node {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
using From = const Reading&;

/// Builds the table. A returned row is valid until the next one is added.
class NumberTable {
 public:
  template <class Read>
  NodeNumber& counter(std::string_view name, std::string_view json, std::string_view help, Read) {
    return add({.name = name, .type = "counter", .json = json, .help = help, .read = reads<Read>});
  }
  template <class Read>
  NodeNumber& gauge(std::string_view name, std::string_view json, std::string_view help, Read) {
    return add({.name = name, .type = "gauge", .json = json, .help = help, .read = reads<Read>});
  }
  void list(std::string_view name, std::string_view type, std::string_view labels,
            std::string_view help, void (*write)(MetricLines&, const NodeNumbers&)) {
    add({.name = name, .type = type, .help = help, .labels = labels, .write = write});
  }
  [[nodiscard]] std::vector<NodeNumber> take() { return std::move(rows_); }

 private:
  template <class Read>
  static Told reads(const Reading& reading) {
    return Read{}(reading);
  }
  NodeNumber& add(const NodeNumber& row) { return rows_.emplace_back(row); }

  std::vector<NodeNumber> rows_;
};

void rows_of_node(NumberTable& table) {
  table.list("build_info", "gauge", "version", "Always 1; the label says what runs.", build_info);
  table.list("process_start_time_seconds", "gauge", "",
             "When the process started, in seconds since 1970.", start_time);
}

void rows_of_requests(NumberTable& table) {
  table.list("requests", "counter", "offload", "Requests taken.", requests);
  table.counter("requests_refused", "", "Requests answered with an error.",
                [](From r) { return r.of_schedulers(&offload::SchedulerCounts::refused); });
  table.list("request_duration_seconds", "histogram", "offload",
             "Time from the beginning of a request to its answer, of about one request in 64.",
             durations);
  table.list("requests_in_flight", "gauge", "worker",
             "Requests that have begun and are not answered, or wait for their clients to read.",
             of_workers<&WorkerNumbers::in_flight>);
  table.counter("unannounced_requests", "",
                "Rings that had requests although their doorbells had not rung.",
                [](From r) { return r.of_clients(&offload::ClientCounts::sweeps_found); });
}

void rows_of_clients(NumberTable& table) {
  table.list("connections", "gauge", "worker", "Clients connected.",
             of_workers<&WorkerNumbers::connections>);
  table.counter("connections_refused", "", "Clients turned away as they came.",
                [](From r) { return r.node.connections_refused(); });
  table.gauge("connections_limit", "connections.limit", "Clients that may be connected.",
              [](From r) { return r.places.connections_max; });
  table.gauge("principal_connections_limit", "connections.principal_limit",
              "The same of one principal: a secret, a user or an address.",
              [](From r) { return r.places.principal_max; });
  table.gauge("connections_kept", "connections.kept",
              "Of the places for clients, those that are kept for those who run the node.",
              [](From r) { return r.places.kept; });
  table.counter("connections_limited", "connections.limited",
                "Clients turned away for what their principal has already, or what is kept for "
                "those who run the node.",
                [](From r) { return r.places.refused; });
  table.gauge("pending_connections", "connections.pending",
              "Clients at the socket that have not said hello yet.",
              [](From r) { return r.node.connections_pending(); });
  table.gauge("pending_connections_limit", "connections.pending_limit", "What that may be.",
              [](From) { return Listener::kPendingMax; });
  table.gauge("user_pending_connections_limit", "connections.user_pending_limit",
              "The same of one user; of one that runs the node twice as many.",
              [](From) { return Listener::kUserPendingMax; });
  table.gauge("ring_bytes", "connections.ring_bytes",
              "Memory of the rings of all clients, as they are laid out.",
              [](From r) { return r.places.ring_bytes; });
  table.gauge("ring_limit_bytes", "connections.ring_limit_bytes",
              "What it may be: clients.ring_bytes_max.",
              [](From r) { return r.places.ring_bytes_max; });
  table.gauge("principal_ring_limit_bytes", "connections.principal_ring_limit_bytes",
              "The same of one principal.",
              [](From r) { return r.places.principal_ring_bytes_max; });
}

void rows_of_principals(NumberTable& table) {
  table.gauge("principals", "", "Principals that have connections or snapshots.",
              [](From r) { return r.principals.count; });
  table.gauge("principal_connections_most", "", "Connections of the principal that has most.",
              [](From r) { return r.principals.connections_most; });
  table.gauge("principal_ring_bytes_most", "",
              "Memory of the rings of the principal that has most.",
              [](From r) { return r.principals.ring_bytes_most; });
  table.gauge("principal_snapshots_most", "", "Snapshots of the principal that holds most.",
              [](From r) { return r.principals.snapshots_most; });
  table.gauge("principal_snapshots_limit", "snapshots.principal_limit", "What that may be.",
              [](From) { return offload::HeldSnapshots::kPrincipalMost; });
  table.gauge("connection_snapshots_limit", "snapshots.connection_limit",
              "The same of one connection.", [](From) { return offload::HeldSnapshots::kMost; });
}

void rows_of_access(NumberTable& table) {
  table.counter("requests_denied", "access.denied",
                "Requests refused, for the role of their client does not allow them.",
                [](From r) { return r.node.services().denied.load(kRelaxed); });
  table
      .counter("authentications", "access.authenticated",
               "Peers over fabrics that were asked for a proof: accepted, wrong_proof (a wrong "
               "mark of a session too), failed (a good proof, but no session could be made), "
               "timed_out, or limited (refused or pushed out, for as many as may be were pending).",
               [](From r) { return r.of_proofs(&offload::AuthenticationCounts::accepted); })
      .with("result", "accepted");
  table
      .counter("authentications", "access.wrong_proofs", "",
               [](From r) { return r.of_proofs(&offload::AuthenticationCounts::wrong); })
      .with("result", "wrong_proof");
  table
      .counter("authentications", "access.failed", "",
               [](From r) { return r.of_proofs(&offload::AuthenticationCounts::failed); })
      .with("result", "failed");
  table
      .counter("authentications", "access.timed_out", "",
               [](From r) { return r.of_proofs(&offload::AuthenticationCounts::timed_out); })
      .with("result", "timed_out");
  table
      .counter("authentications", "access.limited", "",
               [](From r) { return r.of_proofs(&offload::AuthenticationCounts::limited); })
      .with("result", "limited");
  table.gauge("pending_peers", "access.pending",
              "Peers over fabrics that are not authenticated yet.",
              [](From r) { return r.of_proofs(&offload::AuthenticationCounts::pending); });
  table
      .counter(
          "connection_cookies", "roce.cookies_sent",
          "Cookies of those who ask for connections over roce while many do: sent (the request was "
          "forgotten), accepted (it came back), or refused (it was not right, or too old).",
          [](From r) { return r.of_fabrics(&offload::FabricCounts::cookies_sent); })
      .with("result", "sent");
  table
      .counter("connection_cookies", "roce.cookies_accepted", "",
               [](From r) { return r.of_fabrics(&offload::FabricCounts::cookies_accepted); })
      .with("result", "accepted");
  table
      .counter("connection_cookies", "roce.cookies_refused", "",
               [](From r) { return r.of_fabrics(&offload::FabricCounts::cookies_refused); })
      .with("result", "refused");
  table.counter("connection_messages_shed", "roce.messages_shed",
                "Connection messages over roce that were dropped, for too many came in one turn.",
                [](From r) { return r.of_fabrics(&offload::FabricCounts::messages_shed); });
  table
      .counter("packets_dropped", "roce.foreign",
               "Packets over roce for a pair that were dropped and not answered: foreign (not from "
               "its peer), or out_of_window (its peer cannot have sent it now).",
               [](From r) { return r.of_fabrics(&offload::FabricCounts::foreign); })
      .with("reason", "foreign");
  table
      .counter("packets_dropped", "roce.out_of_window", "",
               [](From r) { return r.of_fabrics(&offload::FabricCounts::out_of_window); })
      .with("reason", "out_of_window");
  table.counter("audit_left_out", "access.audit_left_out",
                "Refusals and acts of which the audit log has no line, for too many came.",
                [](From r) { return r.node.services().audit.left_out(); });
}

void rows_of_datagrams(NumberTable& table) {
  using offload::DatagramCounts;
  table.gauge("datagram_sessions", "datagrams.sessions",
              "Sessions of clients that may ask by datagrams, of nodes with node.datagrams.",
              [](From r) { return r.datagram_sessions(); });
  table
      .counter("datagrams", "datagrams.answered",
               "Datagrams that came to node.datagrams: answered (gets, floors, scans), by_ring "
               "(those that the client was told to ask by its connection), challenged "
               "(addresses that were to be proved), or dropped (not answered: of no session, "
               "with a wrong tag, not from the session's address, repeated too often, or too "
               "many).",
               [](From r) { return r.of_datagrams(&DatagramCounts::answered); })
      .with("result", "answered");
  table
      .counter("datagrams", "datagrams.by_ring", "",
               [](From r) { return r.of_datagrams(&DatagramCounts::by_ring); })
      .with("result", "by_ring");
  table
      .counter("datagrams", "datagrams.challenged", "",
               [](From r) { return r.of_datagrams(&DatagramCounts::challenged); })
      .with("result", "challenged");
  table
      .counter("datagrams", "datagrams.dropped", "",
               [](From r) { return r.of_datagrams(&DatagramCounts::dropped); })
      .with("result", "dropped");
  table.counter("datagrams_limited", "datagrams.limited",
                "Of those that were dropped, how many were more than the rates of their sessions "
                "and principals.",
                [](From r) { return r.of_datagrams(&DatagramCounts::limited); });
}

void rows_of_workers(NumberTable& table) {
  table.list("worker_sleeps", "counter", "worker",
             "How often a worker went to sleep for want of work.",
             of_workers<&WorkerNumbers::sleeps>);
  table.list("worker_wake_ups", "counter", "worker",
             "How often a sleeping worker was woken, by a client or another thread.",
             of_workers<&WorkerNumbers::wake_ups>);
  table.counter("client_wakes", "",
                "How often a worker woke a client that slept until its answer came.",
                [](From r) { return r.of_clients(&offload::ClientCounts::wakes); });
}

void rows_of_helpers(NumberTable& table) {
  table.gauge("helper_threads", "helpers.threads",
              "Threads that do what would keep a worker too long.",
              [](From r) { return r.helpers.threads; });
  table
      .gauge("helper_jobs", "helpers.jobs_ready",
             "Jobs of helpers: ready for a thread, running, or waiting for something else.",
             [](From r) { return r.helpers.ready; })
      .with("state", "ready");
  table.gauge("helper_jobs", "helpers.jobs_running", "", [](From r) { return r.helpers.running; })
      .with("state", "running");
  table.gauge("helper_jobs", "helpers.jobs_waiting", "", [](From r) { return r.helpers.waiting; })
      .with("state", "waiting");
  table.counter("helper_busy_nanoseconds", "helpers.busy_ns", "Time that helpers have worked.",
                [](From r) { return r.helpers.busy_ns; });
  table.counter("helper_steps", "helpers.steps", "Steps of jobs that helpers have done.",
                [](From r) { return r.helpers.steps; });
  table.counter("helper_long_steps", "helpers.long_steps",
                "Steps that took longer than a step should.",
                [](From r) { return r.helpers.long_steps; });
  table.gauge("helper_longest_step_nanoseconds", "helpers.longest_step_ns",
              "The longest step since the start.",
              [](From r) { return r.helpers.longest_step_ns; });
  table.counter("helper_jobs_refused", "helpers.jobs_refused",
                "Jobs refused, for their client or all together had too many.",
                [](From r) { return r.helpers.refused; });
}

void rows_of_queries(NumberTable& table) {
  table.gauge("queries_running", "queries.running", "Queries of tables that run.",
              [](From r) { return r.tables.query_counts.running.load(kRelaxed); });
  table.gauge("queries_waiting", "queries.waiting", "Queries that wait for a place to run.",
              [](From r) { return r.tables.query_counts.waiting.load(kRelaxed); });
  table.counter("queries_ended", "queries.ended",
                "Queries that ended with all rows, or early, as the client wanted.",
                [](From r) { return r.tables.query_counts.ended.load(kRelaxed); });
  table.counter(
      "queries_failed", "queries.failed",
      "Queries that ended with an error: a wrong pipeline, a value, or a table that was dropped.",
      [](From r) { return r.tables.query_counts.failed.load(kRelaxed); });
  table.counter("queries_refused", "queries.refused",
                "Queries that never began: there was no such table, or no place to run or wait.",
                [](From r) { return r.tables.query_counts.refused.load(kRelaxed); });
  table.counter("result_buffer_bytes", "",
                "Bytes of results that were written into memory of clients.",
                [](From r) { return r.tables.result_buffer_bytes.load(kRelaxed); });
}

void rows_of_reads_by_key(NumberTable& table) {
  table
      .counter("index_reads", "index_reads.resolved",
               "READs by key, and what they met: no table, or by a table a leaf, a node above, or "
               "nothing.",
               [](From r) { return r.index_reads.resolved.load(kRelaxed); })
      .with("met", "no_table");
  table
      .counter("index_reads", "index_reads.leaves", "",
               [](From r) { return r.index_reads.leaves.load(kRelaxed); })
      .with("met", "leaf");
  table
      .counter("index_reads", "index_reads.interior_nodes", "",
               [](From r) { return r.index_reads.interior.load(kRelaxed); })
      .with("met", "interior_node");
  table
      .counter("index_reads", "index_reads.nothing", "",
               [](From r) { return r.index_reads.nothing.load(kRelaxed); })
      .with("met", "nothing");
}

void rows_of_objects(NumberTable& table) {
  table
      .gauge("objects", "objects.map",
             "Objects that have a name; other: of all kinds that have come since.",
             [](From r) { return r.count_of(ObjectKind::map); })
      .with("kind", "map");
  table.gauge("objects", "objects.table", "", [](From r) { return r.count_of(ObjectKind::table); })
      .with("kind", "table");
  table
      .gauge("objects", "objects.sequencer", "",
             [](From r) { return r.count_of(ObjectKind::sequencer); })
      .with("kind", "sequencer");
  table
      .gauge("objects", "objects.other", "",
             [](From r) {
               return r.count_of(ObjectKind::any) - r.count_of(ObjectKind::map) -
                      r.count_of(ObjectKind::table) - r.count_of(ObjectKind::sequencer);
             })
      .with("kind", "other");
  table.list("objects_left_out", "gauge", "",
             "Objects that this page leaves out: it has those that take most memory, as many as a "
             "megabyte of samples tells of.",
             objects_left_out);
}

void rows_of_memory(NumberTable& table) {
  table.gauge("memory_taken_bytes", "memory.taken_bytes", "Memory that all objects take together.",
              [](From r) { return r.store.region.taken_bytes(); });
  table.gauge("memory_limit_bytes", "memory.limit_bytes",
              "Memory that all objects may take together.",
              [](From r) { return r.store.region.limit_bytes(); });
  table.gauge("long_message_bytes", "memory.message_bytes",
              "Memory of large requests and of answers that wait.",
              [](From r) { return r.node.services().budget.used(); });
  table.gauge("long_message_limit_bytes", "memory.message_limit_bytes",
              "Memory that large requests and answers that wait may take together.",
              [](From r) { return r.node.config().clients.message_bytes_max; });
  table.gauge("memory_held_bytes", "memory.system_bytes",
              "Memory that the system has given for objects.",
              [](From r) { return r.store.region.memory_bytes(); });
  table.gauge("memory_free_bytes", "memory.free_bytes",
              "Memory that is taken and in no use, but free for some sizes only.",
              [](From r) { return r.store.pool.free_bytes(); });
  table.gauge(
      "memory_leased_bytes", "memory.leased_bytes",
      "Memory that waits for leases of clients that read by themselves, and for nothing else.",
      [](From r) { return r.store.reclaimer.bytes_held_by_leases() + r.store.dropped.bytes(); });
  table.gauge("memory_dropped_bytes", "memory.dropped_bytes",
              "Memory of dropped maps that waits for leases.",
              [](From r) { return r.store.dropped.bytes(); });
}

void rows_of_snapshots(NumberTable& table) {
  table.gauge("snapshots", "snapshots.count",
              "Snapshots of all maps, and versions that long scans hold.",
              [](From r) { return r.snapshots.count; });
  table.gauge("snapshot_bytes", "snapshots.bytes", "Memory of old versions that these hold.",
              [](From r) { return r.snapshots.bytes; });
  table.gauge("snapshot_limit_bytes", "snapshots.limit_bytes",
              "What that may be for all maps together, a quarter of memory.limit.",
              [](From r) { return r.snapshots.bytes_max; });
  table.counter(
      "snapshots_expired", "snapshots.expired",
      "Snapshots that were given up, for they held too much, or writes needed the memory.",
      [](From r) { return r.snapshots.expired; });
}

void rows_of_leases(NumberTable& table) {
  table.gauge("dropped_maps", "memory.dropped_maps", "Dropped maps whose memory waits for leases.",
              [](From r) { return r.store.dropped.size(); });
  table.gauge("leases", "memory.leases", "Leases of clients that read by themselves.",
              [](From r) { return r.store.leases.size(); });
  table.list("held_bytes", "gauge", "kind,map,owner",
             "Memory that waits for this reader, lease or snapshot, perhaps with others.", held);
}

void rows_of_log(NumberTable& table) {
  table.gauge("log_durable_sequence", "log.durable_sequence",
              "Up to this record all that was done is on the disk.", [](From r) {
                return r.of_log([](const log::LogWriter& log) { return log.durable(); });
              });
  table.gauge(
      "log_handed_over_sequence", "log.handed_over_sequence",
      "Up to this record all was handed to the log: what lies between waits for the disk.",
      [](From r) { return r.of_log([](const log::LogWriter& log) { return log.handed_over(); }); });
  table.gauge("log_bytes", "log.bytes", "The segments of the log on the disk.", [](From r) {
    return r.of_log([](const log::LogWriter& log) { return log.bytes(); });
  });
  table.gauge(
      "log_limit_bytes", "log.limit_bytes", "What that may be: data.log_bytes_max.", [](From r) {
        return r.of_data([&](const DataFolder&) { return r.node.config().data.log_bytes_max; });
      });
  table
      .gauge("log_failed", "log.failed",
             "1: the log has failed, and nothing is acknowledged any more; reason says what the "
             "disk did.",
             [](From r) {
               return r.of_data(
                   [&](const DataFolder&) { return std::uint64_t{!r.log_failure.empty()}; });
             })
      .truth()
      .lines("reason", log_failed);
}

void rows_of_checkpoints(NumberTable& table) {
  table.counter("checkpoints", "log.checkpoints", "Checkpoints of its data that were finished.",
                [](From r) { return r.of_checkpoints(&CheckpointCounts::finished); });
  table.counter("checkpoints_failed", "log.checkpoints_failed",
                "Checkpoints that were not finished; the log keeps what it has.",
                [](From r) { return r.of_checkpoints(&CheckpointCounts::failed); });
  table.gauge("checkpoint_last_records", "log.checkpoint_records",
              "Records of the last one that was finished.",
              [](From r) { return r.of_last_checkpoint(&CheckpointCounts::last_records); });
  table.gauge("checkpoint_last_bytes", "log.checkpoint_bytes", "Its bytes.",
              [](From r) { return r.of_last_checkpoint(&CheckpointCounts::last_bytes); });
  table.gauge("checkpoint_last_nanoseconds", "log.checkpoint_ns", "How long it took.",
              [](From r) { return r.of_last_checkpoint(&CheckpointCounts::last_ns); });
  table.gauge("recovered_records", "log.recovered_records",
              "Records that the start of the node has read and applied.", [](From r) {
                return r.of_data([](const DataFolder& data) { return data.applied_records(); });
              });
  table.gauge("recovered_bytes", "log.recovered_bytes", "Their bytes.", [](From r) {
    return r.of_data([](const DataFolder& data) { return data.applied_bytes(); });
  });
  table.gauge("recovery_expected_bytes", "log.recovery_expected_bytes",
              "The files that there were to read: a little more than what is read of them.",
              [](From r) {
                return r.of_data([](const DataFolder& data) { return data.expected_bytes(); });
              });
  table.gauge("recovery_nanoseconds", "log.recovery_ns", "How long that took.", [](From r) {
    return r.of_data([](const DataFolder& data) { return data.applied_ns(); });
  });
}

void rows_of_chain(NumberTable& table) {
  table.gauge("chain_epoch", "chain.epoch", "Of the chain that it is a member of.",
              [](From r) { return r.of_chain(&ChainNumbers::epoch); });
  table.gauge("chain_members", "chain.members", "Members of that chain.",
              [](From r) { return r.of_chain(&ChainNumbers::members); });
  table
      .gauge("chain_serves", "chain.serves", "1: it is the head, and may answer.",
             [](From r) { return r.of_chain(&ChainNumbers::serves); })
      .truth();
  table.gauge("chain_held_sequence", "chain.held_sequence", "The newest record that it holds.",
              [](From r) { return r.of_chain(&ChainNumbers::held); });
  table.gauge("chain_acknowledged_sequence", "chain.acknowledged_sequence",
              "Up to here all members behind it have every record on their disks.",
              [](From r) { return r.of_chain(&ChainNumbers::acknowledged); });
}

void rows_of_epochs(NumberTable& table) {
  table.gauge("epoch_current", "epochs.current",
              "The epoch, which moves on each time that memory is collected.",
              [](From r) { return r.epoch; });
  table.gauge(
      "epoch_oldest", "epochs.oldest",
      "The oldest epoch at which somebody still reads; nothing unlinked since then is free.",
      [](From r) { return r.epoch_oldest; });
  table.gauge("epoch_participants", "epochs.participants", "Places for readers that are taken.",
              [](From r) { return r.store.epochs.participants(); });
  table.gauge("epoch_participants_limit", "epochs.participants_limit", "Places for readers.",
              [](From r) { return r.store.epochs.participants_max(); });
}

void rows_of_device(NumberTable& table) {
  table.counter("device_round_trips", "device.round_trips",
                "Times that walks of a device waited for READs of its host's memory.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::round_trips); });
  table.counter("device_read_bytes", "device.bytes",
                "Bytes that a device has read of its host's memory.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::bytes); });
  table.counter("device_descents", "device.descents",
                "Ways down that a device's cache was asked for.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::descents); });
  table.counter("device_hits", "device.hits", "Those that it knew down to the leaf.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::hits); });
  table.counter("device_remembered_bytes", "device.remembered_bytes",
                "Bytes of nodes that a device took of its own memory.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::remembered_bytes); });
  table.counter("device_balanced", "device.balanced",
                "Nodes that a device remembered, and read of its host's memory to share the load.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::balanced); });
  table.counter("device_forwarded", "device.forwarded",
                "Reads that a device with too many had its host do.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::forwarded); });
  table.counter("device_feed_reads", "device.feed_reads",
                "READs by which a device follows mapping feeds.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::feed_reads); });
  table.counter("device_feed_changes", "device.feed_changes",
                "Moves of nodes that feeds have told it.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::feed_changes); });
  table.counter("device_feed_replaced", "device.feed_replaced",
                "Of these, moves of nodes that its cache knew.",
                [](From r) { return r.of_device(&offload::ElsewhereCounts::feed_replaced); });
  table.counter(
      "device_feed_behind", "device.feed_behind",
      "Times that it began with a feed or was lapped by it, and asks the page table again.",
      [](From r) { return r.of_device(&offload::ElsewhereCounts::feed_behind); });
}

void rows_of_peers(NumberTable& table) {
  table.list("peer_links_up", "gauge", "peer", "Links of workers to a peer that are there.",
             of_peers<&offload::PeerTotals::links_up>);
  table.list("peer_links_opened", "counter", "peer", "Times that one was made.",
             of_peers<&offload::PeerTotals::opened>);
  table.list("peer_posts", "counter", "peer", "READs, WRITEs and atomics that left.",
             of_peers<&offload::PeerTotals::posts>);
  table.list("peer_doorbells", "counter", "peer", "Doorbells by which they left.",
             of_peers<&offload::PeerTotals::doorbells>);
  table.list("peer_completions", "counter", "peer", "Completions that told of their ends.",
             of_peers<&offload::PeerTotals::completions>);
  table.list("peer_failures", "counter", "peer",
             "READs, WRITEs and atomics that did not end as done.",
             of_peers<&offload::PeerTotals::failures>);
  table.list("peer_calls", "counter", "peer", "Calls that left.",
             of_peers<&offload::PeerTotals::calls>);
  table.list("peer_calls_failed", "counter", "peer", "Calls that got no answer.",
             of_peers<&offload::PeerTotals::calls_failed>);
}

std::vector<NodeNumber> all_rows() {
  NumberTable table;
  rows_of_node(table);
  rows_of_requests(table);
  rows_of_clients(table);
  rows_of_principals(table);
  rows_of_access(table);
  rows_of_datagrams(table);
  rows_of_workers(table);
  rows_of_helpers(table);
  rows_of_queries(table);
  rows_of_reads_by_key(table);
  rows_of_objects(table);
  rows_of_memory(table);
  rows_of_snapshots(table);
  rows_of_leases(table);
  rows_of_log(table);
  rows_of_checkpoints(table);
  rows_of_chain(table);
  rows_of_epochs(table);
  rows_of_device(table);
  rows_of_peers(table);
  return table.take();
}

}  // namespace

std::span<const NodeNumber> node_numbers() {
  static const std::vector<NodeNumber> rows = all_rows();
  return rows;
}

}  // namespace espalier::node
