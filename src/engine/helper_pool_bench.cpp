// SPDX-License-Identifier: Apache-2.0
// What helpers cost threads that answer point requests on the same cores, by their weight.
//
//   helper_pool_bench [busy threads] [rounds] [milliseconds]
//
// Busy threads do pieces of work of some microseconds in sequence, and time each. With each
// hundredth they submit a job, and time that call and the job: a helper that is preempted while it
// holds the pool's lock delays both. Two helpers have endless jobs with steps of 200 us. One JSON
// line for each way and round, the ways interleaved; "idle": the helpers have no other jobs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/random.hpp"
#include "engine/helper_pool.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kStepNs = 200'000;

class Spin final : public HelperJob {
 public:
  JobStep step(StepContext&) override {
    const std::uint64_t until = base::monotonic_ns() + kStepNs;
    while (base::monotonic_ns() < until) {
    }
    return JobStep::again;
  }
};

/// Of jobs, from submission to their end; recorded by helpers.
struct JobTimes {
  std::mutex mutex;
  base::Histogram ns;
};

struct BusyResult {
  base::Histogram piece_ns;
  base::Histogram submit_ns;
  std::uint64_t hash = 0;
};

BusyResult be_busy(HelperPool& pool, ClientId client, JobTimes& times, std::uint64_t until_ns) {
  BusyResult result;
  std::uint64_t at = base::monotonic_ns();
  for (std::uint64_t piece = 0; at < until_ns; ++piece) {
    for (int i = 0; i < 1000; ++i) result.hash = base::mix64(result.hash + piece);
    if (piece % 100 == 0) {
      const std::uint64_t begin = base::monotonic_ns();
      static_cast<void>(pool.run(
          {.client = client}, [] {},
          [&times, begin](JobEnd end) {
            const std::lock_guard lock(times.mutex);
            if (end == JobEnd::done) times.ns.record(base::monotonic_ns() - begin);
          }));
      result.submit_ns.record(base::monotonic_ns() - begin);
    }
    const std::uint64_t now = base::monotonic_ns();
    result.piece_ns.record(now - at);
    at = now;
  }
  return result;
}

struct Mode {
  std::string_view name;
  int nice = 0;
  bool batch = false;
};

void measure(const Mode& mode, bool loaded, unsigned busy_threads, std::uint64_t milliseconds) {
  JobTimes times;
  HelperPool pool({.threads = 2, .nice = mode.nice, .batch = mode.batch});
  const ClientId heavy = pool.add_client();
  const ClientId light = pool.add_client();
  for (int i = 0; loaded && i < 4; ++i) {
    static_cast<void>(pool.submit(std::make_unique<Spin>(), {.client = heavy}));
  }
  std::vector<BusyResult> results(busy_threads);
  std::vector<std::thread> threads;
  const std::uint64_t until = base::monotonic_ns() + milliseconds * 1'000'000;
  for (BusyResult& result : results) {
    threads.emplace_back([&] { result = be_busy(pool, light, times, until); });
  }
  for (std::thread& thread : threads) thread.join();
  BusyResult all;
  for (const BusyResult& result : results) {
    all.piece_ns.merge(result.piece_ns);
    all.submit_ns.merge(result.submit_ns);
    all.hash ^= result.hash;
  }
  const double seconds = static_cast<double>(milliseconds) / 1e3;
  const HelperNumbers numbers = pool.numbers();
  const std::lock_guard lock(times.mutex);
  std::printf(
      "{\"bench\":\"helper_pool\",\"target\":\"%.*s\",\"workload\":\"%s\",\"threads\":%u,\"ops_per_"
      "s\":%.0f,"
      "\"ns_p50\":%llu,\"ns_p99\":%llu,\"ns_p999\":%llu,\"ns_max\":%llu,\"submit_ns_p50\":%llu,"
      "\"submit_ns_p99\":%llu,\"submit_ns_max\":%llu,\"job_ns_p50\":%llu,\"job_ns_p99\":%llu,"
      "\"helper_steps\":%llu,\"refused\":%llu,"
      "\"result_hash\":%llu}\n",
      static_cast<int>(mode.name.size()), mode.name.data(), loaded ? "loaded" : "idle",
      busy_threads, static_cast<double>(all.piece_ns.count()) / seconds,
      static_cast<unsigned long long>(all.piece_ns.percentile(0.5)),
      static_cast<unsigned long long>(all.piece_ns.percentile(0.99)),
      static_cast<unsigned long long>(all.piece_ns.percentile(0.999)),
      static_cast<unsigned long long>(all.piece_ns.max()),
      static_cast<unsigned long long>(all.submit_ns.percentile(0.5)),
      static_cast<unsigned long long>(all.submit_ns.percentile(0.99)),
      static_cast<unsigned long long>(all.submit_ns.max()),
      static_cast<unsigned long long>(times.ns.percentile(0.5)),
      static_cast<unsigned long long>(times.ns.percentile(0.99)),
      static_cast<unsigned long long>(numbers.steps),
      static_cast<unsigned long long>(numbers.refused), static_cast<unsigned long long>(all.hash));
  std::fflush(stdout);
}

}  // namespace
}  // namespace espalier::offload

int main(int count, char** arguments) {
  using namespace espalier::offload;
  const auto number = [&](int at, unsigned long otherwise) {
    return count > at ? std::strtoul(arguments[at], nullptr, 10) : otherwise;
  };
  const unsigned long rounds = number(2, 5);
  for (unsigned long round = 0; round < rounds; ++round) {
    for (const bool loaded : {false, true}) {
      for (const Mode& mode : {Mode{"normal"}, Mode{"batch", 0, true}, Mode{"nice5", 5},
                               Mode{"batch5", 5, true}, Mode{"nice10", 10}, Mode{"nice19", 19}}) {
        measure(mode, loaded, static_cast<unsigned>(number(1, 2)), number(3, 1000));
      }
    }
  }
}
