// SPDX-License-Identifier: Apache-2.0
// The numbers of a node as they travel: the answer to `node_stats`.
//
//   0                   840
//   +-------------------+---------+----------------+---------------+-----------+-------------+-----
//   | NodeNumbersHeader | version | OffloadNumbers | WorkerNumbers | MapEntry, | TableEntry, | ...
//   |                   | (text)  |                |               | its name  | its name    |
//   +-------------------+---------+----------------+---------------+-----------+-------------+-----
//                                   `offloads`       `workers`       `maps`      `tables` of them
//
// Behind the version stands why the log has failed, where it has (LogTotals::failure_bytes); and
// then, behind the tables, `holders` of HolderEntry, each with two names, `sequencers` of
// SequencerEntry and `principals` of PrincipalEntry, each with its name.
//
// Each follows the one before without a gap. src/node/numbers_format.hpp writes and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "espalier/kind.hpp"
#include "wire/message.hpp"
#include "wire/sequencer.hpp"

namespace espalier::wire {

/// Whether node_stats tells objects of this kind: these and no others, in any version. A kind that
/// comes later is told by samples alone (wire/samples.hpp); else programs of today would show it
/// twice, or not at all.
[[nodiscard]] constexpr bool is_in_node_stats(ObjectKind kind) {
  return kind == ObjectKind::map || kind == ObjectKind::table || kind == ObjectKind::sequencer;
}

/// Buckets of durations: what docs/metrics.md says about their bounds.
inline constexpr std::uint32_t kDurationBuckets = 54;

/// Queries of a node or of one table. Counters begin at 0 when it starts, or is made.
struct QueryTotals {
  std::uint64_t running;
  std::uint64_t waiting;
  std::uint64_t ended;    // with all rows, or early, as the client wanted
  std::uint64_t failed;   // after they had begun
  std::uint64_t refused;  // before
};
static_assert(sizeof(QueryTotals) == 40 && std::has_unique_object_representations_v<QueryTotals>);

/// Threads for what would keep a worker too long, and their jobs.
struct HelperTotals {
  std::uint64_t threads;
  std::uint64_t ready;  // jobs that wait for a thread
  std::uint64_t running;
  std::uint64_t waiting;  // jobs that wait for something else
  std::uint64_t steps;
  std::uint64_t long_steps;
  std::uint64_t longest_step_ns;
  std::uint64_t busy_ns;  // of all threads
  std::uint64_t refused;  // jobs
};
static_assert(sizeof(HelperTotals) == 72 && std::has_unique_object_representations_v<HelperTotals>);

/// READs by keys that sessions share: what tables in switches make of them.
struct IndexReadTotals {
  std::uint64_t resolved;  // no table had met them: the node found the leaf
  std::uint64_t leaves;    // a table had sent them to a leaf
  std::uint64_t interior;  // or to a node above leaves
  std::uint64_t nothing;   // or where there is no node of the map any more
};
static_assert(sizeof(IndexReadTotals) == 32 &&
              std::has_unique_object_representations_v<IndexReadTotals>);

/// Who was authenticated over fabrics by a secret, and who or what was refused.
struct AccessTotals {
  std::uint64_t denied;         // requests that roles do not allow
  std::uint64_t authenticated;  // peers, by their proofs
  std::uint64_t wrong_proofs;
  std::uint64_t failed;          // good proofs, for which no session could be made
  std::uint64_t timed_out;       // peers that sent no proof in time
  std::uint64_t limited;         // peers, for as many as may be were pending
  std::uint64_t pending;         // peers, now
  std::uint64_t audit_left_out;  // records of the audit log that were not kept
};
static_assert(sizeof(AccessTotals) == 64 && std::has_unique_object_representations_v<AccessTotals>);

/// Snapshots of all maps, and the old versions that they keep.
struct SnapshotTotals {
  std::uint64_t count;
  std::uint64_t bytes;
  std::uint64_t bytes_max;       // that they may keep together
  std::uint64_t expired;         // ever
  std::uint64_t principal_max;   // that one principal may hold
  std::uint64_t connection_max;  // and one connection
};
static_assert(sizeof(SnapshotTotals) == 48 &&
              std::has_unique_object_representations_v<SnapshotTotals>);

/// Places for connections, and the memory of their rings.
struct ConnectionTotals {
  std::uint64_t connections_max;
  std::uint64_t principal_max;  // of one principal
  std::uint64_t limited;        // refused for that, or for what is kept for who runs the node
  std::uint64_t pending;        // at the socket, that have not said hello
  std::uint64_t ring_bytes;
  std::uint64_t ring_bytes_max;
  std::uint64_t principal_ring_bytes_max;
  std::uint64_t kept;              // places, for who runs the node
  std::uint64_t pending_max;       // at the socket
  std::uint64_t user_pending_max;  // of one user
};
static_assert(sizeof(ConnectionTotals) == 80 &&
              std::has_unique_object_representations_v<ConnectionTotals>);

/// Packets over `roce` in names that may not be their senders'.
struct ConnectTotals {
  std::uint64_t cookies_sent;  // requests for connections that were forgotten
  std::uint64_t cookies_accepted;
  std::uint64_t cookies_refused;
  std::uint64_t messages_shed;  // that were too many in a turn
  std::uint64_t foreign;        // packets for a pair that are not from its peer
  std::uint64_t out_of_window;  // or that its peer cannot have sent now
};
static_assert(sizeof(ConnectTotals) == 48 &&
              std::has_unique_object_representations_v<ConnectTotals>);

/// Among whom all that is shared: those that have something of it now.
struct PrincipalTotals {
  std::uint64_t count;
  std::uint64_t connections_most;  // of one, and so the others
  std::uint64_t ring_bytes_most;
  std::uint64_t snapshots_most;
};
static_assert(sizeof(PrincipalTotals) == 32 &&
              std::has_unique_object_representations_v<PrincipalTotals>);

/// What a device does at its host; all zeros: the node is none.
struct DeviceTotals {
  std::uint64_t is_device;    // 1
  std::uint64_t round_trips;  // READs' that its walks waited for
  std::uint64_t bytes;        // that it read of its host's memory
  std::uint64_t descents;     // that its cache was asked for
  std::uint64_t hits;
  std::uint64_t remembered_bytes;
  std::uint64_t balanced;   // nodes that it knew and read all the same
  std::uint64_t forwarded;  // reads that it had its host do
  std::uint64_t feed_reads;
  std::uint64_t feed_changes;
  std::uint64_t feed_replaced;
  std::uint64_t feed_behind;
};
static_assert(sizeof(DeviceTotals) == 96 && std::has_unique_object_representations_v<DeviceTotals>);

/// The log of a node with a data folder; all zeros: it has none.
struct LogTotals {
  std::uint64_t is_there;       // 1
  std::uint64_t durable;        // up to this sequence records are on the disk
  std::uint64_t handed_over;    // up to this one they were handed to the log
  std::uint64_t bytes;          // of its segments
  std::uint64_t bytes_max;      // data.log_bytes_max
  std::uint64_t failed;         // 1: nothing more is acknowledged
  std::uint64_t failure_bytes;  // of the sentence that says why
};
static_assert(sizeof(LogTotals) == 56 && std::has_unique_object_representations_v<LogTotals>);

/// What is in a data folder beside the log, and what its start took; all zeros: there is none.
struct DataTotals {
  std::uint64_t checkpoints;         // that were finished since the node started
  std::uint64_t checkpoints_failed;  // that were not
  std::uint64_t checkpoint_records;  // of the last one that was finished
  std::uint64_t checkpoint_bytes;
  std::uint64_t checkpoint_ns;
  std::uint64_t recovered_records;  // that the start has applied
  std::uint64_t recovered_bytes;
  std::uint64_t recovered_ns;
};
static_assert(sizeof(DataTotals) == 64 && std::has_unique_object_representations_v<DataTotals>);

/// Counters begin at 0 when the node starts.
struct NodeNumbersHeader {
  std::uint64_t started_us;  // when the process started, microseconds since 1970
  std::uint64_t uptime_ns;   // since then, when these were read: what rates are taken by
  std::uint64_t refused;     // requests
  std::uint64_t connections_refused;
  std::uint64_t client_wakes;
  std::uint64_t unannounced;
  std::uint64_t memory_taken_bytes;
  std::uint64_t memory_limit_bytes;
  std::uint64_t long_message_bytes;
  std::uint64_t long_message_limit_bytes;
  std::uint64_t epoch;
  std::uint64_t epoch_oldest;
  std::uint64_t epoch_participants;
  std::uint64_t epoch_participants_limit;
  std::uint64_t memory_held_bytes;  // that the system gave: pages
  std::uint64_t memory_free_bytes;  // taken, in no use, and for buffers of some sizes only
  std::uint64_t leases;
  std::uint64_t leased_bytes;  // that leases keep, and no epoch
  std::uint64_t dropped_maps;  // that leases keep
  std::uint64_t dropped_bytes;
  QueryTotals queries;
  HelperTotals helpers;
  std::uint32_t version_bytes;
  std::uint32_t offloads;
  std::uint32_t workers;
  std::uint32_t maps;
  std::uint32_t tables;
  std::uint32_t holders;
  std::uint64_t result_buffer_bytes;  // of results, that were written into buffers of clients
  IndexReadTotals index_reads;
  std::uint64_t sequencer_count;  // that there are
  std::uint32_t sequencers;       // that are told of: kSequencersTold at most
  std::uint32_t principals;       // that are told of: kPrincipalsTold at most
  AccessTotals access;
  SnapshotTotals snapshots;
  ConnectionTotals connections;
  ConnectTotals connects;
  PrincipalTotals principal_totals;
  DeviceTotals device;
  LogTotals log;
  DataTotals data;
};
static_assert(sizeof(NodeNumbersHeader) == 840 && offsetof(NodeNumbersHeader, log) == 720);
static_assert(offsetof(NodeNumbersHeader, data) == 776);
static_assert(offsetof(NodeNumbersHeader, snapshots) == 416);
static_assert(offsetof(NodeNumbersHeader, connections) == 464);
static_assert(offsetof(NodeNumbersHeader, connects) == 544);
static_assert(offsetof(NodeNumbersHeader, principal_totals) == 592);
static_assert(offsetof(NodeNumbersHeader, device) == 624);
static_assert(offsetof(NodeNumbersHeader, index_reads) == 304);
static_assert(offsetof(NodeNumbersHeader, sequencer_count) == 336);
static_assert(offsetof(NodeNumbersHeader, access) == 352);
static_assert(offsetof(NodeNumbersHeader, result_buffer_bytes) == 296);
static_assert(offsetof(NodeNumbersHeader, queries) == 160);
static_assert(offsetof(NodeNumbersHeader, version_bytes) == 272);
static_assert(std::has_unique_object_representations_v<NodeNumbersHeader>);

/// Of one offload; those that nobody asked for are left out.
struct OffloadNumbers {
  std::uint64_t offload;  // OffloadId
  std::uint64_t requests;
  std::uint64_t duration_sum_ns;  // of those that were timed
  std::uint64_t durations[kDurationBuckets];
};
static_assert(sizeof(OffloadNumbers) == 456);
static_assert(std::has_unique_object_representations_v<OffloadNumbers>);

struct WorkerNumbers {
  std::uint64_t in_flight;
  std::uint64_t connections;
  std::uint64_t sleeps;
  std::uint64_t wake_ups;
};
static_assert(sizeof(WorkerNumbers) == 32);
static_assert(std::has_unique_object_representations_v<WorkerNumbers>);

/// Of a map's mapping feed. All zeros: it was never followed.
struct FeedNumbers {
  std::uint64_t entries;  // moves of nodes that were told, ever
  std::uint64_t gaps;     // times that some may be missing
  std::uint64_t followers;
};
static_assert(sizeof(FeedNumbers) == 24 && std::has_unique_object_representations_v<FeedNumbers>);

/// Of one map; its name follows.
struct MapEntry {
  MapNumbers numbers;
  std::uint32_t name_bytes;
  std::uint32_t reserved;
  FeedNumbers feed;
};
static_assert(sizeof(MapEntry) == 144 && offsetof(MapEntry, name_bytes) == 112);
static_assert(offsetof(MapEntry, feed) == 120);
static_assert(std::has_unique_object_representations_v<MapEntry>);

/// The numbers of a table.
struct TableNumbers {
  std::uint64_t rows;
  std::uint64_t pages;
  std::uint64_t row_bytes;  // of one row
  std::uint64_t memory_bytes;
  QueryTotals queries;
  std::uint64_t rows_read;  // by its queries, beside the memory
  std::uint64_t bytes_read;
  std::uint64_t rows_sent;  // to their clients
  std::uint64_t bytes_sent;
};
static_assert(sizeof(TableNumbers) == 104);
static_assert(std::has_unique_object_representations_v<TableNumbers>);

/// Of one table; its name follows.
struct TableEntry {
  TableNumbers numbers;
  std::uint32_t name_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(TableEntry) == 112 && offsetof(TableEntry, name_bytes) == 104);
static_assert(std::has_unique_object_representations_v<TableEntry>);

/// Who keeps memory from being free; the owner's text follows, then the map's name.
struct HolderEntry {
  std::uint64_t since;  // epoch, or of a snapshot the version
  std::uint64_t bytes;
  std::uint32_t kind;  // 1: epoch, 2: lease, 3: snapshot
  std::uint32_t owner_bytes;
  std::uint32_t map_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(HolderEntry) == 32);
static_assert(std::has_unique_object_representations_v<HolderEntry>);

/// Sequencers that are told of, those that were asked most, at most.
inline constexpr std::uint32_t kSequencersTold = 256;

/// Of one sequencer; its name follows.
struct SequencerEntry {
  SequencerFacts facts;
  std::uint32_t name_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(SequencerEntry) == 48 && offsetof(SequencerEntry, name_bytes) == 40);
static_assert(std::has_unique_object_representations_v<SequencerEntry>);

/// Principals that are told of, those that have most of their part, at most; and to administrators
/// alone, for their names are those of secrets, users and addresses.
inline constexpr std::uint32_t kPrincipalsTold = 16;

/// Of one principal; its name follows.
struct PrincipalEntry {
  std::uint64_t connections;
  std::uint64_t ring_bytes;
  std::uint64_t snapshots;
  std::uint32_t name_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(PrincipalEntry) == 32 && offsetof(PrincipalEntry, name_bytes) == 24);
static_assert(std::has_unique_object_representations_v<PrincipalEntry>);

}  // namespace espalier::wire
