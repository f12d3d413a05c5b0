// SPDX-License-Identifier: Apache-2.0
#include "tests/support/workload.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"
#include "tests/support/workload_thread.hpp"

namespace espalier::test {
namespace {

// Lets all threads begin together. Spins, for a woken thread comes too late to meet the others.
class Start {
 public:
  explicit Start(std::uint32_t threads) : missing_(threads) {}
  void arrive_and_wait() {
    missing_.fetch_sub(1);
    while (missing_.load() != 0) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint32_t> missing_;
};

// Operations that began while one of another thread, begun earlier, was going on.
std::uint64_t count_overlapping(const History& history) {
  std::vector<const Operation*> order;
  for (const Operation& operation : history.operations) order.push_back(&operation);
  std::sort(order.begin(), order.end(),
            [](const Operation* a, const Operation* b) { return a->invoked < b->invoked; });
  // The latest ends so far, of two different threads.
  const Operation* latest = nullptr;
  const Operation* other = nullptr;
  std::uint64_t overlapping = 0;
  for (const Operation* operation : order) {
    const Operation* rival =
        latest != nullptr && latest->thread != operation->thread ? latest : other;
    if (rival != nullptr && rival->responded > operation->invoked) ++overlapping;
    if (latest == nullptr || operation->responded > latest->responded) {
      if (latest != nullptr && latest->thread != operation->thread) other = latest;
      latest = operation;
    } else if (operation->thread != latest->thread &&
               (other == nullptr || operation->responded > other->responded)) {
      other = operation;
    }
  }
  return overlapping;
}

class Workload {
 public:
  Workload(Map map, const WorkloadOptions& options)
      : map_(map),
        options_(options),
        random_(options.seed),
        keys_(make_keys(options.pattern, options.keys, map.max_key_bytes(), options.seed)) {
    if (!map.options().versions) options_.ranges = options_.snapshots = false;
  }

  std::optional<std::string> run(WorkloadReport& report) {
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      if (auto wrong = run_round(round, report)) {
        return fmt::format("round {} of a workload with seed {}, {} threads and {} pipelines: {}",
                           round, options_.seed, options_.threads, options_.pipelines, *wrong);
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> run_round(std::uint32_t round, WorkloadReport& report) {
    const Version initial_version = map_.stats()->write_version;
    std::vector<Recorder> recorders;
    for (std::uint32_t i = 0; i <= options_.threads + options_.pipelines; ++i) {
      recorders.emplace_back(map_, clock_, i);
    }
    Start start(options_.threads + options_.pipelines);
    run_threads(options_, keys_, {recorders.data(), recorders.size() - 1}, random_,
                std::to_string(round), [&start] { start.arrive_and_wait(); });
    // All threads have ended: what this reads is what the map holds from now on.
    Recorder& last = recorders.back();
    last.scan("", "");
    Contents contents;
    for (const ReadItem& item : last.log().back().items) contents[item.key] = item.value;
    for (const Recorder& recorder : recorders) {
      if (recorder.unexpected()) return recorder.unexpected();
    }
    const History history =
        merge_logs(recorders, std::exchange(contents_, std::move(contents)), initial_version);
    return check(history, report);
  }

  [[nodiscard]] std::optional<std::string> check(const History& history,
                                                 WorkloadReport& report) const {
    if (auto wrong = check_history(history, options_, map_.options().versions, report)) {
      return wrong;
    }
    if (options_.audit) {
      const std::vector<std::string> wrong = map_.audit();
      if (!wrong.empty()) return "audit: " + wrong.front();
    }
    return std::nullopt;
  }

  Map map_;
  WorkloadOptions options_;
  Random random_;
  Clock clock_;
  std::vector<std::string> keys_;
  Contents contents_;  // before the round
};

}  // namespace

std::optional<std::string> check_history(const History& history, const WorkloadOptions& options,
                                         bool versions, WorkloadReport& report) {
  ++report.histories;
  report.operations += history.operations.size();
  report.overlapping += count_overlapping(history);
  for (const Operation& operation : history.operations) report.refused += operation.refused ? 1 : 0;
  if (versions && options.replay) {
    if (auto wrong = replay_versions(history)) return wrong;
  }
  if (options.search) {
    const CheckResult result = check_linearizable(history, options.search_steps_max);
    if (result.answer == Answer::no) return result.why;
    ++(result.answer == Answer::yes ? report.searched : report.unknown);
  }
  return std::nullopt;
}

void run_threads(const WorkloadOptions& options, const std::vector<std::string>& keys,
                 std::span<Recorder> recorders, Random& random, const std::string& value_prefix,
                 const std::function<void()>& arrive_and_wait) {
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < options.threads + options.pipelines; ++i) {
    const std::uint64_t seed = random();
    threads.emplace_back([&, i, seed] {
      WorkloadThread thread(options, keys, recorders[i], seed,
                            fmt::format("{}.{}.", value_prefix, i));
      if (options.on_thread) options.on_thread();
      arrive_and_wait();
      i < options.threads ? thread.call() : thread.submit();
    });
  }
}

std::optional<std::string> run_and_check(Map map, WorkloadOptions options, WorkloadReport* report) {
  WorkloadReport ignored;
  return Workload(map, options).run(report == nullptr ? ignored : *report);
}

}  // namespace espalier::test
