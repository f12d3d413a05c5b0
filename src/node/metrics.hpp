// SPDX-License-Identifier: Apache-2.0
// The node's counters for monitoring, and their text for Prometheus (exposition format 0.0.4).
//
// One table declares all of them (node_number.hpp). The text depends on NodeNumbers alone, so it
// can be tested without a node.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/durations.hpp"
#include "engine/peer_totals.hpp"
#include "espalier/types.hpp"
#include "memory/holders.hpp"
#include "wire/message.hpp"
#include "wire/node_numbers.hpp"
#include "wire/samples.hpp"

namespace espalier::node {

class Node;
struct RecoveryProgress;

struct OffloadNumbers {
  wire::OffloadId id = wire::OffloadId::invalid;
  std::string_view name;
  std::uint64_t requests = 0;
  offload::DurationCounts durations;
};

struct WorkerNumbers {
  std::uint64_t in_flight = 0;
  std::uint64_t connections = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t wake_ups = 0;
};

/// One principal's use of shared resources.
struct PrincipalNumbers {
  std::string name;  ///< "secret alice", "user 1000", "address 192.0.2.1"
  std::uint64_t connections = 0;
  std::uint64_t ring_bytes = 0;
  std::uint64_t snapshots = 0;
};

/// Counters of this node's posts to a peer.
struct PeerNumbers {
  std::string name;
  offload::PeerTotals totals;
};

/// The present state of a member of a chain.
struct ChainNumbers {
  std::uint64_t epoch = 0;
  std::uint64_t members = 0;
  std::uint64_t serves = 0;  ///< 1: it is the head, and may answer
  std::uint64_t held = 0;
  std::uint64_t acknowledged = 0;
};

struct NodeNumbers {
  std::string version;
  double start_time_seconds = 0;  ///< of the process, since 1970
  std::uint64_t uptime_ns = 0;    ///< since then, at the time of reading
  std::vector<OffloadNumbers> offloads;
  std::vector<WorkerNumbers> workers;
  /// Those nearest to their limits, in descending order; not in the metrics, which every user of
  /// the machine may read.
  std::vector<PrincipalNumbers> principals;
  std::vector<memory::Holder> holders;  ///< in descending order of bytes
  std::string log_failure;              ///< why nothing more is acknowledged; empty: no failure
  std::vector<wire::Sample> samples;    ///< of the node as a whole
  std::vector<PeerNumbers> peers;       ///< for the node's page alone, as what follows
  /// Of the objects that take most memory; clients of node_stats request these by object_samples.
  wire::SampledObjects sampled;

  /// A number of the node as a whole, by its name in the table and, if it has a label, that label's
  /// value. Null if this node does not report it. Cost: linear in the samples.
  [[nodiscard]] const wire::Sample* sample(std::string_view name,
                                           std::string_view label_value = {}) const;
  /// Its value.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name,
                                                  std::string_view label_value = {}) const;
  /// The same, and 0 if it is not reported. Requires: the table has it.
  [[nodiscard]] std::uint64_t value(std::string_view name, std::string_view label_value = {}) const;
  /// Requires: the table has it.
  void set(std::string_view name, std::uint64_t value, std::string_view label_value = {});
};

/// Reads them while the node works: each is exact; together they are no snapshot. Requires: the
/// node does not stop meanwhile. Cost: some 100 us, most of it to scan all epoch slots; and a heavy
/// barrier.
[[nodiscard]] NodeNumbers numbers_of(const Node& node);
/// The same with the samples of objects, for the node's page; numbers_of() also serves node_stats,
/// which has none. Cost: additionally, that of catalog::samples_of().
[[nodiscard]] NodeNumbers numbers_and_samples_of(const Node& node);

/// Those of a node that still reads its data folder, of which nothing else may be read by then.
[[nodiscard]] NodeNumbers numbers_of_recovery(const RecoveryProgress& progress);

/// All metrics of a node, followed by those made of samples (sample_metrics.hpp). Durations appear
/// for offloads that have at least one.
[[nodiscard]] std::string metrics_text(const NodeNumbers& numbers);

/// An object's name as a label: injective. Names are any bytes, labels are UTF-8.
[[nodiscard]] std::string shown_name(std::string_view name);
/// Appends the value of a label, escaped for quotes.
void append_escaped(std::string& out, std::string_view value);

}  // namespace espalier::node
