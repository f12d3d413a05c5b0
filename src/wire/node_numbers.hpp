// SPDX-License-Identifier: Apache-2.0
// The numbers of a node as they travel: the answer to `node_stats`.
//
//   0                   72
//   +-------------------+---------+---------+---------+----------------+---------------+----------
//   | NodeNumbersHeader | version | failure | samples | OffloadNumbers | WorkerNumbers | MapEntry,
//   |                   | (text)  | (text)  |         |                |               | its name
//   +-------------------+---------+---------+---------+----------------+---------------+----------
//
// and so on: as many of each as the header says, in its order, an object's name behind its entry,
// and two names behind a HolderEntry. Samples, which are the numbers of the node as a whole, lie as
// wire/samples.hpp draws them; the failure is why the log has failed, where it has.
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

/// Queries of one table. Counters begin at 0 when it is made.
struct QueryTotals {
  std::uint64_t running;
  std::uint64_t waiting;
  std::uint64_t ended;    // with all rows, or early, as the client wanted
  std::uint64_t failed;   // after they had begun
  std::uint64_t refused;  // before
};
static_assert(sizeof(QueryTotals) == 40 && std::has_unique_object_representations_v<QueryTotals>);

/// Counters begin at 0 when the node starts.
struct NodeNumbersHeader {
  std::uint64_t started_us;       // when the process started, microseconds since 1970
  std::uint64_t uptime_ns;        // since then, when these were read: what rates are taken by
  std::uint64_t sequencer_count;  // that there are
  std::uint32_t version_bytes;
  std::uint32_t failure_bytes;
  std::uint32_t samples;
  std::uint32_t offloads;
  std::uint32_t workers;
  std::uint32_t maps;
  std::uint32_t tables;
  std::uint32_t holders;
  std::uint32_t sequencers;  // that are told of: kSequencersTold at most
  std::uint32_t principals;  // that are told of: kPrincipalsTold at most
  std::uint64_t reserved;
};
static_assert(sizeof(NodeNumbersHeader) == 72 && offsetof(NodeNumbersHeader, version_bytes) == 24);
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
