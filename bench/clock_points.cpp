// SPDX-License-Identifier: Apache-2.0
#include "bench/clock_points.hpp"

#include <fmt/core.h>

#include <atomic>
#include <memory>
#include <vector>

#include "bench/load.hpp"
#include "bench/map_session.hpp"
#include "bench/request_list.hpp"
#include "bench/workers.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {
namespace {

/// Its sessions alternate between its maps.
class MapsByTurns final : public Target {
 public:
  MapsByTurns(const ClockSetting& setting, std::uint32_t in_flight)
      : in_flight_(in_flight),
        store_(
            value_or_throw(Store::open({.shared_clock = setting.shared}), "cannot open a store")) {
    for (std::uint32_t i = 0; i < setting.threads; ++i) {
      maps_.push_back(
          value_or_throw(store_.create_map(fmt::format("map{}", i)), "cannot make a map"));
    }
  }
  std::unique_ptr<TargetSession> open_session() override { return open_session_with(in_flight_); }
  std::unique_ptr<TargetSession> open_session_with(std::uint32_t in_flight) override {
    return open_map_session(maps_[next_++ % maps_.size()], in_flight);
  }
  Contents contents() override { return contents_of(maps_.front()); }
  [[nodiscard]] std::string settings() const override { return "a map for each thread"; }

 private:
  const std::uint32_t in_flight_;
  Store store_;
  std::vector<Map> maps_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

PointSample measure_clock(const ClockSetting& setting) {
  YcsbOptions run;
  run.workload = Workload::a;
  run.keys = setting.keys;
  run.threads = setting.threads;
  run.ops = setting.ops;
  run.seed = setting.seed;
  const auto keys = make_keys(run);
  const RequestPlan plan = plan_of(run, *keys);
  MapsByTurns target(setting, run.in_flight);
  std::vector<RequestList> lists;
  std::vector<std::uint64_t> measured;
  for (std::uint32_t i = 0; i < setting.threads; ++i) {
    static_cast<void>(load_keys(target, TargetKind::embedded, *keys, {.bytes = run.value_bytes},
                                [](std::uint64_t) {}));
    lists.push_back(make_requests(*keys, plan, i));
    measured.push_back(share_of(plan.ops, plan.threads, i));
  }
  const WorkResult done = run_workers(target, lists, measured, {});
  require_no_errors(TargetKind::embedded, done.answers);
  PointSample sample;
  sample.took(done.ops, done.seconds);
  sample.ns_per_op *= setting.threads;
  sample.latencies = done.latencies;
  // With requests in flight a get may or may not see a concurrent put.
  sample.checksum = done.answers.shape();
  return sample;
}

}  // namespace espalier::bench
