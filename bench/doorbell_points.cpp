// SPDX-License-Identifier: Apache-2.0
// What `espalier-bench rings --experiment doorbell` measures, and with which parameters.
#include <algorithm>
#include <utility>

#include "bench/doorbell_probe.hpp"
#include "bench/run_rings.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kSlotsOnTheWay = 32;
constexpr std::uint32_t kNeighbours = 16;  // rings whose tails of 4 bytes fill one line

// Cheap operations are done more often, so that threads that begin a little apart, or take turns
// on a core, still run beside each other for most of the time.
constexpr std::uint64_t kWindowTimes = 4;
constexpr std::uint64_t kStreamTimes = 8;
constexpr std::uint64_t kUnreadTimes = 16;

PointSample sample_of(const DoorbellResult& result, std::uint32_t side_by_side = 1) {
  PointSample sample;
  sample.ops = result.ops;
  sample.seconds = result.seconds;
  sample.ns_per_op = result.ns_per_op() * side_by_side;
  sample.latencies = result.latencies;
  sample.checksum = result.checksum;
  sample.complete = result.complete;
  return sample;
}

// The points of one workload, the forms innermost: what is compared runs one right after another.
class Points {
 public:
  explicit Points(const RingsOptions& options) : options_(options) {}

  template <class Measure>
  void add(const char* workload, DoorbellPlan plan, std::uint64_t times, std::uint32_t threads,
           std::string answers, Measure measure) {
    plan.ops = options_.ops * times;
    plan.seed = options_.seed;
    MeasuredPoint point;
    point.workload = workload;
    point.parameters["doorbell"] = name(plan.form.doorbell);
    point.parameters["isa"] = name(plan.form.isa);
    point.parameters["rings"] = plan.rings;
    point.parameters["writers"] = plan.writers;
    point.parameters["window"] = plan.window;
    point.threads = threads;
    point.answers = std::move(answers);
    point.measure = [plan, measure] { return measure(plan); };
    points_.push_back(std::move(point));
  }

  std::vector<MeasuredPoint> take() { return std::move(points_); }

 private:
  const RingsOptions& options_;
  std::vector<MeasuredPoint> points_;
};

void add_one_writer(Points& points, std::uint32_t rings, const char* workload, std::uint32_t window,
                    std::uint64_t times) {
  for (const DoorbellForm& form : doorbell_forms()) {
    DoorbellPlan plan;
    plan.form = form;
    plan.rings = rings;
    plan.window = window;
    points.add(workload, plan, times, 2, workload,
               [](const DoorbellPlan& p) { return sample_of(notify(p)); });
  }
}

void add_empty(Points& points, std::uint32_t rings) {
  for (const DoorbellForm& form : doorbell_forms()) {
    DoorbellPlan plan;
    plan.form = form;
    plan.rings = rings;
    plan.writers = 0;
    plan.window = 0;
    points.add("empty-scan", plan, 1, 1, "each of " + std::to_string(rings),
               [](const DoorbellPlan& p) { return sample_of(scan_empty(p)); });
  }
}

void add_stream(Points& points, std::uint32_t writers) {
  for (const DoorbellForm& form : best_doorbell_forms()) {
    DoorbellPlan plan;
    plan.form = form;
    plan.rings = std::max(kNeighbours, writers);
    plan.writers = writers;
    plan.window = kRingSlots;
    points.add("stream", plan, kStreamTimes, 1 + writers, "streams of " + std::to_string(writers),
               [](const DoorbellPlan& p) { return sample_of(stream(p)); });
  }
}

void add_unread(Points& points, std::uint32_t writers, bool slots) {
  for (const DoorbellForm& form : best_doorbell_forms()) {
    if (!slots && form.doorbell == Doorbell::slots) continue;  // it has nothing to ring
    DoorbellPlan plan;
    plan.form = form;
    plan.rings = kNeighbours;
    plan.writers = writers;
    plan.window = 0;
    // Tails count and bits do not, so bells alone leave different things behind.
    std::string answers = "unread of " + std::to_string(writers);
    if (!slots) answers += std::string(" bells ") + (stride_of(form.doorbell) != 0 ? "t" : "b");
    points.add(
        slots ? "unread-slots" : "unread-bells", plan, kUnreadTimes, writers, answers,
        [slots](const DoorbellPlan& p) { return sample_of(announce_unread(p, slots), p.writers); });
  }
}

}  // namespace

std::vector<MeasuredPoint> doorbell_points(const RingsOptions& options) {
  Points points(options);
  for (const std::uint32_t rings : options.rings) add_empty(points, rings);
  for (const std::uint32_t rings : options.rings) add_one_writer(points, rings, "round-trip", 1, 1);
  for (const std::uint32_t rings : options.rings) {
    add_one_writer(points, rings, "window", kSlotsOnTheWay, kWindowTimes);
  }
  for (const std::uint32_t writers : options.writers) add_stream(points, writers);
  for (const bool slots : {false, true}) {
    for (const std::uint32_t writers : {1u, 2u}) add_unread(points, writers, slots);
  }
  return points.take();
}

}  // namespace espalier::bench
