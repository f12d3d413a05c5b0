// SPDX-License-Identifier: Apache-2.0
// The points of [Fat-B+Tree §V-C], Fig. 10: clients with one request at a time each, at nodes
// behind a FatTree of Ethernet; and a model of the rate that nodes of known costs reach.
//
//   tree-scale    Fig. 10 a: a tenth of the keys to all of them
//   tree-clients  Fig. 10 b: 1 to 16 clients
//   tree-reads    Fig. 10 c: half of the requests read, to all of them
//   tree-skew     Fig. 10 d: 0.9, 0.95, 0.99
//
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/zipf.hpp"

namespace espalier::bench {

inline constexpr std::array<const char*, 4> kEthernetFigures{"tree-scale", "tree-clients",
                                                             "tree-reads", "tree-skew"};

/// Comma-separated.
[[nodiscard]] std::string ethernet_figure_names();

struct EthernetPoint {
  std::string figure;
  std::uint64_t keys = 0;
  std::uint32_t clients = 16;
  std::uint32_t read_percent = 90;
  double theta = base::kZipfTheta;
};

/// Requires: a name of kEthernetFigures. `keys`: the largest number of keys.
[[nodiscard]] std::vector<EthernetPoint> ethernet_points(std::string_view figure,
                                                         std::uint64_t keys);

/// One of the nodes, which serves one request at a time.
struct ModelledServer {
  double share = 0;      ///< of all requests
  double ns_per_op = 0;  ///< busy time per request
};

/// Requests a second of so many clients, each with one request in flight: it goes to a node,
/// queues, is served, and the next one arrives `trip_ns` after that. Deterministic for a seed.
/// Requires: shares that sum to about 1; clients.
[[nodiscard]] double model_closed_rate(std::span<const ModelledServer> servers,
                                       std::uint32_t clients, double trip_ns, std::uint64_t seed);

}  // namespace espalier::bench
