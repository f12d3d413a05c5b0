// SPDX-License-Identifier: Apache-2.0
// The experiment `batch` of `bench rpc`: requests in batches, by their size. [RAMBDA Fig. 10]
//
// One thread sends requests to one worker of the node. A batch begins when all answers of the one
// before have arrived, and its latency counts from its first request to its last answer, so that
// the gain in throughput stands beside the cost in latency. Every point does as many batches.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "bench/load.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/probe.hpp"
#include "bench/run_rpc.hpp"
#include "bench/ycsb_options.hpp"

namespace espalier::bench {
namespace {

// The paper's pairs have 64 bytes.
constexpr std::uint32_t kKeyBytes = 8;
constexpr std::uint32_t kValueBytes = 56;
constexpr std::uint64_t kWarmUpBatches = 100;

struct BatchSetting {
  NodeTransport transport = NodeTransport::unix_socket;
  std::uint32_t batch = 1;
  std::uint64_t batches = 1;

  [[nodiscard]] std::uint64_t ops() const { return batches * batch; }
};

PointSample measure_noop_batches(const BatchSetting& setting) {
  node::Config config = spinning_node_config();
  prepare(config, setting.transport);
  const auto node = start_own_node(config);
  PointSample sample;
  run_pinned([&] {
    NoopClient client(address_of(*node, setting.transport), {});
    base::Histogram cold;
    const std::uint64_t some = std::min(setting.batches, kWarmUpBatches);
    static_cast<void>(client.in_batches(some * setting.batch, setting.batch, cold));
    const base::Stopwatch watch;
    sample.checksum = client.in_batches(setting.ops(), setting.batch, sample.latencies);
    sample.took(setting.ops(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
  });
  return sample;
}

// Shared by all points with gets: the same map, and a list of requests of which each point takes
// the first ones.
class Gets {
 public:
  Gets(const RpcOptions& options, std::uint64_t ops) {
    ycsb_.workload = Workload::c;
    ycsb_.keys = options.batch_keys;
    ycsb_.key_bytes = kKeyBytes;
    ycsb_.value_bytes = kValueBytes;
    ycsb_.ops = ops;
    ycsb_.seed = options.seed;
  }

  PointSample measure(const BatchSetting& setting) {
    make_questions();
    ycsb_.transport = setting.transport;
    const TargetKind node = TargetKind::node;
    const auto target = make_target(node, target_options_of(node, ycsb_, plan_, *keys_));
    load_keys(*target, node, *keys_, {kValueBytes}, [](std::uint64_t) {});
    const std::span<const Request> all = requests_->requests();
    PointSample sample;
    Answers cold;
    Answers answers;
    run_pinned([&] {
      const auto session = target->open_session_with(setting.batch);
      base::Histogram cold_latencies;
      const std::uint64_t some = std::min(setting.batches, kWarmUpBatches);
      ask(*session, all.first(some * setting.batch), setting.batch, cold, cold_latencies);
      const base::Stopwatch watch;
      ask(*session, all.first(setting.ops()), setting.batch, answers, sample.latencies);
      sample.took(setting.ops(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
    });
    require_no_errors(node, answers);
    sample.checksum = answers.exact();
    return sample;
  }

 private:
  void make_questions() {
    if (requests_ != nullptr) return;
    keys_ = make_keys(ycsb_);
    plan_ = plan_of(ycsb_, *keys_);
    plan_.tail_ops = 0;  // the measured part has clocks
    requests_ = std::make_unique<RequestList>(make_requests(*keys_, plan_, 0));
  }

  static void ask(TargetSession& session, std::span<const Request> requests, std::uint32_t batch,
                  Answers& answers, base::Histogram& latencies) {
    for (std::size_t done = 0; done < requests.size(); done += batch) {
      const base::Stopwatch trip;
      session.run(requests.subspan(done, batch), answers);
      latencies.record(trip.elapsed_ns());
    }
  }

  YcsbOptions ycsb_;
  RequestPlan plan_;
  std::shared_ptr<const KeySet> keys_;
  std::unique_ptr<RequestList> requests_;
};

MeasuredPoint new_batch_point(std::string_view workload, const BatchSetting& setting) {
  return {.target = std::string(name(TargetKind::node)),
          .workload = std::string(workload),
          .parameters = {{"client_threads", 1},
                         {"node_cores", 1},
                         {"transport", name(setting.transport)},
                         {"batch", setting.batch}},
          .threads = 2,
          .answers = fmt::format("{} in batches of {}", workload, setting.batch)};
}

}  // namespace

std::vector<MeasuredPoint> batch_points(const RpcOptions& options) {
  const std::uint32_t largest = std::ranges::max(options.batches);
  const std::uint64_t batches = std::max<std::uint64_t>(1, options.ops / largest);
  const auto gets = std::make_shared<Gets>(options, batches * largest);
  std::vector<MeasuredPoint> points;
  // Compared points are measured in sequence: the transports, then the sizes.
  for (const std::string_view workload : {"noop", "get"}) {
    for (const std::uint32_t batch : options.batches) {
      for (const NodeTransport transport : options.transports) {
        const BatchSetting setting{transport, batch, batches};
        MeasuredPoint point = new_batch_point(workload, setting);
        if (workload == "noop") {
          point.measure = [setting] { return measure_noop_batches(setting); };
        } else {
          point.parameters["keys"] = options.batch_keys;
          point.measure = [setting, gets] { return gets->measure(setting); };
        }
        points.push_back(std::move(point));
      }
    }
  }
  return points;
}

}  // namespace espalier::bench
