// SPDX-License-Identifier: Apache-2.0
#include "bench/runner.hpp"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bench/load.hpp"
#include "bench/probe.hpp"
#include "bench/workers.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kCloudItems = 3;  // what a scan of workload cloud returns at least

std::uint64_t resident_growth(const Resident& before, const Resident& after) {
  return after.bytes > before.bytes ? after.bytes - before.bytes : 0;
}

// Memory of the process that keeps the items.
Resident resident_of(Target& target) {
  const auto elsewhere = target.resident_elsewhere();
  return elsewhere ? *elsewhere : resident();
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
  const bool keeps = !mutates(options_.workload, options_.shares);
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
  const Resident end = resident_of(*loaded.target);
  if (starts_empty(options_.workload)) loaded.after = end;
  const std::uint64_t loaded_items =
      starts_empty(options_.workload) ? result.contents.items : keys_->size();
  result.bytes_per_item = static_cast<double>(resident_growth(loaded.before, loaded.after)) /
                          static_cast<double>(std::max<std::uint64_t>(1, loaded_items));
  result.bytes_left = resident_growth(loaded.before, end);
  result.pages = loaded.target->pages();
  if (result.pages.empty()) result.pages = page_message(loaded.before, loaded.after);
  if (!keeps) slot.reset();
  progress_.clear();
  return result;
}

std::unique_ptr<Runner::Loaded> Runner::load(TargetKind kind) {
  say(kind, "opening");
  ::malloc_trim(0);  // else the target would reuse memory that was freed before
  auto loaded = std::make_unique<Loaded>();
  loaded->before = resident();
  loaded->target = make_target(kind, target_options_of(kind, options_, plan_, *keys_));
  // Of another process: what the empty target added to it.
  if (const auto elsewhere = loaded->target->resident_elsewhere()) loaded->before = *elsewhere;
  if (!starts_empty(options_.workload)) load_keys(kind, *loaded);
  return loaded;
}

void Runner::load_keys(TargetKind kind, Loaded& loaded) {
  loaded.load_ops_per_s = bench::load_keys(
      *loaded.target, kind, *keys_, options_.values(),
      [&](std::uint64_t percent) { say(kind, fmt::format("loading, {} %", percent)); });
  loaded.after = resident_of(*loaded.target);
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
  work.fixed_values = !options_.draw_values;

  const auto traffic = target.traffic();
  result.probe_before_ns = probe_ns(options_.probe_rounds);
  const bool one_thread = options_.threads_of(result.target) < plan_.threads;
  const WorkResult done = one_thread ? run_on_one_thread(target, lists_, measured, work)
                                     : run_workers(target, lists_, measured, work);
  result.probe_after_ns = probe_ns(options_.probe_rounds);

  require_no_errors(result.target, done.answers);
  result.ops = done.ops;
  result.all_ops = done.ops + done.latencies.count();
  result.feed_news = target.end_subscribers();
  if (traffic) {
    result.traffic = *target.traffic() - *traffic;
  }
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
