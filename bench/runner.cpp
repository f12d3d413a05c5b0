// SPDX-License-Identifier: Apache-2.0
#include "bench/runner.hpp"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/probe.hpp"
#include "bench/workers.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kProgressEveryNs = 200'000'000;
constexpr std::uint64_t kCloudItems = 3;  // what a scan of workload cloud returns at least

std::uint64_t growth(const Resident& before, const Resident& after) {
  return after.bytes > before.bytes ? after.bytes - before.bytes : 0;
}

void check(TargetKind kind, const Answers& answers) {
  if (answers.errors() == 0) return;
  throw std::runtime_error(fmt::format("{}: {} operations failed, the first one: {}", name(kind),
                                       answers.errors(), answers.first_error()));
}

}  // namespace

Runner::Runner(const YcsbOptions& options, std::shared_ptr<const KeySet> keys, Progress& progress)
    : options_(options),
      keys_(std::move(keys)),
      progress_(progress),
      plan_(plan_of(options, *keys_)) {
  progress_.show(fmt::format("making {} requests", plan_.ops + plan_.tail_ops));
  for (std::uint32_t thread = 0; thread < plan_.threads; ++thread) {
    lists_.push_back(make_requests(*keys_, plan_, thread));
  }
}

RunResult Runner::run(TargetKind kind, std::uint32_t repeat) {
  const bool keeps = !mutates(options_.workload, options_.scan_share);
  std::unique_ptr<Loaded>& slot = kept_[kind];
  if (slot == nullptr) slot = load(kind);
  Loaded& loaded = *slot;

  RunResult result;
  result.target = kind;
  result.repeat = repeat;
  result.exact = answers_are_exact(options_);
  result.load_ops_per_s = loaded.load_ops_per_s;
  result.settings = loaded.target->settings();
  measure(*loaded.target, result);

  say(kind, "checking");
  if (!loaded.contents) loaded.contents = loaded.target->contents();
  result.contents = *loaded.contents;
  loaded.target->trim();
  const Resident end = resident();
  if (starts_empty(options_.workload)) loaded.after = end;
  const std::uint64_t loaded_items =
      starts_empty(options_.workload) ? result.contents.items : keys_->size();
  result.bytes_per_item = static_cast<double>(growth(loaded.before, loaded.after)) /
                          static_cast<double>(std::max<std::uint64_t>(1, loaded_items));
  result.bytes_left = growth(loaded.before, end);
  result.pages = loaded.target->pages();
  if (result.pages.empty()) result.pages = page_message(loaded.before, loaded.after);
  if (!keeps) slot.reset();
  progress_.clear();
  return result;
}

std::unique_ptr<Runner::Loaded> Runner::load(TargetKind kind) {
  say(kind, "opening");
  ::malloc_trim(0);  // else the target would grow into what was freed before
  auto loaded = std::make_unique<Loaded>();
  loaded->before = resident();
  loaded->target = make_target(kind, target_options_of(kind, options_, plan_, *keys_));
  if (!starts_empty(options_.workload)) load_keys(kind, *loaded);
  return loaded;
}

// Loads on a thread of its own, as a pinned worker would. The clock runs in the windows only, for
// the requests are made between them.
void Runner::load_keys(TargetKind kind, Loaded& loaded) {
  std::uint64_t spent_ns = 0;
  run_pinned([&] {
    const std::unique_ptr<Session> session = loaded.target->open_session();
    Answers answers;
    std::uint64_t shown_ns = 0;
    RequestList window(kWindow);
    for (std::uint64_t first = 0; first < keys_->size(); first += kWindow) {
      const std::uint64_t count = std::min(kWindow, keys_->size() - first);
      fill_load_window(*keys_, first, count, options_.value_bytes, window);
      const base::Stopwatch watch;
      session->run(window.requests(), answers);
      spent_ns += watch.elapsed_ns();
      check(kind, answers);
      if (base::monotonic_ns() - shown_ns < kProgressEveryNs) continue;
      shown_ns = base::monotonic_ns();
      say(kind, fmt::format("loading, {} %", 100 * first / keys_->size()));
    }
  });
  loaded.target->finish_load();
  loaded.after = resident();
  loaded.load_ops_per_s = static_cast<double>(keys_->size()) * 1e9 /
                          static_cast<double>(std::max<std::uint64_t>(1, spent_ns));
}

void Runner::measure(Target& target, RunResult& result) {
  say(result.target, fmt::format("{} x {}", name(options_.workload), plan_.ops));
  std::vector<std::uint64_t> measured;
  for (std::uint32_t thread = 0; thread < plan_.threads; ++thread) {
    measured.push_back(share_of(plan_.ops, plan_.threads, thread));
  }
  WorkPlan work;
  work.seconds_max = options_.seconds;
  if (options_.workload == Workload::cloud) work.certain_items = kCloudItems;

  result.probe_before_ns = probe_ns(options_.probe_rounds);
  const bool one_thread = options_.threads_of(result.target) < plan_.threads;
  const WorkResult done = one_thread ? run_on_one_thread(target, lists_, measured, work)
                                     : run_workers(target, lists_, measured, work);
  result.probe_after_ns = probe_ns(options_.probe_rounds);

  check(result.target, done.answers);
  result.ops = done.ops;
  result.seconds = done.seconds;
  result.scanned_items = done.scanned_items;
  result.complete = done.complete;
  result.latencies = done.latencies;
  result.result_hash = result.exact ? done.answers.exact() : done.answers.shape();
}

void Runner::say(TargetKind kind, const std::string& what) {
  progress_.show(fmt::format("{}: {}", name(kind), what));
}

}  // namespace espalier::bench
