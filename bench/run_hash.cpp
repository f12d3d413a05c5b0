// SPDX-License-Identifier: Apache-2.0
#include "bench/run_hash.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/benchmark.hpp"
#include "bench/hash_lines.hpp"
#include "bench/hash_points.hpp"
#include "bench/noop_client.hpp"
#include "bench/probe.hpp"
#include "bench/random_lines.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kLinesBytesMin = std::uint64_t{64} << 20;

/// What a point varies.
struct HashSetting {
  HashMix mix;
  std::uint32_t batch = 32;
  bool clocked = false;
};

/// The targets, and their requests.
class HashTargets {
 public:
  explicit HashTargets(const HashBenchOptions& options)
      : options_(options), pairs_(options.pairs, options.seed) {}

  // All targets exist at the same time, so that a change of the machine affects all of them.
  void make(Report& report) {
    if (!targets_.empty()) return;
    const bool named = !options_.targets.empty();
    const std::uint64_t cache = options_.pairs * 64 * options_.cache_percent / 100;
    for (const HashTargetKind kind : named ? options_.targets : all_hash_targets()) {
      try {
        auto target = make_hash_target(kind, {options_.pairs, options_.versions, cache});
        run_pinned([&] { fill(*target); });
        targets_.push_back({kind, std::move(target)});
      } catch (const std::runtime_error& error) {
        const std::string why = fmt::format("target {}: {}", name(kind), error.what());
        fmt::print(report.output().err, "espalier-bench: {}\n", why);
        if (named) report.fail("a target that was named cannot run: " + why);
      }
    }
    if (targets_.empty()) throw std::runtime_error("no target can run");
  }

  [[nodiscard]] std::vector<MeasuredPoint> peak() {
    constexpr std::uint32_t kInFlight = 32;
    auto points = with_lines();
    add_noops(points, kInFlight);
    for (const HashDraw draw : {HashDraw::uniform, HashDraw::zipfian}) {
      for (const std::uint32_t gets : {100u, 50u}) {
        add_points(points, {{draw, gets}, kInFlight, false});
      }
    }
    return points;
  }
  [[nodiscard]] std::vector<MeasuredPoint> latency() {
    auto points = with_lines();
    for (const std::uint32_t gets : {100u, 50u}) {
      for (const std::uint32_t batch : {1u, 32u}) {
        add_points(points, {{HashDraw::zipfian, gets}, batch, true});
      }
    }
    return points;
  }
  [[nodiscard]] std::vector<MeasuredPoint> batches() {
    auto points = with_lines();
    for (const std::uint32_t batch : options_.batches) {
      add_points(points, {{HashDraw::zipfian, 100}, batch, false});
    }
    return points;
  }

 private:
  struct Loaded {
    HashTargetKind kind;
    std::unique_ptr<HashTarget> target;
  };

  void fill(HashTarget& target) {
    constexpr std::uint64_t kTogether = 4096;
    HashAnswers answers;
    for (std::uint64_t from = 0; from < pairs_.count(); from += kTogether) {
      const std::uint64_t count = std::min(kTogether, pairs_.count() - from);
      RequestList list(count);
      for (std::uint64_t i = from; i < from + count; ++i) {
        const HashPairs::Key key = pairs_.key(i);
        const HashPairs::Value value = pairs_.value(i);
        list.add(request_of(Op::put, {key.data(), key.size()}, {value.data(), value.size()}));
      }
      target.run(list.requests(), 64, answers);
    }
    if (answers.put != pairs_.count() || answers.failed != 0) {
      throw std::runtime_error(fmt::format("{} of {} pairs could not be put",
                                           pairs_.count() - answers.put, pairs_.count()));
    }
  }

  [[nodiscard]] const RequestList& requests_of(const HashMix& mix) {
    const auto key = std::pair(mix.draw, mix.gets_percent);
    const auto made = lists_.find(key);
    if (made != lists_.end()) return made->second;
    return lists_.emplace(key, make_hash_requests(pairs_, mix, options_.ops, options_.seed + 1))
        .first->second;
  }

  void measure_lines(PointSample& sample) {
    const std::uint64_t bytes = std::max(options_.pairs * 80, kLinesBytesMin);
    RandomLineRate rate;
    run_pinned([&] { rate = random_line_rate(bytes, options_.probe_seconds, options_.seed); });
    lines_per_s_ = rate.lines_per_s;
    sample.took(static_cast<std::uint64_t>(rate.lines_per_s), 1);
    sample.numbers.emplace_back("distance", rate.distance);
    sample.numbers.emplace_back("to_l2", rate.to_l2 ? 1 : 0);
  }

  PointSample measure(HashTarget& target, const HashSetting& setting) {
    const RequestList& list = requests_of(setting.mix);
    PointSample sample;
    HashAnswers answers;
    const auto before = target.traffic();
    run_pinned([&] {
      const base::Stopwatch watch;
      if (setting.clocked) {
        run_clocked(target, list.requests(), setting.batch, answers, sample.latencies);
      } else {
        target.run(list.requests(), setting.batch, answers);
      }
      sample.took(list.size(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
    });
    if (answers.failed != 0) {
      throw std::runtime_error(
          fmt::format("{} of {} requests failed", answers.failed, list.size()));
    }
    sample.checksum = answers.checksum();
    if (before) {
      const auto gets = std::ranges::count(list.requests(), Op::get, &Request::op);
      add_traffic(sample, *before, *target.traffic(), static_cast<double>(gets));
    }
    if (lines_per_s_ > 0 && sample.seconds > 0) {
      const double rate = static_cast<double>(sample.ops) / sample.seconds;
      sample.numbers.emplace_back("percent_of_random_lines", 100 * rate / lines_per_s_);
    }
    if (const auto bytes = target.memory_bytes()) {
      sample.numbers.emplace_back(
          "bytes_per_pair", static_cast<double>(*bytes) / static_cast<double>(pairs_.count()));
    }
    return sample;
  }

  // The traffic of a get with one-sided reads.
  static void add_traffic(PointSample& sample, const tree::WalkTraffic& before,
                          const tree::WalkTraffic& now, double gets) {
    const auto each = [&](const char* what, std::uint64_t tree::WalkTraffic::*count) {
      if (gets > 0)
        sample.numbers.emplace_back(what, static_cast<double>(now.*count - before.*count) / gets);
    };
    each("waits_per_get", &tree::WalkTraffic::round_trips);
    each("reads_per_get", &tree::WalkTraffic::reads);
    each("read_bytes_per_get", &tree::WalkTraffic::bytes);
    each("by_rings_per_get", &tree::WalkTraffic::by_rings);
  }

  // Each request of a batch has waited as long as the batch took.
  static void run_clocked(HashTarget& target, std::span<const Request> requests,
                          std::uint32_t batch, HashAnswers& answers, base::Histogram& latencies) {
    for (std::size_t i = 0; i < requests.size(); i += batch) {
      const auto some = requests.subspan(i, std::min<std::size_t>(batch, requests.size() - i));
      const base::Stopwatch watch;
      target.run(some, batch, answers);
      latencies.record(watch.elapsed_ns());
    }
  }

  void add_points(std::vector<MeasuredPoint>& points, const HashSetting& setting) {
    const auto& [draw, gets] = setting.mix;
    for (const Loaded& loaded : targets_) {
      points.push_back({.target = std::string(name(loaded.kind)),
                        .workload = gets == 100 ? "get" : "get-put",
                        .parameters = {{"distribution", name(draw)},
                                       {"gets_percent", gets},
                                       {"batch", setting.batch},
                                       {"keys", options_.pairs},
                                       {"key_bytes", kHashKeyBytes},
                                       {"value_bytes", kHashValueBytes},
                                       {"settings", loaded.target->settings()}},
                        .threads = has_server(loaded.kind) ? 2U : 1U,
                        .answers = fmt::format("{} {}", name(draw), gets),
                        .measure = [this, &target = *loaded.target, setting] {
                          return measure(target, setting);
                        }});
    }
  }
  [[nodiscard]] std::vector<MeasuredPoint> with_lines() {
    MeasuredPoint lines{.workload = "random-lines",
                        .parameters = {{"bytes", std::max(options_.pairs * 80, kLinesBytesMin)}},
                        .answers = "lines",
                        .measure = [this] {
                          PointSample sample;
                          measure_lines(sample);
                          return sample;
                        }};
    return {std::move(lines)};
  }

  /// Through the rings of Espalier's nodes, one point for each of them.
  void add_noops(std::vector<MeasuredPoint>& points, std::uint32_t in_flight) {
    for (const Loaded& loaded : targets_) {
      const std::string address = loaded.target->node_address();
      if (address.empty()) continue;
      const NoopPlan plan{.in_flight = in_flight, .ops = options_.ops};
      points.push_back({.target = std::string(name(loaded.kind)),
                        .workload = "noop",
                        .parameters = {{"batch", in_flight}},
                        .threads = 2,
                        .answers = "noops",
                        .measure = pinned([address, plan] {
                          PointSample sample;
                          NoopClient client(address, plan);
                          const base::Stopwatch watch;
                          sample.checksum = client.keep_in_flight(plan.ops);
                          sample.took(plan.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
                          return sample;
                        })});
    }
  }

  const HashBenchOptions& options_;
  const HashPairs pairs_;
  std::vector<Loaded> targets_;
  std::map<std::pair<HashDraw, std::uint32_t>, RequestList> lists_;
  double lines_per_s_ = 0;
};

}  // namespace

void HashBenchOptions::declare(OptionRows& rows) {
  rows.any_choices(
      "--target", targets, parse_hash_target,
      "embedded, unix, rings-write, rings-send, device, one-sided, one-sided-cold, absl, "
      "boost, memcached; by default those that are there");
  rows.numbers("--batches", batches, {1, 256}, "requests in flight (batches)");
  rows.number("--keys", pairs, {1, 2'000'000'000}, "pairs of 16 and 48 bytes");
  rows.number("--ops", ops, {1, 1'000'000'000}, "requests of a measurement");
  rows.on_or_off("--versions", versions, " (ours only)");
  rows.number("--cache", cache_percent, {0, 100}, "percent of the pairs (device only)");
  rows.number("--probe-seconds", probe_seconds, {0, 60},
              "for each try at the rate of random lines");
  rows.of_points(*this);
}

std::vector<ExperimentRow> HashBenchOptions::experiment_rows() const {
  // Of one target alone: no points if that is not selected.
  using Points = std::vector<MeasuredPoint> (*)(const HashBenchOptions&);
  const auto only = [this](HashTargetKind kind, Points points) {
    return [this, kind, points](Report&) {
      const bool asked = targets.empty() || std::ranges::count(targets, kind) != 0;
      return asked ? points(*this) : std::vector<MeasuredPoint>();
    };
  };
  const auto shared = std::make_shared<std::unique_ptr<HashTargets>>();
  const auto of_all = [this, shared](std::vector<MeasuredPoint> (HashTargets::*points)()) {
    return [this, shared, points](Report& report) {
      if (*shared == nullptr) *shared = std::make_unique<HashTargets>(*this);
      (*shared)->make(report);
      return (**shared.*points)();
    };
  };
  return {{"peak", of_all(&HashTargets::peak)},
          {"latency", of_all(&HashTargets::latency)},
          {"batches", of_all(&HashTargets::batches)},
          {"growth", only(HashTargetKind::embedded, growth_points)},
          {"lines", only(HashTargetKind::embedded, line_points)},
          {"signals", only(HashTargetKind::rings_write, signal_points)}};
}

}  // namespace espalier::bench
