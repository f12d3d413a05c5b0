// SPDX-License-Identifier: Apache-2.0
// The statistics of a node as they travel: the answer to `node_stats`.
//
//   0                   48
//   +-------------------+---------+---------+---------+----------------+---------------+--------
//   | NodeNumbersHeader | version | failure | samples | OffloadNumbers | WorkerNumbers | holders
//   |                   | (text)  | (text)  |         |                |               |
//   +-------------------+---------+---------+---------+----------------+---------------+--------
//
// and last PrincipalEntry, each with its name: as many of each as the header says. Samples, the
// statistics of the node as a whole, lie as wire/samples.hpp draws them; the failure is why the log
// has failed, if it has. The statistics of objects are the answer to the call object_samples.
//
// Each follows the one before without a gap. src/node/numbers_format.hpp writes and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// Buckets of durations: what docs/metrics.md says about their bounds.
inline constexpr std::uint32_t kDurationBuckets = 54;

/// Counters begin at 0 when the node starts.
struct NodeNumbersHeader {
  std::uint64_t started_us;  // when the process started, microseconds since 1970
  std::uint64_t uptime_ns;   // since then, when these were read: what rates are taken by
  std::uint32_t version_bytes;
  std::uint32_t failure_bytes;
  std::uint32_t samples;
  std::uint32_t offloads;
  std::uint32_t workers;
  std::uint32_t holders;
  std::uint32_t principals;  // listed: kPrincipalsTold at most
  std::uint32_t reserved;
};
static_assert(sizeof(NodeNumbersHeader) == 48 && offsetof(NodeNumbersHeader, version_bytes) == 16);
static_assert(std::has_unique_object_representations_v<NodeNumbersHeader>);

/// Of one offload; offloads without requests are left out.
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

/// A holder of memory that cannot be freed; the owner's text follows, then the map's name.
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

/// Principals listed, at most: those that use most of their share. Listed to administrators alone,
/// for their names are those of secrets, users and addresses.
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
