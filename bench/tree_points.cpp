// SPDX-License-Identifier: Apache-2.0
// The points of each experiment of `espalier-bench tree`.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/run_tree.hpp"

namespace espalier::bench {
namespace {

class TreePoints {
 public:
  explicit TreePoints(const YcsbOptions& base) : base_(base) {}

  // A point based on the defaults; `set` changes its options. Peers are kept if `with_peers`.
  template <class Set>
  void add(std::string label, Workload workload, bool with_peers, Set set) {
    TreePoint point{std::move(label), base_};
    point.options.workload = workload;
    set(point.options);
    if (!with_peers) {
      std::erase_if(point.options.targets,
                    [](TargetKind kind) { return kind != TargetKind::embedded; });
    }
    if (!point.options.targets.empty()) points_.push_back(std::move(point));
  }

  std::vector<TreePoint> take() { return std::move(points_); }

 private:
  const YcsbOptions& base_;
  std::vector<TreePoint> points_;
};

void add_lookups(TreePoints& points) {
  for (const Distribution distribution : {Distribution::uniform, Distribution::zipfian}) {
    for (const std::uint32_t in_flight : {1U, 32U}) {
      points.add(fmt::format("distribution={} in_flight={}", name(distribution), in_flight),
                 Workload::get, true, [=](YcsbOptions& options) {
                   options.distribution = distribution;
                   options.in_flight = in_flight;
                 });
    }
  }
}

void add_inserts(TreePoints& points) {
  for (const Workload workload : {Workload::load, Workload::load_ascending}) {
    points.add(fmt::format("order={}", workload == Workload::load ? "random" : "ascending"),
               workload, true, [](YcsbOptions&) {});
  }
}

void add_erase(TreePoints& points) {
  points.add("order=random", Workload::erase, true, [](YcsbOptions&) {});
}

void add_scan_lengths(TreePoints& points) {
  for (const std::uint32_t items : {1U, 3U, 10U, 50U, 100U, 1000U}) {
    for (const std::uint32_t in_flight : {1U, 32U}) {
      points.add(fmt::format("scan_items={} in_flight={}", items, in_flight), Workload::scan, true,
                 [=](YcsbOptions& options) {
                   options.scan_items = items;
                   options.in_flight = in_flight;
                 });
    }
  }
}

void add_node_sizes(TreePoints& points) {
  for (std::uint32_t bytes = 512; bytes <= 65536; bytes *= 2) {
    for (const Workload workload : {Workload::get, Workload::load, Workload::scan}) {
      points.add(fmt::format("node_bytes={}", bytes), workload, false, [=](YcsbOptions& options) {
        options.node_bytes = bytes;
        // The same share of the node as by default, within the limits of a log's size.
        options.log_bytes = std::clamp<std::uint32_t>(bytes / 16, 64, 2048);
        options.scan_items = 50;
      });
    }
  }
}

void add_log_sizes(TreePoints& points) {
  for (const std::uint32_t bytes : {0U, 64U, 128U, 256U, 512U, 1024U, 2048U}) {
    for (const Workload workload : {Workload::get, Workload::load}) {
      points.add(fmt::format("log_bytes={}", bytes), workload, false,
                 [=](YcsbOptions& options) { options.log_bytes = bytes; });
    }
  }
}

void add_key_sizes(TreePoints& points) {
  for (const std::uint32_t bytes : {8U, 16U, 32U, 64U, 128U, 256U}) {
    for (const Workload workload : {Workload::scan, Workload::get}) {
      points.add(fmt::format("key_bytes={}", bytes), workload, true, [=](YcsbOptions& options) {
        options.key_source = KeySource::random;
        options.key_bytes = bytes;
        options.value_bytes = bytes;
        options.scan_items = 1;  // isolates the descent of the tree, as the paper does
      });
    }
  }
}

void add_versions(TreePoints& points) {
  for (const Workload workload :
       {Workload::load, Workload::cloud, Workload::a, Workload::get, Workload::scan}) {
    for (const bool versions : {true, false}) {
      points.add(fmt::format("versions={}", versions ? "on" : "off"), workload, false,
                 [=](YcsbOptions& options) {
                   options.versions = versions;
                   options.shares.scans = 0.5;  // of cloud
                 });
    }
  }
}

void add_in_flight(TreePoints& points) {
  for (std::uint32_t in_flight = 1; in_flight <= 64; in_flight *= 2) {
    for (const Workload workload : {Workload::get, Workload::scan, Workload::a}) {
      points.add(fmt::format("in_flight={}", in_flight), workload, false,
                 [=](YcsbOptions& options) { options.in_flight = in_flight; });
    }
  }
}

struct TreeExperiment {
  std::string_view name;
  void (*add)(TreePoints& points);
};
constexpr std::array<TreeExperiment, 9> kTreeExperiments{{
    {"lookups", add_lookups},         // uniform and zipfian, one at a time and many in flight
    {"inserts", add_inserts},         // into an empty map, in random and in ascending order
    {"erase", add_erase},             // all keys in random order
    {kScanLength, add_scan_lengths},  // 1 to 1000 items
    {"node-size", add_node_sizes},    // 512 B to 64 KiB
    {"log-size", add_log_sizes},      // 0 to 2048 B [Honeycomb Fig. 17]
    {"key-size", add_key_sizes},      // 8 to 256 B, values as long as keys [Honeycomb Fig. 14]
    {"versions", add_versions},       // on and off [Honeycomb Fig. 15]
    {"in-flight", add_in_flight},     // 1 to 64
}};

constexpr auto kTreeExperimentNames = [] {
  std::array<std::string_view, kTreeExperiments.size()> names{};
  std::ranges::transform(kTreeExperiments, names.begin(), &TreeExperiment::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> tree_experiments() { return kTreeExperimentNames; }

std::vector<TreePoint> tree_points(std::string_view experiment, const YcsbOptions& base) {
  TreePoints points(base);
  std::ranges::find(kTreeExperiments, experiment, &TreeExperiment::name)->add(points);
  return points.take();
}

}  // namespace espalier::bench
