// SPDX-License-Identifier: Apache-2.0
// Metrics with several lines: of workers, offloads, peers.
//
// Thread: any.
#pragma once

#include <map>
#include <string>
#include <tuple>

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
void of_peers(MetricLines& lines, const NodeNumbers& numbers) {
  for (const PeerNumbers& peer : numbers.peers) {
    lines.add(peer.totals.*Member, {{"peer", shown_name(peer.name)}});
  }
}

inline void log_failed(MetricLines& lines, const NodeNumbers& numbers) {
  const auto failed = numbers.find("log_failed");
  if (failed) lines.add(*failed, {{"reason", shown_name(numbers.log_failure)}});
}

static_assert(wire::kSamplesBytesMax == std::uint32_t{1} << 20, "as the page says");
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

// Sums over all holders of one kind and owner, since a series must appear once.
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
