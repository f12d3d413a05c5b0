// SPDX-License-Identifier: Apache-2.0
#include "bench/run_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bench/load.hpp"
#include "bench/point_run.hpp"
#include "bench/workers.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 2> kLatencyExperiments{"closed", "open"};
constexpr double kRateMax = 1e9;

/// What all targets are asked, made when it is first needed: one list for each thread.
class Questions {
 public:
  Questions(const YcsbOptions& base, const KeySet& keys) : base_(base), keys_(keys) {}

  const std::vector<RequestList>& of(Workload workload) {
    const auto [at, first] = lists_.try_emplace(workload);
    if (first) {
      YcsbOptions options = base_;
      options.workload = workload;
      RequestPlan plan = plan_of(options, keys_);
      plan.tail_ops = 0;  // the measured part has clocks
      for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
        at->second.push_back(make_requests(keys_, plan, thread));
      }
    }
    return at->second;
  }

 private:
  const YcsbOptions& base_;
  const KeySet& keys_;
  std::map<Workload, std::vector<RequestList>> lists_;
};

/// A filled target.
class Scene {
 public:
  Scene(TargetKind kind, const YcsbOptions& base, const KeySet& keys, Questions& questions,
        Progress& progress)
      : kind_(kind),
        base_(base),
        questions_(questions),
        target_(make_target(kind, target_options_of(kind, base, plan_of(base, keys), keys))) {
    load_keys(*target_, kind, keys, base_.values(), [&](std::uint64_t percent) {
      progress.show(fmt::format("{}: loading, {} %", name(kind), percent));
    });
    progress.clear();
  }

  /// The next request begins when one has ended, with so many in flight on each thread.
  PointSample closed(Workload workload, std::uint32_t in_flight) {
    WorkPlan plan;
    plan.in_flight = in_flight;
    plan.clocked = true;
    plan.seconds_max = base_.seconds;
    return run(workload, plan);
  }

  /// So many requests are due in a second.
  PointSample open(Workload workload, double per_second) {
    WorkPlan plan;
    plan.in_flight = base_.in_flight;
    plan.per_second = per_second;
    plan.seed = base_.seed;
    PointSample sample =
        base_.seconds > 0
            ? run(workload, plan, static_cast<std::uint64_t>(per_second * base_.seconds))
            : run(workload, plan);
    sample.numbers = {{"offered_per_s", per_second}};
    return sample;
  }

  /// What it does with as many in flight as there may be and no clock. Measured once, and kept.
  double most_per_second(Workload workload) {
    double& most = most_[workload];
    if (most == 0) {
      WorkPlan plan;
      plan.in_flight = base_.in_flight;
      plan.seconds_max = base_.seconds;
      const PointSample sample = run(workload, plan);
      most = static_cast<double>(sample.ops) / sample.seconds;
    }
    return most;
  }

 private:
  // At most `ops_max` requests.
  PointSample run(Workload workload, WorkPlan plan, std::uint64_t ops_max = ~std::uint64_t{0}) {
    const std::vector<RequestList>& lists = questions_.of(workload);
    std::vector<std::uint64_t> measured;
    for (std::uint32_t thread = 0; thread < base_.threads; ++thread) {
      measured.push_back(std::min(share_of(ops_max, base_.threads, thread), lists[thread].size()));
    }
    plan.tail = false;
    const WorkResult done = run_workers(*target_, lists, measured, plan);
    require_no_errors(kind_, done.answers);
    PointSample sample;
    sample.took(done.ops, done.seconds);
    sample.latencies = done.latencies;
    sample.checksum = done.answers.exact();
    sample.complete = done.complete;
    return sample;
  }

  TargetKind kind_;
  const YcsbOptions& base_;
  Questions& questions_;
  std::unique_ptr<Target> target_;
  std::map<Workload, double> most_;
};

using Scenes = std::map<TargetKind, std::unique_ptr<Scene>>;

MeasuredPoint new_latency_point(TargetKind target, Workload workload,
                                const LatencyOptions& options) {
  MeasuredPoint point;
  point.target = name(target);
  point.workload = name(workload);
  if (workload == Workload::scan) point.parameters["scan_items"] = options.base.scan_items;
  point.parameters["keys"] = options.base.keys;
  point.parameters["client_threads"] = options.base.threads;
  const bool remote = target == TargetKind::node;
  if (remote) point.parameters["node_cores"] = options.base.node_cores;
  point.threads = options.base.threads + (remote ? options.base.node_cores : 0);
  return point;
}

// Calls `add(point, scene, workload)` for each workload and target, those in turns.
template <class Add>
void for_each_scene(const Scenes& scenes, const LatencyOptions& options, Add add) {
  for (const Workload workload : options.workloads) {
    for (const TargetKind target : options.base.targets) {
      add(new_latency_point(target, workload, options), *scenes.at(target), workload);
    }
  }
}

std::vector<MeasuredPoint> closed_points(const Scenes& scenes, const LatencyOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t depth : options.depths) {
    for_each_scene(scenes, options, [&](MeasuredPoint point, Scene& scene, Workload workload) {
      point.parameters["in_flight"] = depth;
      point.answers = fmt::format("all of {}", point.workload);
      point.measure = [&scene, workload, depth] { return scene.closed(workload, depth); };
      points.push_back(std::move(point));
    });
  }
  return points;
}

std::vector<MeasuredPoint> open_points(const Scenes& scenes, const LatencyOptions& options) {
  std::vector<MeasuredPoint> points;
  const bool absolute = !options.rates.empty();
  for (const double load : absolute ? options.rates : options.loads) {
    for_each_scene(scenes, options, [&](MeasuredPoint point, Scene& scene, Workload workload) {
      point.parameters[absolute ? "rate" : "load"] = load;
      point.parameters["in_flight_max"] = options.base.in_flight;
      point.answers = absolute ? fmt::format("{} at {}", point.workload, load)
                               : fmt::format("{} at {} of {}", point.workload, load, point.target);
      point.measure = [&scene, workload, load, absolute] {
        return scene.open(workload, absolute ? load : load * scene.most_per_second(workload));
      };
      points.push_back(std::move(point));
    });
  }
  return points;
}

}  // namespace

std::string latency_experiment_names() {
  return fmt::to_string(fmt::join(kLatencyExperiments, ", "));
}

std::optional<std::string> problem_of(const LatencyOptions& options) {
  if (auto problem = problem_of(options.base)) return problem;
  if (auto problem = problem_of_experiments(options.experiments, kLatencyExperiments))
    return problem;
  for (const TargetKind target : options.base.targets) {
    if (target != TargetKind::node && target != TargetKind::embedded) {
      return "--target must be node, embedded or both: others take one call at a time";
    }
  }
  if (options.workloads.empty()) return "--workload names no workload";
  for (const Workload workload : options.workloads) {
    if (mutates(workload, options.base.shares)) {
      return fmt::format("--workload {}: it writes, and all points share one map", name(workload));
    }
  }
  const auto outside = [](const auto& values, auto low, auto high) {
    return !std::ranges::all_of(values, [&](auto v) { return v >= low && v <= high; });
  };
  if (outside(options.depths, 1U, 256U)) return "--depths must be 1 to 256";
  if (outside(options.loads, 0.001, 10.0)) return "--loads must be 0.001 to 10";
  if (outside(options.rates, 1.0, kRateMax)) return "--rates must be 1 to 1000000000";
  if (options.base.in_flight < 2) return "--in-flight must be 2 to 256 here";
  return std::nullopt;
}

int run_latency(const LatencyOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  Progress progress(output);
  const std::shared_ptr<const KeySet> keys = make_keys(options.base);
  Questions questions(options.base, *keys);
  Scenes scenes;
  for (const TargetKind target : options.base.targets) {
    scenes[target] = std::make_unique<Scene>(target, options.base, *keys, questions, progress);
  }
  const PointOptions points{options.base.seed, options.base.repeats, options.base.json,
                            options.base.probe_rounds, options.experiments};
  PointRun run("latency", points, output);
  if (is_chosen(options.experiments, "closed")) run.run("closed", closed_points(scenes, options));
  if (is_chosen(options.experiments, "open")) run.run("open", open_points(scenes, options));
  return run.finish();
}

}  // namespace espalier::bench
