// SPDX-License-Identifier: Apache-2.0
// Lines of metrics of what there are several of: workers, offloads, objects, peers.
//
// Thread: any.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "espalier/kind.hpp"
#include "node/metric_lines.hpp"
#include "node/metrics.hpp"

namespace espalier::node {

template <auto Member>
void of_workers(MetricLines& lines, const NodeNumbers& numbers) {
  for (std::size_t i = 0; i < numbers.workers.size(); ++i) {
    lines.add(numbers.workers[i].*Member, {{"worker", std::to_string(i)}});
  }
}

template <auto Member>
void of_maps(MetricLines& lines, const NodeNumbers& numbers) {
  for (const MapNumbers& map : numbers.maps) {
    lines.add(std::uint64_t{map.stats.*Member}, {{"map", shown_name(map.name)}});
  }
}

template <auto Member>
void of_feeds(MetricLines& lines, const NodeNumbers& numbers) {
  for (const MapNumbers& map : numbers.maps) {
    lines.add(map.feed.*Member, {{"map", shown_name(map.name)}});
  }
}

template <auto Member>
void of_sequencers(MetricLines& lines, const NodeNumbers& numbers) {
  for (const SequencerNumbers& sequencer : numbers.sequencers) {
    lines.add(std::uint64_t{sequencer.facts.*Member}, {{"sequencer", shown_name(sequencer.name)}});
  }
}

inline void sealed(MetricLines& lines, const NodeNumbers& numbers) {
  for (const SequencerNumbers& sequencer : numbers.sequencers) {
    const bool is_sealed = (sequencer.facts.flags & wire::kSequencerIsSealed) != 0;
    lines.add(std::uint64_t{is_sealed}, {{"sequencer", shown_name(sequencer.name)}});
  }
}

template <auto Member>
void of_peers(MetricLines& lines, const NodeNumbers& numbers) {
  for (const PeerNumbers& peer : numbers.peers) {
    lines.add(peer.totals.*Member, {{"peer", shown_name(peer.name)}});
  }
}

template <auto Member>
void of_tables(MetricLines& lines, const NodeNumbers& numbers) {
  for (const TableNumbers& table : numbers.tables) {
    lines.add(table.stats.*Member, {{"table", shown_name(table.name)}});
  }
}

template <auto Member>
void of_table_queries(MetricLines& lines, const NodeNumbers& numbers) {
  for (const TableNumbers& table : numbers.tables) {
    lines.add(table.stats.queries.*Member, {{"table", shown_name(table.name)}});
  }
}

inline void log_failed(MetricLines& lines, const NodeNumbers& numbers) {
  const auto failed = numbers.find("log_failed");
  if (failed) lines.add(*failed, {{"reason", shown_name(numbers.log_failure)}});
}

inline void objects(MetricLines& lines, const NodeNumbers& numbers) {
  lines.add(std::uint64_t{numbers.maps.size()}, {{"kind", name(ObjectKind::map)}});
  lines.add(std::uint64_t{numbers.tables.size()}, {{"kind", name(ObjectKind::table)}});
  lines.add(numbers.sequencer_count, {{"kind", name(ObjectKind::sequencer)}});
  lines.add(numbers.sampled.count, {{"kind", "other"}});
}

static_assert(wire::kSampledObjectsMax == 256, "as the page says");
inline void objects_left_out(MetricLines& lines, const NodeNumbers& numbers) {
  lines.add(numbers.sampled.left_out());
}

inline void requests(MetricLines& lines, const NodeNumbers& numbers) {
  for (const OffloadNumbers& offload : numbers.offloads) {
    lines.add(offload.requests, {{"offload", offload.name}});
  }
}

inline void durations(MetricLines& lines, const NodeNumbers& numbers) {
  for (const OffloadNumbers& offload : numbers.offloads) {
    lines.add_histogram(offload.durations, {"offload", offload.name});
  }
}

// Of all holders of one kind and owner together, for a series must be told once.
inline void held(MetricLines& lines, const NodeNumbers& numbers) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint64_t> sums;
  for (const memory::Holder& holder : numbers.holders) {
    sums[{memory::name_of(holder.kind), holder.owner, holder.object}] += holder.bytes;
  }
  for (const auto& [key, bytes] : sums) {
    const auto& [kind, owner, map] = key;
    lines.add(bytes, {{"kind", kind}, {"owner", owner}, {"map", shown_name(map)}});
  }
}

inline void start_time(MetricLines& lines, const NodeNumbers& numbers) {
  lines.add(numbers.start_time_seconds);
}

inline void build_info(MetricLines& lines, const NodeNumbers& numbers) {
  lines.add(std::uint64_t{1}, {{"version", numbers.version}});
}

}  // namespace espalier::node
