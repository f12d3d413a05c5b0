// SPDX-License-Identifier: Apache-2.0
#include "bench/run_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/benchmark.hpp"
#include "bench/load.hpp"
#include "bench/workers.hpp"

namespace espalier::bench {
namespace {

/// The requests for all targets, made on first use: one list for each thread.
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

  /// Its rate with as many in flight as allowed and without clocks. Measured once, and kept.
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

/// The targets, filled on first use.
class Scenes {
 public:
  explicit Scenes(const LatencyOptions& options) : options_(options) {}
  void fill(Progress& progress) {
    if (keys_ != nullptr) return;
    keys_ = make_keys(options_);
    questions_ = std::make_unique<Questions>(options_, *keys_);
    for (const TargetKind target : options_.targets) {
      scenes_[target] = std::make_unique<Scene>(target, options_, *keys_, *questions_, progress);
    }
  }
  [[nodiscard]] Scene& of(TargetKind target) const { return *scenes_.at(target); }

 private:
  const LatencyOptions& options_;
  std::shared_ptr<const KeySet> keys_;
  std::unique_ptr<Questions> questions_;
  std::map<TargetKind, std::unique_ptr<Scene>> scenes_;
};

MeasuredPoint new_latency_point(TargetKind target, Workload workload,
                                const LatencyOptions& options) {
  MeasuredPoint point;
  point.target = name(target);
  point.workload = name(workload);
  if (workload == Workload::scan) point.parameters["scan_items"] = options.scan_items;
  point.parameters["keys"] = options.keys;
  point.parameters["client_threads"] = options.threads;
  const bool remote = target == TargetKind::node;
  if (remote) point.parameters["node_cores"] = options.node_cores;
  point.threads = options.threads + (remote ? options.node_cores : 0);
  return point;
}

// Calls `add(point, scene, workload)` for each workload and target, with targets in turn.
template <class Add>
void for_each_scene(const Scenes& scenes, const LatencyOptions& options, Add add) {
  for (const Workload workload : options.workloads) {
    for (const TargetKind target : options.targets) {
      add(new_latency_point(target, workload, options), scenes.of(target), workload);
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
      point.parameters["in_flight_max"] = options.in_flight;
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

void LatencyOptions::declare(OptionRows& rows) {
  rows.choices("--workload", workloads, parse_workload,
               "c, get, scan: what only reads; c,scan by default");
  rows.number("--scan-items", scan_items, {1, 1'000'000}, "items of each scan");
  rows.numbers("--depths", depths, {1, 256}, "requests in flight on each thread (closed)");
  rows.numbers("--loads", loads, {0.001, 10}, "shares of the most that the target does (open)");
  rows.any_numbers("--rates", rates, {1, 1e9}, "requests per second, in place of --loads (open)");
  declare_common(rows);
  for (const TargetKind target : targets) {
    rows.require(target == TargetKind::node || target == TargetKind::embedded,
                 "--target must be node, embedded or both: others take one call at a time");
  }
  for (const Workload each : workloads) {
    rows.require(!mutates(each, shares),
                 fmt::format("--workload {}: it writes, and all points share one map", name(each)));
  }
  rows.require(in_flight >= 2, "--in-flight must be 2 to 256 here");
}

std::vector<ExperimentRow> LatencyOptions::experiment_rows() const {
  const auto scenes = std::make_shared<Scenes>(*this);
  const auto of = [this, scenes](auto* points) {
    return [this, scenes, points](Report& report) {
      scenes->fill(report.progress());
      return points(*scenes, *this);
    };
  };
  return {{"closed", of(closed_points)}, {"open", of(open_points)}};
}

}  // namespace espalier::bench
