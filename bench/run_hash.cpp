// SPDX-License-Identifier: Apache-2.0
#include "bench/run_hash.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/hash_lines.hpp"
#include "bench/hash_points.hpp"
#include "bench/noop_client.hpp"
#include "bench/probe.hpp"
#include "bench/random_lines.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 6> kHashExperiments{"peak",   "latency", "batches",
                                                           "growth", "lines",   "signals"};
constexpr std::array<std::string_view, 3> kTargetExperiments{"peak", "latency", "batches"};
constexpr std::uint64_t kLinesBytesMin = std::uint64_t{64} << 20;

/// What a point varies.
struct HashSetting {
  HashMix mix;
  std::uint32_t batch = 32;
  bool clocked = false;
};

class HashRun {
 public:
  HashRun(const HashBenchOptions& options, const Output& output)
      : options_(options),
        output_(output),
        pairs_(options.pairs, options.seed),
        run_("hash", options, output) {}

  int run() {
    using Kind = HashTargetKind;
    run_of(Kind::embedded, "growth", [&] { return std::vector{growth_point(options_)}; });
    run_of(Kind::embedded, "lines", [&] { return line_points(options_); });
    run_of(Kind::rings_write, "signals", [&] { return signal_points(options_); });
    if (asks_targets()) make_targets();
    if (is_chosen(options_.experiments, "peak")) peak();
    if (is_chosen(options_.experiments, "latency")) latency();
    if (is_chosen(options_.experiments, "batches")) batches();
    const int finished = run_.finish();
    return missing_ ? 1 : finished;
  }

 private:
  struct Loaded {
    HashTargetKind kind;
    std::unique_ptr<HashTarget> target;
  };

  // What is measured of one target alone.
  template <class Points>
  void run_of(HashTargetKind kind, std::string_view experiment, const Points& points) {
    if (!is_chosen(options_.experiments, experiment)) return;
    const bool asked = options_.targets.empty() || std::ranges::count(options_.targets, kind) != 0;
    run_.run(experiment, asked ? points() : std::vector<MeasuredPoint>());
  }

  [[nodiscard]] bool asks_targets() const {
    return std::ranges::any_of(kTargetExperiments, [&](std::string_view name) {
      return is_chosen(options_.experiments, name);
    });
  }

  // All are there at once, so that a change of the machine meets all of them.
  void make_targets() {
    const bool named = !options_.targets.empty();
    const std::uint64_t cache = options_.pairs * 64 * options_.cache_percent / 100;
    for (const HashTargetKind kind : named ? options_.targets : all_hash_targets()) {
      try {
        auto target = make_hash_target(kind, {options_.pairs, options_.versions, cache});
        run_pinned([&] { fill(*target); });
        targets_.push_back({kind, std::move(target)});
      } catch (const std::runtime_error& error) {
        fmt::print(output_.err, "espalier-bench: target {}: {}\n", name(kind), error.what());
        missing_ = missing_ || named;
      }
    }
    if (targets_.empty()) throw std::runtime_error("no target can run");
  }

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

  // What a get took, where clients read by themselves.
  static void add_traffic(PointSample& sample, const tree::WalkTraffic& before,
                          const tree::WalkTraffic& now, double gets) {
    const auto each = [&](const char* what, std::uint64_t tree::WalkTraffic::* count) {
      if (gets > 0)
        sample.numbers.emplace_back(what, static_cast<double>(now.*count - before.*count) / gets);
    };
    each("waits_per_get", &tree::WalkTraffic::round_trips);
    each("reads_per_get", &tree::WalkTraffic::reads);
    each("read_bytes_per_get", &tree::WalkTraffic::bytes);
    each("by_rings_per_get", &tree::WalkTraffic::by_rings);
  }

  // Each request of a batch has waited for as long as the batch took.
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
    for (const Loaded& loaded : targets_) {
      MeasuredPoint point;
      point.target = name(loaded.kind);
      point.workload = setting.mix.gets_percent == 100 ? "get" : "get-put";
      point.parameters["distribution"] = name(setting.mix.draw);
      point.parameters["gets_percent"] = setting.mix.gets_percent;
      point.parameters["batch"] = setting.batch;
      point.parameters["keys"] = options_.pairs;
      point.parameters["key_bytes"] = kHashKeyBytes;
      point.parameters["value_bytes"] = kHashValueBytes;
      point.parameters["settings"] = loaded.target->settings();
      point.threads = has_server(loaded.kind) ? 2 : 1;
      point.answers = fmt::format("{} {}", name(setting.mix.draw), setting.mix.gets_percent);
      point.measure = [this, &target = *loaded.target, setting] {
        return measure(target, setting);
      };
      points.push_back(std::move(point));
    }
  }
  [[nodiscard]] std::vector<MeasuredPoint> with_lines() {
    MeasuredPoint point;
    point.workload = "random-lines";
    point.parameters["bytes"] = std::max(options_.pairs * 80, kLinesBytesMin);
    point.answers = "lines";
    point.measure = [this] {
      PointSample sample;
      measure_lines(sample);
      return sample;
    };
    std::vector<MeasuredPoint> points;
    points.push_back(std::move(point));
    return points;
  }

  /// By the rings of our own nodes, one for each of them.
  void add_noops(std::vector<MeasuredPoint>& points, std::uint32_t in_flight) {
    for (const Loaded& loaded : targets_) {
      const std::string address = loaded.target->node_address();
      if (address.empty()) continue;
      MeasuredPoint point;
      point.target = name(loaded.kind);
      point.workload = "noop";
      point.parameters["batch"] = in_flight;
      point.threads = 2;
      point.answers = "noops";
      const NoopPlan plan{.in_flight = in_flight, .ops = options_.ops};
      point.measure = [address, plan] {
        PointSample sample;
        run_pinned([&] {
          NoopClient client(address, plan);
          const base::Stopwatch watch;
          sample.checksum = client.keep_in_flight(plan.ops);
          sample.took(plan.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
        });
        return sample;
      };
      points.push_back(std::move(point));
    }
  }

  void peak() {
    constexpr std::uint32_t kInFlight = 32;
    auto points = with_lines();
    add_noops(points, kInFlight);
    for (const HashDraw draw : {HashDraw::uniform, HashDraw::zipfian}) {
      for (const std::uint32_t gets : {100u, 50u}) {
        add_points(points, {{draw, gets}, kInFlight, false});
      }
    }
    run_.run("peak", points);
  }
  void latency() {
    auto points = with_lines();
    for (const std::uint32_t gets : {100u, 50u}) {
      for (const std::uint32_t batch : {1u, 32u}) {
        add_points(points, {{HashDraw::zipfian, gets}, batch, true});
      }
    }
    run_.run("latency", points);
  }
  void batches() {
    auto points = with_lines();
    for (const std::uint32_t batch : options_.batches) {
      add_points(points, {{HashDraw::zipfian, 100}, batch, false});
    }
    run_.run("batches", points);
  }

  const HashBenchOptions& options_;
  const Output& output_;
  const HashPairs pairs_;
  PointRun run_;
  std::vector<Loaded> targets_;
  std::map<std::pair<HashDraw, std::uint32_t>, RequestList> lists_;
  double lines_per_s_ = 0;
  bool missing_ = false;  // a target that was named
};

}  // namespace

std::string hash_experiment_names() {
  std::string names;
  for (const std::string_view one : kHashExperiments) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one);
  }
  return names;
}

std::optional<std::string> problem_of(const HashBenchOptions& options) {
  if (const auto problem = problem_of_experiments(options.experiments, kHashExperiments)) {
    return problem;
  }
  if (options.pairs < 1 || options.pairs > 2'000'000'000) return "--keys must be 1 to 2000000000";
  if (options.ops < 1 || options.ops > 1'000'000'000) return "--ops must be 1 to 1000000000";
  const auto outside = [](std::uint32_t batch) { return batch < 1 || batch > 256; };
  if (options.batches.empty() || std::ranges::any_of(options.batches, outside)) {
    return "--batches must be 1 to 256";
  }
  if (options.cache_percent > 100) return "--cache must be 0 to 100";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeat must be 1 to 1000";
  if (!(options.probe_seconds >= 0) || options.probe_seconds > 60) {
    return "--probe-seconds must be 0 to 60";
  }
  return std::nullopt;
}

int run_hash(const HashBenchOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  return HashRun(options, output).run();
}

}  // namespace espalier::bench
