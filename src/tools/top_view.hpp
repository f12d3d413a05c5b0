// SPDX-License-Identifier: Apache-2.0
// The data of `espalier top`: a node's statistics, and their rates from two readings. Readings are
// untrusted: a counter that went backwards counts as unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/metrics.hpp"

namespace espalier::tools {

struct OffloadRates {
  std::string name;
  double per_s = 0;
  std::uint64_t requests = 0;  ///< since the node started
  // Of timed requests of the interval; nullopt: none.
  std::optional<double> mean_ns;
  std::optional<std::uint64_t> p50_ns;  ///< the bound of the bucket in which it lies
  std::optional<std::uint64_t> p99_ns;
};

/// Of one ordered map.
struct MapRates {
  std::string name;  ///< any bytes
  wire::SampledObject object;
  double writes_per_s = 0;
  double bytes_per_item = 0;
  /// Versions that writes have taken and that are not yet released.
  std::uint64_t unreleased = 0;
  double moves_per_s = 0;  ///< in its mapping feed

  [[nodiscard]] std::uint64_t value(std::string_view of) const {
    return wire::sample_value(object, of);
  }
};

struct TableRates {
  std::string name;  ///< any bytes
  wire::SampledObject object;
  double queries_per_s = 0;  ///< ended, in any way
  double read_bytes_per_s = 0;
  double sent_bytes_per_s = 0;

  [[nodiscard]] std::uint64_t value(std::string_view of) const {
    return wire::sample_value(object, of);
  }
};

struct SequencerRates {
  std::string name;  ///< any bytes
  wire::SampledObject object;
  double numbers_per_s = 0;  ///< issued, by requests and by adds
  double requests_per_s = 0;
  double adds_per_s = 0;  ///< that the node made for these

  [[nodiscard]] std::uint64_t value(std::string_view of) const {
    return wire::sample_value(object, of);
  }
};

/// One object of another kind.
struct ObjectRates {
  wire::SampledObject object;
  /// For each sample. Nullopt: a gauge, or the previous reading may have omitted this object.
  std::vector<std::optional<double>> per_s;
};

struct TopView {
  node::NodeNumbers numbers;
  bool has_samples = true;   ///< false: samples of objects were not available
  double seconds = 0;        ///< length of the interval
  bool since_start = false;  ///< the interval is the node's whole life
  double requests_per_s = 0;
  double refused_per_s = 0;
  double unannounced_per_s = 0;
  double connections_refused_per_s = 0;
  double denied_per_s = 0;         ///< requests that roles do not allow
  double authenticated_per_s = 0;  ///< peers over fabrics
  double rejected_per_s = 0;       ///< peers whose authentication failed
  double client_wakes_per_s = 0;
  double sleeps_per_s = 0;
  double wake_ups_per_s = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t connections = 0;
  std::uint64_t node_bytes = 0;  ///< of all maps that are here, and the next two
  std::uint64_t value_bytes = 0;
  std::uint64_t retired_bytes = 0;
  std::uint64_t table_bytes = 0;  ///< of all tables that are here
  double queries_per_s = 0;       ///< of all tables: ended, in any way
  double queries_failed_per_s = 0;
  double queries_refused_per_s = 0;
  double helpers_busy = 0;  ///< the part of the helpers' time in which they worked
  /// Taken from the system, and unused. Nullopt: not all objects are present.
  std::optional<std::uint64_t> spare_bytes;
  std::vector<OffloadRates> offloads;
  std::vector<MapRates> maps;
  std::vector<TableRates> tables;
  std::vector<SequencerRates> sequencers;
  std::vector<ObjectRates> objects;  ///< of all other kinds
  std::uint64_t feed_followers = 0;  ///< of all maps, and the next one
  double feed_moves_per_s = 0;
  double limited_per_s = 0;  ///< clients beyond a limit of their principal, or what is kept
  double snapshots_expired_per_s = 0;
  double device_round_trips_per_s = 0;  ///< of a device, and the next three
  double device_bytes_per_s = 0;
  double device_forwarded_per_s = 0;
  double device_hits = 0;  ///< the part of the ways down that its cache knew to the leaf

  [[nodiscard]] bool has_all_objects() const {
    return has_samples && numbers.sampled.left_out() == 0;
  }
};

/// The changes between two readings of the same node. Without an earlier one, or if the node was
/// restarted meanwhile, the changes since its start. A map, table or sequencer that the earlier
/// reading may have omitted has rates of 0.
[[nodiscard]] TopView view_of(const node::NodeNumbers* before, node::NodeNumbers now,
                              bool has_samples = true);

/// Peers whose authentication failed.
[[nodiscard]] std::uint64_t rejected(const node::NodeNumbers& numbers);

/// What keeps memory from becoming free, in words: lagging readers, snapshots, or nothing. If not
/// all objects are present, snapshots are those that the node itself counts.
[[nodiscard]] std::string holders(const TopView& view);

}  // namespace espalier::tools
