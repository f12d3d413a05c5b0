// SPDX-License-Identifier: Apache-2.0
// What a node tells those who monitor it: its numbers, and the text that Prometheus reads
// (exposition format 0.0.4).
//
// All stand in one table (node_number.hpp). The text is made of NodeNumbers alone, so that it can
// be tested without a node.
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

/// What one principal has of what is shared.
struct PrincipalNumbers {
  std::string name;  ///< "secret alice", "user 1000", "address 192.0.2.1"
  std::uint64_t connections = 0;
  std::uint64_t ring_bytes = 0;
  std::uint64_t snapshots = 0;
};

/// What this node's steps have posted to a peer.
struct PeerNumbers {
  std::string name;
  offload::PeerTotals totals;
};

/// Of a member of a chain, as it is now.
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
  std::uint64_t uptime_ns = 0;    ///< since then, when these were read
  std::vector<OffloadNumbers> offloads;
  std::vector<WorkerNumbers> workers;
  /// Those that have most of what one may have, the first of them first; not in the metrics, which
  /// everybody of the machine may read.
  std::vector<PrincipalNumbers> principals;
  std::vector<memory::Holder> holders;  ///< of most bytes first
  std::string log_failure;  ///< why nothing more is acknowledged; empty: there is no such reason
  std::vector<wire::Sample> samples;  ///< those of the node as a whole that it tells
  std::vector<PeerNumbers> peers;     ///< for the node's page alone, as what follows
  /// Of objects, those that take most memory; who has the other numbers from node_stats asks for
  /// these by object_samples.
  wire::SampledObjects sampled;

  /// A number of the node as a whole, by its name in the table and, where it has a label, that
  /// label's value. Null where this node does not tell it. Cost: linear in the samples.
  [[nodiscard]] const wire::Sample* sample(std::string_view name,
                                           std::string_view label_value = {}) const;
  /// Its value.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name,
                                                  std::string_view label_value = {}) const;
  /// The same, and 0 for one that is not told. Requires: the table has it.
  [[nodiscard]] std::uint64_t value(std::string_view name, std::string_view label_value = {}) const;
  /// Requires: the table has it.
  void set(std::string_view name, std::uint64_t value, std::string_view label_value = {});
};

/// Reads them while the node works: each is right, they are not of one instant. The node must not
/// stop meanwhile. Cost: some 100 us, most of it for looking at every place for epochs; and a
/// heavy barrier.
[[nodiscard]] NodeNumbers numbers_of(const Node& node);
/// The same with the samples of objects, for the node's page: numbers_of() is also what node_stats
/// answers, which has none. Cost: besides, that of catalog::samples_of().
[[nodiscard]] NodeNumbers numbers_and_samples_of(const Node& node);

/// All metrics of a node, and behind them those made of samples (sample_metrics.hpp). A time is
/// told for offloads of which one was taken.
[[nodiscard]] std::string metrics_text(const NodeNumbers& numbers);

/// An object's name as a label has it: no two names look alike. Names are any bytes, labels are
/// UTF-8.
[[nodiscard]] std::string shown_name(std::string_view name);
/// Appends the value of a label as it stands between quotes.
void append_escaped(std::string& out, std::string_view value);

}  // namespace espalier::node
