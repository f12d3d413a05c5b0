// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/map_session.hpp"
#include "bench/median.hpp"
#include "bench/met_at_node.hpp"
#include "bench/own_line.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "client/store_impl.hpp"

namespace espalier::bench {
namespace {

struct Way {
  const char* name;
  Access access;
  bool cache = false;
  bool writes = false;
};
constexpr std::array<Way, 5> kWays{{{"rpc", Access::rpc},
                                    {"one-sided", Access::one_sided},
                                    {"one-sided-cache", Access::one_sided, true},
                                    {"in-network", Access::in_network},
                                    {"in-network-writes", Access::in_network, false, true}}};

constexpr std::size_t kWalking = 1;
constexpr std::size_t kKeyed = 3;
constexpr std::size_t kWriting = 4;

/// The results of one way in one round.
struct GetSample {
  double trips = 0;  // READs that a get waited for
  double hits = 0;   // of all gets, those that waited for one
  double bytes = 0;
  double median_ns = 0;
  double p99_ns = 0;
  double rate = 0;   // gets a second, so many in flight
  MetShares met{};   // shares of all gets, by what their READ by key met
  MetShares slow{};  // of all gets those that met it and waited for more than one READ
};

/// Checks that each get finds its key.
class Finds final : public Handler {
 public:
  void done(const Completion& completion) override { missed_ += completion.found ? 0 : 1; }
  [[nodiscard]] std::uint64_t missed() const { return missed_; }

 private:
  std::uint64_t missed_ = 0;
};

class GetsRun {
 public:
  GetsRun(const SwitchRunOptions& options, Report& report, std::string address,
          const offload::IndexReadCounts* met)
      : options_(options),
        report_(report),
        address_(std::move(address)),
        met_(met),
        keys_(read_keys()),
        zipf_(keys_.size()) {}

  void run() {
    report_.table({{"way", -18, "target"},
                   {"READs", 6, "round_trips_per_op", 2},
                   {"one %", 6, "one_trip_share", 1, 100},
                   {"bytes", 7, "bytes_per_op", 0},
                   {"p50 us", 8, "p50_ns", 1, 1e-3},
                   {"p99 us", 8, "p99_ns", 1, 1e-3},
                   {"k gets/s", 9, "ops_per_second", 0, 1e-3}});
    std::array<std::vector<GetSample>, kWays.size()> samples;
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t way = 0; way < kWays.size(); ++way) {
        if (kWays[way].writes && options_.write_percent == 0) continue;
        report_.progress().show(
            fmt::format("round {} of {}: {}", round + 1, options_.rounds, kWays[way].name));
        samples[way].push_back(measure(kWays[way], options_.seed + round));
      }
    }
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      if (!samples[way].empty()) print(kWays[way], samples[way]);
    }
    print_ratios(samples);
  }

 private:
  std::vector<std::string> read_keys() {
    const Store store = connect({"rpc", Access::rpc});
    const Map map = open(store);
    std::vector<std::string> keys;
    value_or_throw(map.scan("", "",
                            [&](std::span<const Item> items) {
                              for (const Item& item : items) keys.emplace_back(item.key);
                              return keys.size() < options_.keys;
                            },
                            {.limit = static_cast<std::uint32_t>(options_.keys)}),
                   "cannot read the keys");
    if (keys.empty()) throw std::runtime_error("the map '" + options_.map + "' is empty");
    return keys;
  }
  [[nodiscard]] Store connect(const Way& way) const {
    StoreOptions options;
    options.access = way.access;
    if (!way.cache) options.cache_bytes = 0;
    return value_or_throw(Store::connect(address_, options),
                          fmt::format("cannot connect to {} for {}", address_, way.name));
  }
  [[nodiscard]] Map open(const Store& store) const {
    return value_or_throw(store.open_map(options_.map), "cannot open '" + options_.map + "'");
  }
  // Hot keys are scattered over the map.
  const std::string& draw(base::Random& random) const {
    return keys_[base::mix64(zipf_(random) + 1) % keys_.size()];
  }

  GetSample measure(const Way& way, std::uint64_t seed) {
    const Store store = connect(way);
    const Map map = open(store);
    Writes writes(*this, way, seed);
    base::Random random(seed);
    for (std::uint64_t i = 0; i < options_.ops / 4; ++i) get(map, draw(random));  // caches fill
    const auto traffic = [&] { return client::StoreImpl::of(store).read_traffic(); };
    const tree::WalkTraffic before = traffic();
    base::Histogram latencies;
    std::uint64_t hits = 0;
    MetAtNode at_node(met_);
    MetShares met{};
    MetShares slow{};
    std::uint64_t trips = before.round_trips;
    for (std::uint64_t i = 0; i < options_.ops; ++i) {
      writes.some();
      const std::string& key = draw(random);
      const base::Stopwatch watch;
      get(map, key);
      latencies.record(watch.elapsed_ns());
      const std::uint64_t before_it = std::exchange(trips, traffic().round_trips);
      const bool hit = trips - before_it == 1;
      hits += hit ? 1 : 0;
      const std::size_t cause = at_node.take();
      met[cause] += 1;
      slow[cause] += hit ? 0 : 1;
    }
    for (double& each : met) each /= static_cast<double>(options_.ops);
    for (double& each : slow) each /= static_cast<double>(options_.ops);
    const tree::WalkTraffic after = traffic();
    const auto per_get = [&](std::uint64_t sum) {
      return static_cast<double>(sum) / static_cast<double>(options_.ops);
    };
    return {.trips = per_get(after.round_trips - before.round_trips),
            .hits = per_get(hits),
            .bytes = per_get(after.bytes - before.bytes),
            .median_ns = static_cast<double>(latencies.percentile(0.5)),
            .p99_ns = static_cast<double>(latencies.percentile(0.99)),
            .rate = way.writes ? 0 : rate_of(map, random),
            .met = met,
            .slow = slow};
  }
  // The writes between a way's gets, by another client.
  class Writes {
   public:
    Writes(const GetsRun& run, const Way& way, std::uint64_t seed)
        : run_(run), random_(seed + 1'000'000), value_(run.options_.value_bytes, 'w') {
      if (!way.writes) return;
      store_.emplace(run.connect({"rpc", Access::rpc}));
      map_.emplace(run.open(*store_));
    }
    // The writes of one get.
    void some() {
      while (map_ && random_.below(100) < run_.options_.write_percent) {
        value_or_throw(map_->put(run_.draw(random_), value_), "cannot write");
      }
    }

   private:
    const GetsRun& run_;
    base::Random random_;
    const std::string value_;
    std::optional<Store> store_;
    std::optional<Map> map_;
  };

  static void get(const Map& map, const std::string& key) {
    if (!value_or_throw(map.get(key), "cannot get")) {
      throw std::runtime_error("a key is not there: " + key);
    }
  }
  double rate_of(const Map& map, base::Random& random) const {
    Pipeline pipeline = value_or_throw(Pipeline::open(map, options_.in_flight), "no pipeline");
    std::vector<Request> gets(options_.ops);
    for (Request& each : gets) {
      each.op = Op::get;
      each.key = draw(random);
    }
    Finds finds;
    pipeline.run(std::span(gets).first(gets.size() / 4), finds);  // the map is opened
    const base::Stopwatch watch;
    pipeline.run(gets, finds);
    const auto ns = static_cast<double>(watch.elapsed_ns());
    if (finds.missed() != 0) throw std::runtime_error("keys are not there");
    return static_cast<double>(options_.ops) * 1e9 / ns;
  }

  void print(const Way& way, const std::vector<GetSample>& samples) {
    const auto median = [&](double GetSample::*field) { return median_of(samples, field); };
    const double trips = median(&GetSample::trips);
    Json line;
    line["target"] = way.name;
    line["workload"] = "get";
    line["keys"] = keys_.size();
    line["value_bytes"] = options_.value_bytes;
    line["threads"] = 1;
    line["in_flight"] = options_.in_flight;
    line["seed"] = options_.seed;
    line["ops"] = options_.ops;
    line["rounds"] = samples.size();
    if (way.access != Access::rpc) {
      line["round_trips_per_op"] = trips;
      line["model_latency_ns"] = trips * static_cast<double>(options_.model_trip_ns);
      line["one_trip_share"] = median(&GetSample::hits);
      line["bytes_per_op"] = median(&GetSample::bytes);
    }
    if (way.access == Access::in_network && met_ != nullptr) {
      line["met_share"] = causes(samples, &GetSample::met);
      line["more_reads_share"] = causes(samples, &GetSample::slow);
    }
    if (way.writes) {
      line["write_percent"] = options_.write_percent;
      line["delay_ms"] = options_.delay_ms;
    }
    line["p50_ns"] = median(&GetSample::median_ns);
    line["p99_ns"] = median(&GetSample::p99_ns);
    if (!way.writes) line["ops_per_second"] = median(&GetSample::rate);
    report_.line(line);
  }

  static Json causes(const std::vector<GetSample>& samples, MetShares GetSample::*of) {
    Json object;
    for (std::size_t cause = 0; cause < kMet.size(); ++cause) {
      std::vector<double> values;
      for (const GetSample& sample : samples) values.push_back((sample.*of)[cause]);
      object[kMet[cause]] = median_of(std::move(values));
    }
    return object;
  }

  // By round, since other load during a round slows both.
  static double ratio(const std::vector<GetSample>& of, const std::vector<GetSample>& to,
                      double GetSample::*field) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i].*field / (to[i].*field));
    return median_of(std::move(ratios));
  }
  // The savings of the tables, compared with those of their trips alone, and the hits that remain
  // under writes.
  void print_ratios(const std::array<std::vector<GetSample>, kWays.size()>& samples) {
    const auto& walking = samples[kWalking];
    const auto& keyed = samples[kKeyed];
    const auto& writing = samples[kWriting];
    const double latency = ratio(keyed, walking, &GetSample::median_ns);
    const double rate = ratio(keyed, walking, &GetSample::rate);
    const double trips = ratio(walking, keyed, &GetSample::trips);
    Json line;
    line["target"] = "in-network/one-sided";
    line["workload"] = "get";
    line["rounds"] = keyed.size();
    line["p50_ratio"] = latency;
    line["ops_per_second_ratio"] = rate;
    line["model_trip_ns"] = options_.model_trip_ns;
    line["model_latency_ratio"] = 1 / trips;
    line["model_ops_per_second_ratio"] = trips;
    if (!writing.empty()) {
      line["write_percent"] = options_.write_percent;
      line["delay_ms"] = options_.delay_ms;
      line["one_trip_share_ratio"] = ratio(writing, keyed, &GetSample::hits);
    }
    report_.ratios(line, "p50_ratio");
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const std::string address_;
  const offload::IndexReadCounts* const met_;  // null: the node is elsewhere
  const std::vector<std::string> keys_;
  const base::Zipf zipf_;
};

}  // namespace

void run_switch_gets(const SwitchRunOptions& options, Report& report) {
  const auto own = options.node_address.empty() ? std::make_unique<OwnLine>(options) : nullptr;
  GetsRun run(options, report, own ? own->address() : options.node_address,
              own ? &own->met() : nullptr);
  run.run();
}

}  // namespace espalier::bench
