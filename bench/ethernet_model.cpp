// SPDX-License-Identifier: Apache-2.0
#include "bench/ethernet_model.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/random.hpp"

namespace espalier::bench {

std::string ethernet_figure_names() {
  std::string names;
  for (const char* const name : kEthernetFigures) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

std::vector<EthernetPoint> ethernet_points(std::string_view figure, std::uint64_t keys) {
  std::vector<EthernetPoint> points;
  const auto add = [&](auto vary) {
    EthernetPoint point{.figure = std::string(figure), .keys = keys};
    vary(point);
    points.push_back(std::move(point));
  };
  if (figure == "tree-scale") {
    for (const std::uint64_t part : {10, 5, 2, 1}) {
      add([&](EthernetPoint& point) { point.keys = std::max<std::uint64_t>(keys / part, 8); });
    }
  } else if (figure == "tree-clients") {
    for (const std::uint32_t clients : {1, 2, 4, 8, 16}) {
      add([&](EthernetPoint& point) { point.clients = clients; });
    }
  } else if (figure == "tree-reads") {
    for (const std::uint32_t percent : {50, 75, 90, 100}) {
      add([&](EthernetPoint& point) { point.read_percent = percent; });
    }
  } else {
    for (const double theta : {0.9, 0.95, 0.99}) {
      add([&](EthernetPoint& point) { point.theta = theta; });
    }
  }
  return points;
}

double model_closed_rate(std::span<const ModelledServer> servers, std::uint32_t clients,
                         double trip_ns, std::uint64_t seed) {
  constexpr std::uint64_t kOps = 40'000;
  base::Random random(seed);
  const auto draw = [&] {
    double left = static_cast<double>(random.below(1 << 24)) / (1 << 24);
    std::size_t at = 0;
    for (; at + 1 < servers.size() && left >= servers[at].share; ++at) left -= servers[at].share;
    return at;
  };
  using Arrival = std::pair<double, std::size_t>;  // when, and at which server
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> under_way;
  for (std::uint32_t i = 0; i < clients; ++i) {
    under_way.emplace(trip_ns * i / clients, draw());
  }
  std::vector<double> free_at(servers.size(), 0);
  double begun = 0;
  double last = 0;
  for (std::uint64_t done = 0; done < 2 * kOps; ++done) {
    if (done == kOps) begun = last;
    const auto [when, at] = under_way.top();
    under_way.pop();
    free_at[at] = std::max(free_at[at], when) + servers[at].ns_per_op;
    last = std::max(last, free_at[at]);
    under_way.emplace(free_at[at] + trip_ns, draw());
  }
  return static_cast<double>(kOps) * 1e9 / (last - begun);
}

}  // namespace espalier::bench
