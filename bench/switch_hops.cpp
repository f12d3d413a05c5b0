// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment hops`: gets that walk the paper's tree by READs, from the
// root, and from where the tables of a switch lead them [Fat-B+Tree §V-B], both through the same
// switch. A READ has the same length on each level. At one point, or at those of the paper's
// figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/cpu_clock.hpp"
#include "base/histogram.hpp"
#include "bench/figure_points.hpp"
#include "bench/hop_line.hpp"
#include "bench/median.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/switch_frames.hpp"

namespace espalier::bench {
namespace {

struct HopSample {
  double trips = 0;
  double mean_ns = 0;  // of a get, one at a time, in processor time
  double p50_ns = 0;
  double p99_ns = 0;
  double rate = 0;  // gets a second of the processor, so many in flight
};

// The results of a point's gets without tables or with them, by round.
struct HopWay {
  const char* name;
  double exact_trips = 0;  // over all keys
  std::vector<HopSample> samples;
  std::vector<base::Histogram> levels;  // of all rounds together, leaves first

  [[nodiscard]] double median(double HopSample::*field) const { return median_of(samples, field); }
};

// The ratios between the two ways of a point. Within rounds, then the median.
struct HopRatios {
  double latency = 0;
  double p99 = 0;
  double rate = 0;
  double trips = 0;  // without tables, by those with them
  // A get's time: hops for its trips, each of the same length, plus a constant.
  double ns_per_hop = 0;
  double ns_beside = 0;

  HopRatios(const HopWay& without, const HopWay& with) {
    const auto over_rounds = [&](auto of) {
      std::vector<double> values;
      for (std::size_t i = 0; i < with.samples.size(); ++i) {
        values.push_back(of(without.samples[i], with.samples[i]));
      }
      return median_of(std::move(values));
    };
    using Sample = const HopSample&;
    latency = over_rounds([](Sample a, Sample b) { return b.mean_ns / a.mean_ns; });
    p99 = over_rounds([](Sample a, Sample b) { return b.p99_ns / a.p99_ns; });
    rate = over_rounds([](Sample a, Sample b) { return b.rate / a.rate; });
    trips = over_rounds([](Sample a, Sample b) { return a.trips / b.trips; });
    const auto hop = [](Sample a, Sample b) {
      return a.trips == b.trips ? a.mean_ns / a.trips
                                : (a.mean_ns - b.mean_ns) / (a.trips - b.trips);
    };
    ns_per_hop = over_rounds(hop);
    ns_beside = over_rounds([&](Sample a, Sample b) { return b.mean_ns - hop(a, b) * b.trips; });
  }
};

class HopsRun {
 public:
  HopsRun(const SwitchRunOptions& options, Report& report) : options_(options), report_(report) {}

  void run() {
    report_.table({{"figure", -7, "figure"},
                   {"keys", 9, "keys"},
                   {"skew", 5, "theta", 2},
                   {"changed", 7, "changed", 2},
                   {"sets", 4, "sets"},
                   {"nodes", 6, "nodes_per_set"},
                   {"READs", -14, "target"},
                   {"a get", 6, "round_trips_per_op", 2},
                   {"mean us", 8, "mean_ns", 2, 1e-3},
                   {"p99 us", 8, "p99_ns", 2, 1e-3},
                   {"us a READ", 9, "ns_per_trip", 2, 1e-3},
                   {"k gets/s", 9, "ops_per_second", 0, 1e-3},
                   {"model us", 9, "model_latency_ns", 1, 1e-3}});
    FigurePoint usual;
    usual.keys = options_.keys;
    usual.limits.ranges = options_.ranges;
    usual.limits.sets = options_.sets;
    usual.limits.nodes_per_set = options_.nodes_per_set;
    if (options_.figures.empty()) measure(usual);
    for (const char* const figure : kFigures) {
      if (std::ranges::find(options_.figures, figure) == options_.figures.end()) continue;
      for (const FigurePoint& point : points_of(figure, usual)) measure(point);
    }
  }

 private:
  void measure(const FigurePoint& point) {
    HopWay without{"without-tables", 0, {}, {}};
    HopWay with{"with-tables", 0, {}, {}};
    prepare(point, without, with);
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::uint32_t turn = 0; turn < 2; ++turn) {
        HopWay& way = (round + turn) % 2 == 0 ? without : with;  // neither is always the first
        report_.progress().show(fmt::format("{} {} keys, round {} of {}: {}", point.figure,
                                            point.keys, round + 1, options_.rounds, way.name));
        line_->set_tables(&way == &with);
        sample(way, options_.seed + round);
      }
    }
    print(point, without);
    print(point, with);
    print_ratios(point, {without, with});
  }

  // Points with the same number of keys share the node's tree.
  void prepare(const FigurePoint& point, HopWay& without, HopWay& with) {
    report_.progress().show(fmt::format("{} {} keys: the tree", point.figure, point.keys));
    FigureRequests requests = requests_of(point, kRankFanout, options_.seed);
    const auto tables = dataplane::compile(requests.tree.tree, point.limits).tables;
    without.exact_trips = requests.tree.levels + 1;
    with.exact_trips = count_trips(requests.tree, tables, requests.accesses).mean;
    auto keys =
        std::make_unique<RankedKeys>(std::move(requests.tree), std::move(requests.accesses));
    if (keys_ != nullptr && keys_->size() == keys->size()) {
      line_->use(*keys);
    } else {
      line_.reset();  // before there is another one
      line_ = std::make_unique<HopLine>(*keys, options_.value_bytes);
    }
    keys_ = std::move(keys);
    line_->compile(tables);
  }

  void sample(HopWay& way, std::uint64_t seed) {
    base::Random random(seed);
    std::vector<std::uint64_t> keys(options_.ops);
    for (std::uint64_t& key : keys) key = keys_->draw(random);
    const auto some = std::span(keys).first(keys.size() / 4);
    line_->run(some, 1, nullptr);  // into the caches
    base::Histogram latencies;
    // All sides run on this thread; time waiting for the system's scheduler is excluded.
    const std::uint64_t begin_ns = base::thread_cpu_ns();
    const std::uint64_t trips = line_->run(keys, 1, &latencies);
    const std::uint64_t between_ns = base::thread_cpu_ns();
    line_->run(keys, options_.in_flight, nullptr);
    const std::uint64_t end_ns = base::thread_cpu_ns();
    const auto ops = static_cast<double>(options_.ops);
    way.samples.push_back({.trips = static_cast<double>(trips) / ops,
                           .mean_ns = static_cast<double>(between_ns - begin_ns) / ops,
                           .p50_ns = static_cast<double>(latencies.percentile(0.5)),
                           .p99_ns = static_cast<double>(latencies.percentile(0.99)),
                           .rate = ops * 1e9 / static_cast<double>(end_ns - between_ns)});
    for (std::uint64_t& key : keys) key = keys_->draw(random);  // not those that are in the caches
    line_->time_levels(some, way.levels);
  }

  void begin_line(Json& line, const char* name, const FigurePoint& point) const {
    line["target"] = name;
    line["workload"] = "hops";
    if (!point.figure.empty()) line["figure"] = point.figure;
    line["keys"] = point.keys;
    line["theta"] = point.theta;
    line["changed"] = point.changed;
    line["ranges"] = point.limits.ranges;
    line["sets"] = point.limits.sets;
    line["nodes_per_set"] = point.limits.nodes_per_set;
  }

  void print(const FigurePoint& point, const HopWay& way) {
    const double trips = way.median(&HopSample::trips);
    const double mean_ns = way.median(&HopSample::mean_ns);
    const double model_ns = trips * static_cast<double>(options_.model_trip_ns);
    Json line;
    begin_line(line, way.name, point);
    line["read_bytes"] = line_->read_bytes();
    line["threads"] = 1;
    line["in_flight"] = options_.in_flight;
    line["seed"] = options_.seed;
    line["ops"] = options_.ops;
    line["rounds"] = way.samples.size();
    line["round_trips_per_op"] = trips;
    line["round_trips_exact"] = way.exact_trips;
    line["mean_ns"] = mean_ns;
    line["p50_ns"] = way.median(&HopSample::p50_ns);
    line["p99_ns"] = way.median(&HopSample::p99_ns);
    line["ns_per_trip"] = mean_ns / trips;
    line["level_ns"] = level_ns(way);
    line["ops_per_second"] = way.median(&HopSample::rate);
    line["model_trip_ns"] = options_.model_trip_ns;
    line["model_latency_ns"] = model_ns;
    line["model_ops_per_second"] = 1e9 / model_ns;
    report_.line(line);
  }

  // The median time of a READ of a node on each level, leaves first; null: there was none.
  static Json level_ns(const HopWay& way) {
    Json levels = Json::array();
    for (const base::Histogram& level : way.levels) {
      if (level.count() == 0) {
        levels.push_back(nullptr);
      } else {
        levels.push_back(level.percentile(0.5));
      }
    }
    return levels;
  }

  void print_ratios(const FigurePoint& point, const HopRatios& ratios) {
    Json line;
    begin_line(line, "with/without-tables", point);
    line["rounds"] = options_.rounds;
    line["mean_ratio"] = ratios.latency;
    line["p99_ratio"] = ratios.p99;
    line["ops_per_second_ratio"] = ratios.rate;
    line["ns_per_hop"] = ratios.ns_per_hop;
    line["ns_per_get_beside"] = ratios.ns_beside;
    line["model_trip_ns"] = options_.model_trip_ns;
    line["model_latency_ratio"] = 1 / ratios.trips;
    line["model_ops_per_second_ratio"] = ratios.trips;
    report_.ratios(line, "mean_ratio");
  }

  const SwitchRunOptions& options_;
  Report& report_;
  std::unique_ptr<RankedKeys> keys_;
  std::unique_ptr<HopLine> line_;
};

}  // namespace

void run_switch_hops(const SwitchRunOptions& options, Report& report) {
  HopsRun(options, report).run();
}

}  // namespace espalier::bench
