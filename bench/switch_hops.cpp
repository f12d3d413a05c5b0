// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment hops`: gets that walk the paper's tree by READs, from the
// root, and from where the tables of a switch lead them [Fat-B+Tree §V-B], both through the same
// switch. A READ is as long on each level.
#include <fmt/ostream.h>

#include <array>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "bench/hop_line.hpp"
#include "bench/median.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/switch_frames.hpp"

namespace espalier::bench {
namespace {

struct HopSample {
  double trips = 0;
  double mean_ns = 0;  // of a get, one at a time
  double p50_ns = 0;
  double p99_ns = 0;
  double rate = 0;  // gets a second, so many in flight
};

class HopsRun {
 public:
  HopsRun(const SwitchRunOptions& options, const Output& output)
      : options_(options),
        out_(output.out),
        progress_(output),
        keys_(options.keys, options.seed),
        line_(keys_, options.value_bytes,
              {.ranges = options.ranges,
               .sets = options.sets,
               .nodes_per_set = options.nodes_per_set}) {}

  SwitchOutcome run() {
    std::array<std::vector<HopSample>, 2> came;  // without tables, with them
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t turn = 0; turn < 2; ++turn) {
        const std::size_t with = (round + turn) % 2;  // neither is always the first
        progress_.show(fmt::format("round {} of {}: {} tables", round + 1, options_.rounds,
                                   with == 1 ? "with" : "without"));
        came[with].push_back(measure(with == 1, options_.seed + round));
      }
    }
    progress_.clear();
    print("without-tables", came[0]);
    print("with-tables", came[1]);
    print_ratios(came[0], came[1]);
    return {2, true};
  }

 private:
  HopSample measure(bool with_tables, std::uint64_t seed) {
    base::Random random(seed);
    line_.set_tables(with_tables);
    std::vector<std::uint64_t> keys(options_.ops);
    for (std::uint64_t& key : keys) key = keys_.draw(random);
    line_.run(std::span(keys).first(keys.size() / 4), 1, nullptr);  // into the caches
    base::Histogram latencies;
    const std::uint64_t trips = line_.run(keys, 1, &latencies);
    const base::Stopwatch watch;
    line_.run(keys, options_.in_flight, nullptr);
    const auto ns = static_cast<double>(watch.elapsed_ns());
    const auto ops = static_cast<double>(options_.ops);
    return {.trips = static_cast<double>(trips) / ops,
            .mean_ns = latencies.mean(),
            .p50_ns = static_cast<double>(latencies.percentile(0.5)),
            .p99_ns = static_cast<double>(latencies.percentile(0.99)),
            .rate = ops * 1e9 / ns};
  }

  static double median(const std::vector<HopSample>& of, double HopSample::*field) {
    std::vector<double> values;
    for (const HopSample& each : of) values.push_back(each.*field);
    return median_of(std::move(values));
  }
  static double ratio(const std::vector<HopSample>& of, const std::vector<HopSample>& to,
                      double HopSample::*field) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i].*field / (to[i].*field));
    return median_of(std::move(ratios));
  }

  void print(const char* name, const std::vector<HopSample>& came) {
    const double trips = median(came, &HopSample::trips);
    const double mean_ns = median(came, &HopSample::mean_ns);
    const double model_ns = trips * static_cast<double>(options_.model_trip_ns);
    if (options_.json) {
      Json line;
      line["bench"] = "switch";
      line["target"] = name;
      line["workload"] = "hops";
      line["keys"] = options_.keys;
      line["read_bytes"] = line_.read_bytes();
      line["ranges"] = options_.ranges;
      line["sets"] = options_.sets;
      line["nodes_per_set"] = options_.nodes_per_set;
      line["threads"] = 1;
      line["in_flight"] = options_.in_flight;
      line["seed"] = options_.seed;
      line["ops"] = options_.ops;
      line["rounds"] = came.size();
      line["round_trips_per_op"] = trips;
      line["mean_ns"] = mean_ns;
      line["p50_ns"] = median(came, &HopSample::p50_ns);
      line["p99_ns"] = median(came, &HopSample::p99_ns);
      line["ns_per_trip"] = mean_ns / trips;
      line["ops_per_second"] = median(came, &HopSample::rate);
      line["model_trip_ns"] = options_.model_trip_ns;
      line["model_latency_ns"] = model_ns;
      line["model_ops_per_second"] = 1e9 / model_ns;
      return print_line(out_, line);
    }
    table_.row({name, fmt::format("{:.2f}", trips), fmt::format("{:.2f}", mean_ns * 1e-3),
                fmt::format("{:.2f}", median(came, &HopSample::p99_ns) * 1e-3),
                fmt::format("{:.2f}", mean_ns / trips * 1e-3),
                fmt::format("{:.0f}", median(came, &HopSample::rate) * 1e-3),
                fmt::format("{:.1f}", model_ns * 1e-3)});
  }
  void print_ratios(const std::vector<HopSample>& without, const std::vector<HopSample>& with) {
    const double latency = ratio(with, without, &HopSample::mean_ns);
    const double rate = ratio(with, without, &HopSample::rate);
    const double trips = ratio(without, with, &HopSample::trips);
    if (options_.json) {
      Json line;
      line["bench"] = "switch";
      line["target"] = "with/without-tables";
      line["workload"] = "hops";
      line["rounds"] = with.size();
      line["mean_ratio"] = latency;
      line["p99_ratio"] = ratio(with, without, &HopSample::p99_ns);
      line["ops_per_second_ratio"] = rate;
      line["model_trip_ns"] = options_.model_trip_ns;
      line["model_latency_ratio"] = 1 / trips;
      line["model_ops_per_second_ratio"] = trips;
      return print_line(out_, line);
    }
    fmt::print(out_,
               "with / without tables: latency {:.3f}, gets/s {:.2f}; by trips of {} ns alone "
               "{:.3f} and {:.2f}\n",
               latency, rate, options_.model_trip_ns, 1 / trips, trips);
  }

  const SwitchRunOptions& options_;
  std::ostream& out_;
  Progress progress_;
  const RankedKeys keys_;
  HopLine line_;
  Table table_{out_,
               {{"READs through the", -18},
                {"READs", 6},
                {"mean us", 8},
                {"p99 us", 8},
                {"us a READ", 9},
                {"k gets/s", 9},
                {"model us", 9}}};
};

}  // namespace

SwitchOutcome run_switch_hops(const SwitchRunOptions& options, const Output& output) {
  return HopsRun(options, output).run();
}

}  // namespace espalier::bench
