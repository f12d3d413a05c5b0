// SPDX-License-Identifier: Apache-2.0
#include "bench/figure_points.hpp"

#include <utility>

namespace espalier::bench {

std::string figure_names() {
  std::string names;
  for (const char* const name : kFigures) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

std::vector<FigurePoint> points_of(std::string_view figure, const FigurePoint& usual) {
  std::vector<FigurePoint> points;
  const auto add = [&](auto vary) {
    FigurePoint point = usual;
    point.figure = figure;
    vary(point);
    points.push_back(std::move(point));
  };
  if (figure == "scale") {
    for (const double times : {0.5, 1.0, 1.5, 2.5, 3.5, 5.0}) {
      add([&](FigurePoint& point) {
        point.keys = static_cast<std::uint64_t>(static_cast<double>(usual.keys) * times);
      });
    }
  } else if (figure == "changed") {
    for (const double changed : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      add([&](FigurePoint& point) { point.changed = changed; });
    }
  } else if (figure == "skew") {
    for (const double theta : {0.9, 0.95, 0.99}) {
      add([&](FigurePoint& point) { point.theta = theta; });
    }
  } else if (figure == "nodes") {
    for (const std::size_t nodes : {300, 900, 1500, 2100, 2700, 3300, 3900}) {
      add([&](FigurePoint& point) { point.limits.nodes_per_set = nodes; });
    }
  } else {
    for (std::size_t sets = 0; sets <= 3; ++sets) {
      add([&](FigurePoint& point) { point.limits.sets = sets; });
    }
  }
  return points;
}

FigureRequests requests_of(const FigurePoint& point, std::uint32_t fanout, std::uint64_t seed) {
  FigureRequests made;
  made.accesses = scattered_ranks(point.keys, point.theta, seed);
  made.tree = make_rank_tree(made.accesses, fanout);
  if (point.changed == 0) return made;
  const auto others = scattered_ranks(point.keys, point.theta, seed + 1);
  for (std::uint64_t i = 0; i < point.keys; ++i) {
    made.accesses[i] =
        static_cast<std::uint64_t>(static_cast<double>(made.accesses[i]) * (1 - point.changed) +
                                   static_cast<double>(others[i]) * point.changed);
  }
  return made;
}

}  // namespace espalier::bench
