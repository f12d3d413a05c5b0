// SPDX-License-Identifier: Apache-2.0
// Scans in parts [Fat-B+Tree §IV-C]: the cost of each part, if the client walks from the root and
// if its READs carry the key at which the part begins.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/map_session.hpp"
#include "bench/median.hpp"
#include "bench/own_line.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "client/store_impl.hpp"

namespace espalier::bench {
namespace {

struct PartsWay {
  const char* name;
  Access access;
};
constexpr std::array<PartsWay, 2> kPartsWays{
    {{"one-sided", Access::one_sided}, {"in-network", Access::in_network}}};
constexpr std::array<std::uint32_t, 4> kParts{1, 2, 5, 10};

/// The results of scans of one way in so many parts in one round.
struct PartsSample {
  double reads = 0;  // of memory, for one scan
  double trips = 0;  // that a walk waited for; parts run concurrently
  double median_ns = 0;
  double p99_ns = 0;
};
using PartsSamples = std::array<std::vector<PartsSample>, kParts.size()>;

class PartsRun {
 public:
  PartsRun(const SwitchRunOptions& options, Report& report, const OwnLine& line)
      : options_(options),
        report_(report),
        line_(line),
        zipf_(options.keys - options.range_keys + 1) {}

  void run() {
    report_.table({{"way", -12, "target"},
                   {"parts", 5, "parts"},
                   {"READs", 8, "reads_per_op", 1},
                   {"waits", 8, "round_trips_per_op", 1},
                   {"p50 us", 8, "p50_ns", 1, 1e-3},
                   {"p99 us", 8, "p99_ns", 1, 1e-3}});
    std::array<PartsSamples, kPartsWays.size()> samples;
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t way = 0; way < kPartsWays.size(); ++way) {
        report_.progress().show(fmt::format("parts: round {} of {}: {}", round + 1, options_.rounds,
                                            kPartsWays[way].name));
        measure(kPartsWays[way], options_.seed + round, samples[way]);
      }
    }
    for (std::size_t way = 0; way < kPartsWays.size(); ++way) {
      for (std::size_t i = 0; i < kParts.size(); ++i) print(way, kParts[i], samples[way][i]);
    }
    print_ratio(samples);
  }

 private:
  // Hot ranges are scattered over the map.
  std::uint64_t draw(base::Random& random) const {
    return base::mix64(zipf_(random) + 1) % (options_.keys - options_.range_keys + 1);
  }

  void scan(const Map& map, std::uint64_t first, std::uint32_t parts) const {
    const std::string low = fmt::format("user{:012}", first);
    const std::string high = fmt::format("user{:012}", first + options_.range_keys);
    const auto items = value_or_throw(
        map.scan(low, high, [](std::span<const Item>) { return true; }, {.parts = parts}),
        "cannot scan");
    if (items != options_.range_keys) throw std::runtime_error("a scan lacks keys");
  }

  void measure(const PartsWay& way, std::uint64_t seed, PartsSamples& samples) {
    const Store store =
        value_or_throw(Store::connect(line_.address(), {.access = way.access, .cache_bytes = 0}),
                       "cannot connect");
    const Map map = value_or_throw(store.open_map(options_.map), "cannot open the map");
    const auto traffic = [&] { return client::StoreImpl::of(store).read_traffic(); };
    scan(map, 0, kParts.back());  // as many walks as will be used
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      base::Random random(seed);
      for (std::uint64_t n = 0; n < options_.ops / 4; ++n) scan(map, draw(random), kParts[i]);
      base::Histogram latencies;
      const tree::WalkTraffic before = traffic();
      for (std::uint64_t n = 0; n < options_.ops; ++n) {
        const std::uint64_t first = draw(random);
        const base::Stopwatch watch;
        scan(map, first, kParts[i]);
        latencies.record(watch.elapsed_ns());
      }
      const tree::WalkTraffic after = traffic();
      const auto per_scan = [&](std::uint64_t sum) {
        return static_cast<double>(sum) / static_cast<double>(options_.ops);
      };
      samples[i].push_back({.reads = per_scan(after.reads - before.reads),
                            .trips = per_scan(after.round_trips - before.round_trips),
                            .median_ns = static_cast<double>(latencies.percentile(0.5)),
                            .p99_ns = static_cast<double>(latencies.percentile(0.99))});
    }
  }

  void print(std::size_t way, std::uint32_t parts, const std::vector<PartsSample>& samples) {
    const char* const name = kPartsWays[way].name;
    Json line;
    line["target"] = name;
    line["workload"] = "parts";
    line["keys"] = options_.keys;
    line["node_bytes"] = options_.node_bytes;
    line["value_bytes"] = options_.value_bytes;
    line["range_keys"] = options_.range_keys;
    line["parts"] = parts;
    line["threads"] = 1;
    line["seed"] = options_.seed;
    line["ops"] = options_.ops;
    line["rounds"] = samples.size();
    line["reads_per_op"] = median_of(samples, &PartsSample::reads);
    line["round_trips_per_op"] = median_of(samples, &PartsSample::trips);
    line["p50_ns"] = median_of(samples, &PartsSample::median_ns);
    line["p99_ns"] = median_of(samples, &PartsSample::p99_ns);
    report_.line(line);
  }

  // The cost of the most parts compared with one, with tables and without.
  void print_ratio(const std::array<PartsSamples, kPartsWays.size()>& samples) {
    const auto added = [&](std::size_t way, double PartsSample::*field) {
      return median_of(samples[way].back(), field) - median_of(samples[way].front(), field);
    };
    const double reads = added(1, &PartsSample::reads) / added(0, &PartsSample::reads);
    const double trips = added(1, &PartsSample::trips) / added(0, &PartsSample::trips);
    Json line;
    line["target"] = "in-network/one-sided";
    line["workload"] = "parts";
    line["parts"] = kParts.back();
    line["added_reads_ratio"] = reads;
    line["added_round_trips_ratio"] = trips;
    report_.ratios(line, "added_reads_ratio");
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const OwnLine& line_;
  const base::Zipf zipf_;
};

}  // namespace

void run_switch_parts(const SwitchRunOptions& options, Report& report) {
  const OwnLine line(options);
  PartsRun run(options, report, line);
  run.run();
}

}  // namespace espalier::bench
