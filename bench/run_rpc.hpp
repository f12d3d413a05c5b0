// SPDX-License-Identifier: Apache-2.0
// `espalier-bench rpc`: the cost of a node compared with local memory.
//
//   noop   no-ops, by client threads and by cores of the node [BlueField §4.1.1, Fig. 3]
//   map    the ordered map, by its size and the share of writes, uniform, 8-byte keys and values:
//          on a node [Fig. 2], and with as many threads on the same map in this process [Fig. 5]
//   batch  requests in batches, each of which waits for all answers of the one before: no-ops, and
//          zipfian gets of pairs of 64 bytes, by the size of the batch [RAMBDA Fig. 10]
//   flood  no-ops one at a time over roce, during a flood of connection requests that are never
//          continued: its effect on a session; only if named
//   peer   GET and SET of a node and of Redis, with as many in flight on both sides; only if named,
//          since it needs redis-server
//
// Each over any of the transports to a node. The papers' clients are on another machine; here they
// share one with the node.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/point_run.hpp"
#include "bench/target.hpp"

namespace espalier::bench {

/// As many keys as fit into `fit_bytes`.
inline constexpr std::uint64_t kKeysThatFit = 0;

struct RpcOptions : PointOptions {
  static constexpr const char* kBench = "rpc";
  static constexpr const char* kSummary = "asking a node, or one's own memory";
  RpcOptions() { repeats = 3; }  // each run of a map loads it anew

  std::vector<TargetKind> targets{TargetKind::node, TargetKind::embedded};  ///< map
  std::vector<NodeTransport> transports{NodeTransport::unix_socket};        ///< to the node
  std::vector<std::uint32_t> threads{1, 2};                                 ///< of clients
  std::vector<std::uint32_t> node_cores{1};
  std::uint32_t in_flight = 32;                                          ///< on each thread
  std::vector<std::uint64_t> keys{1'000'000, 16'000'000, kKeysThatFit};  ///< map
  std::uint64_t fit_bytes = 0;  ///< 0: half of what the system says is available
  std::vector<double> write_shares{0, 0.5};
  std::uint32_t key_bytes = 8;
  std::uint32_t value_bytes = 8;
  std::vector<std::uint32_t> batches{1, 2, 4, 8, 16, 32, 64};  ///< batch
  std::uint64_t batch_keys = 100'000;                          ///< batch
  std::vector<std::uint64_t> floods{0, 5000, 40'000};          ///< flood; requests in a second
  std::uint64_t ops = 4'000'000;  ///< of all threads; of no-ops five times as many
  double seconds = 0;             ///< stop measuring a map after so long; 0: never

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// How many keys fit into `bytes`, with the map, the benchmark's own copy of the keys, and its
/// requests. At least the size of the smallest measurable map.
std::uint64_t keys_that_fit(const RpcOptions& options, std::uint64_t bytes);

/// A number of keys, or "fit".
std::optional<std::uint64_t> parse_keys(std::string_view text);

/// The points of `batch`.
std::vector<MeasuredPoint> batch_points(const RpcOptions& options);

/// The points of `flood`.
std::vector<MeasuredPoint> flood_points(const RpcOptions& options);

class KeyCache;
class Progress;
struct YcsbOptions;

/// The points of `peer`, with the first number of keys. `progress` must outlive them.
std::vector<MeasuredPoint> peer_points(const RpcOptions& options, Progress& progress);
/// One run of the only target of these options.
PointSample measure_map(const YcsbOptions& options, KeyCache& keys, Progress& progress);

}  // namespace espalier::bench
