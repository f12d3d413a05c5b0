// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment fat-tree`: gets and puts of clients at four nodes behind the
// switches of a FatTree, which add hints to gets [Fat-B+Tree §V-C, Fig. 10]. Measured is the
// processor time of a node per request, with hints and without, in turns; the rate of so many
// clients comes from a model of that and of a trip.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/ethernet_model.hpp"
#include "bench/fat_tree_line.hpp"
#include "bench/median.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"

namespace espalier::bench {
namespace {

using TreeSamples = std::vector<FatTreeLine::Sample>;

class FatTreeRun {
 public:
  FatTreeRun(const SwitchRunOptions& options, Report& report)
      : options_(options), report_(report) {}

  void run() {
    report_.table({{"figure", -12, "figure"},
                   {"keys", 9, "keys"},
                   {"skew", 5, "theta", 2},
                   {"clients", 7, "clients"},
                   {"reads", 5, "read_percent"},
                   {"gets", -9, "target"},
                   {"node ns", 8, "node_cpu_ns_per_op", 0},
                   {"admitted", 8, "admitted_share", 3},
                   {"model k/s", 9, "model_ops_per_second", 0, 1e-3}});
    const bool all = std::ranges::none_of(kEthernetFigures, [&](const char* each) {
      return std::ranges::find(options_.figures, each) != options_.figures.end();
    });
    for (const char* const figure : kEthernetFigures) {
      if (!all && std::ranges::find(options_.figures, figure) == options_.figures.end()) continue;
      for (const EthernetPoint& point : ethernet_points(figure, options_.keys)) measure(point);
    }
  }

 private:
  // Points that differ only in clients cost nodes the same.
  void measure(const EthernetPoint& point) {
    if (line_ == nullptr || point.keys != keys_) {
      report_.progress().show(fmt::format("{} keys: the nodes", point.keys));
      line_.reset();  // before the next one is made
      line_ = std::make_unique<FatTreeLine>(options_, point.keys);
      keys_ = point.keys;
      read_percent_ = 0;
    }
    if (point.theta != theta_ || point.read_percent != read_percent_) {
      theta_ = point.theta;
      read_percent_ = point.read_percent;
      plain_.clear();
      hinted_.clear();
      for (std::uint32_t round = 0; round < options_.rounds; ++round) {
        report_.progress().show(fmt::format("{} {} keys: round {} of {}", point.figure, point.keys,
                                   round + 1, options_.rounds));
        line_->compile(theta_);
        for (std::uint32_t turn = 0; turn < 2; ++turn) {
          const bool hinted = (round + turn) % 2 != 0;  // neither is always the first
          TreeSamples& into = hinted ? hinted_ : plain_;
          into.push_back(line_->run(theta_, read_percent_, hinted, options_.seed + round));
        }
      }
    }
    print(point, "from-root", plain_);
    print(point, "hinted", hinted_);
    print_ratios(point);
  }

  static double mean_ns(const FatTreeLine::Sample& sample) {
    double mean = 0;
    for (std::size_t n = 0; n < FatTreeLine::kNodes; ++n) {
      mean += sample.shares[n] * sample.cpu_ns[n];
    }
    return mean;
  }
  static double median(const TreeSamples& samples, auto of) {
    std::vector<double> values;
    for (const FatTreeLine::Sample& sample : samples) values.push_back(of(sample));
    return median_of(std::move(values));
  }
  [[nodiscard]] double rate(const FatTreeLine::Sample& sample, std::uint32_t clients) const {
    std::array<ModelledServer, FatTreeLine::kNodes> servers;
    for (std::size_t n = 0; n < servers.size(); ++n) {
      servers[n] = {sample.shares[n], sample.cpu_ns[n]};
    }
    return model_closed_rate(servers, clients, static_cast<double>(options_.model_trip_ns),
                             options_.seed);
  }

  void begin_line(Json& line, const char* name, const EthernetPoint& point) const {
    line["target"] = name;
    line["workload"] = "fat-tree";
    line["figure"] = point.figure;
    line["keys"] = point.keys;
    line["theta"] = point.theta;
    line["clients"] = point.clients;
    line["read_percent"] = point.read_percent;
    line["nodes"] = FatTreeLine::kNodes;
    line["node_bytes"] = options_.node_bytes;
    line["value_bytes"] = options_.value_bytes;
    line["ranges"] = options_.ranges;
    line["nodes_per_set"] = options_.nodes_per_set;
    line["threads"] = 1;
    line["seed"] = options_.seed;
    line["ops"] = options_.ops;
    line["rounds"] = options_.rounds;
  }

  void print(const EthernetPoint& point, const char* name, const TreeSamples& samples) {
    const double cpu_ns = median(samples, mean_ns);
    const double ops = median(samples, [&](const auto& each) { return rate(each, point.clients); });
    const auto share = [&](double FatTreeLine::Sample::*of) {
      return median(samples, [of](const auto& each) { return each.*of; });
    };
    Json line;
    begin_line(line, name, point);
    line["node_cpu_ns_per_op"] = cpu_ns;
    if (&samples == &hinted_) {
      line["hop_cpu_ns"] = share(&FatTreeLine::Sample::hop_ns);
      line["table_hit_share"] = share(&FatTreeLine::Sample::at_leaf);
      line["admitted_share"] = share(&FatTreeLine::Sample::admitted);
      line["moved_share"] = share(&FatTreeLine::Sample::moved);
      line["refused_share"] = share(&FatTreeLine::Sample::refused);
      line["astray_share"] = share(&FatTreeLine::Sample::astray);
    }
    line["model_trip_ns"] = options_.model_trip_ns;
    line["model_ops_per_second"] = ops;
    report_.line(line);
  }

  // Within rounds, then the median.
  void print_ratios(const EthernetPoint& point) {
    std::vector<double> costs;
    std::vector<double> rates;
    for (std::size_t i = 0; i < hinted_.size(); ++i) {
      costs.push_back(mean_ns(hinted_[i]) / mean_ns(plain_[i]));
      rates.push_back(rate(hinted_[i], point.clients) / rate(plain_[i], point.clients));
    }
    Json line;
    begin_line(line, "hinted/from-root", point);
    line["node_cpu_ratio"] = median_of(std::move(costs));
    line["model_trip_ns"] = options_.model_trip_ns;
    line["model_ops_per_second_ratio"] = median_of(std::move(rates));
    report_.ratios(line, "node_cpu_ratio");
  }

  const SwitchRunOptions& options_;
  Report& report_;
  std::unique_ptr<FatTreeLine> line_;
  std::uint64_t keys_ = 0;
  double theta_ = 0;
  std::uint32_t read_percent_ = 0;  // of the samples, with what is above; 0: there are none
  TreeSamples plain_;
  TreeSamples hinted_;
};

}  // namespace

void run_switch_fat_tree(const SwitchRunOptions& options, Report& report) {
  FatTreeRun(options, report).run();
}

}  // namespace espalier::bench
