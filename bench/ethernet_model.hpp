// SPDX-License-Identifier: Apache-2.0
// The points of [Fat-B+Tree §V-C], Fig. 10: clients that ask nodes behind a FatTree of Ethernet,
// one request at a time each; and a model of what rate nodes of known costs come to.
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

/// With commas.
[[nodiscard]] std::string ethernet_figure_names();

struct EthernetPoint {
  std::string figure;
  std::uint64_t keys = 0;
  std::uint32_t clients = 16;
  std::uint32_t read_percent = 90;
  double theta = base::kZipfTheta;
};

/// Requires: a name of kEthernetFigures. `keys`: the most.
[[nodiscard]] std::vector<EthernetPoint> ethernet_points(std::string_view figure,
                                                         std::uint64_t keys);

/// One of the nodes, which does one request at a time.
struct ModelledServer {
  double share = 0;      ///< of all requests
  double ns_per_op = 0;  ///< that it is busy for one
};

/// Requests a second of so many clients, each of which has one under way: it goes to a node, waits
/// there for those before it, is done, and the next one comes `trip_ns` after that. Deterministic,
/// of a seed. Requires: shares that sum to about 1; clients.
[[nodiscard]] double model_closed_rate(std::span<const ModelledServer> servers,
                                       std::uint32_t clients, double trip_ns, std::uint64_t seed);

}  // namespace espalier::bench
