// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/embedded_map.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/exposed_epoch.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/unflushed_age.hpp"
#include "kinds/map/client/answer.hpp"
#include "kinds/map/client/parts_of_scan.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/batch.hpp"
#include "kinds/map/write/estimate.hpp"
#include "kinds/map/write/map_stats.hpp"
#include "kinds/map/write/range_borders.hpp"

namespace espalier::client {
namespace {

// Releases, at scope exit, what an inline read has pinned.
class LetGo {
 public:
  explicit LetGo(tree::MapExecutor& executor) : executor_(executor) {}
  ~LetGo() { executor_.let_go(); }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  tree::MapExecutor& executor_;
};

struct SessionReturn {
  CallContextPool* sessions;
  void operator()(CallContext* session) const { sessions->release(session); }
};

Result<std::uint64_t> run_count(Runner& runner, std::string_view low, std::string_view high) {
  const auto request = scan_request(low, high, {});
  if (!request) return std::unexpected(request.error());
  return run_scan(runner, *request, [](std::span<const Item>) { return true; });
}

/// Returns false if the version is never released, because its record cannot become durable.
bool await_release(memory::VersionClock& clock, std::uint64_t version) {
  for (;;) {
    const std::uint64_t seen = clock.seen_durable();
    if (clock.released_now() >= version) return true;
    if (clock.failed()) return clock.released_now() >= version;
    clock.pause(seen);
  }
}

}  // namespace

bool some_write(std::span<const Request> requests) {
  return std::ranges::any_of(
      requests, [](const Request& each) { return each.op >= Op::put && each.op <= Op::erase; });
}

Result<void> EmbeddedMap::walk(const tree::WalkRequest& request) {
  if (core_->is_async() && some_write({request.request, 1})) catalog::wait_for_disk(*core_);
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  (*session)->executor(*core_).run(request);
  return {};
}

Result<void> EmbeddedMap::run(const Request& request, Handler& handler) {
  return walk({&request, &handler, nullptr, {}, {}});
}

Result<bool> EmbeddedMap::get(std::string_view key, std::string& value, Version& version) {
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  tree::MapExecutor& executor = (*session)->executor(*core_);
  Completion answer;
  if (!executor.read_one(key, answer)) {
    return fail(Code::key_too_long, core_->geometry.key_bytes_max);
  }
  const LetGo let_go(executor);
  if (answer.found) {
    value = answer.value;
    version = answer.version;
  }
  return answer.found;
}

Result<Written> EmbeddedMap::write_if(Op op, std::string_view key, std::string_view value,
                                      const Condition& condition) {
  Request request;
  request.op = op;
  request.key = key;
  request.value = value;
  Answer answer;
  if (const auto ran = walk({&request, &answer, nullptr, {}, condition}); !ran) {
    return std::unexpected(ran.error());
  }
  const Completion& done = answer.completion;
  if (!done.ok) return std::unexpected(done.error);
  return Written{done.applied ? done.version : 0, done.applied, done.found};
}

Result<std::uint64_t> EmbeddedMap::add(std::string_view key, std::uint64_t amount) {
  tree::Addition addition{.amount = amount};
  Request request;
  request.op = Op::put;
  request.key = key;
  request.value = base::bytes_of(addition.sum);
  Answer answer;
  const auto ran = walk({.request = &request, .handler = &answer, .addition = &addition});
  if (!ran) return std::unexpected(ran.error());
  if (!answer.completion.ok) return std::unexpected(answer.completion.error);
  return addition.sum;
}

Result<Written> EmbeddedMap::write(const WriteBatch& batch) {
  catalog::wait_for_disk(*core_);
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  tree::ThreadContext& thread = (*session)->thread;
  std::vector<tree::BatchWrite> writes;
  writes.reserve(batch.writes().size());
  for (const WriteBatch::Write& write : batch.writes()) {
    writes.push_back({write.key, write.value, write.erase});
  }
  std::vector<tree::BatchCheck> checks;
  checks.reserve(batch.conditions().size());
  for (const WriteBatch::Check& check : batch.conditions()) {
    checks.push_back({check.key, check.condition()});
  }
  const auto applied = tree::apply_batch(thread, *core_, writes, checks);
  if (!applied) return std::unexpected(applied.error());
  const bool at_once = tree::planted(tree::Bug::acknowledge_before_release);
  const bool released = at_once || await_release(core_->clock, applied->wait_for);
  memory::Reclaimer& reclaimer = core_->store.reclaimer;
  if (reclaimer.due()) reclaimer.collect(thread.cache);
  if (!released) return std::unexpected(catalog::kRecordLost);
  if (applied->failed_check) return fail(Code::condition_failed, *applied->failed_check);
  return Written{applied->version, true, applied->existed};
}

// A scan of few items by the fast path; false: not applicable, and nothing was done.
Result<bool> EmbeddedMap::scan_few(const Request& request, const ItemSink& sink) {
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  tree::MapExecutor& executor = (*session)->executor(*core_);
  const Item* const items = executor.scan_few(request.key, request.limit);
  if (items == nullptr) return false;
  const LetGo let_go(executor);
  // As everywhere, a sink that throws ends the process.
  [&]() noexcept { sink({items, request.limit}); }();
  return true;
}

Result<std::uint64_t> EmbeddedMap::scan(std::string_view low, std::string_view high,
                                        const ItemSink& sink, ScanOptions options) {
  const auto request = scan_request(low, high, options);
  if (!request) return std::unexpected(request.error());
  const bool plain = request->op == Op::scan && high.empty() && options.parts < 2;
  if (plain && request->limit != 0 && request->limit <= tree::LeafScan::kFew) {
    const auto done = scan_few(*request, sink);
    if (!done) return std::unexpected(done.error());
    if (*done) return request->limit;
  }
  return run_scan(*this, *request, sink, options.parts);
}

Result<void> EmbeddedMap::run_parts(const Request& scan, std::uint32_t parts, Handler& handler) {
  if (!core_->options.versions) return walk_parts(scan, parts, handler, nullptr);
  const auto held = snapshot();
  if (!held) return std::unexpected(held.error());
  return (*held)->run_parts(scan, parts, handler);
}

Result<void> EmbeddedMap::walk_parts(const Request& scan, std::uint32_t parts, Handler& handler,
                                     const memory::HeldVersion* held) {
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  tree::ThreadContext& thread = (*session)->thread;
  PartsOfScan cut(scan, tree::range_borders(thread, *core_, scan.key, scan.high, parts), handler);
  const bool interleave_warm = core_->far_interior();
  tree::MapExecutor executor(
      thread, *core_, cut.size(), [&](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(core_->base, queue, cut.size() > 1, &interleave_warm);
      });
  client::walk_parts(
      cut,
      [&](const Request& part) { executor.submit({&part, &cut, version_of(part, held), {}, {}}); },
      [&] { executor.poll(); });
  cut.finish();
  return {};
}

Result<std::uint64_t> EmbeddedMap::count(std::string_view low, std::string_view high) {
  return run_count(*this, low, high);
}

Result<std::uint64_t> EmbeddedSnapshot::count(std::string_view low, std::string_view high) {
  return run_count(*this, low, high);
}

Result<std::uint64_t> EmbeddedMap::count_estimate(std::string_view low, std::string_view high) {
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  return tree::estimate_range((*session)->thread, *core_, low, high);
}

Result<std::unique_ptr<SnapshotImpl>> EmbeddedMap::snapshot() {
  if (!core_->options.versions) return fail(Code::unsupported);
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  return std::make_unique<EmbeddedSnapshot>(*this, (*session)->thread.slot);
}

EmbeddedSnapshot::EmbeddedSnapshot(EmbeddedMap& map, base::EpochSlot& slot) : map_(map) {
  std::string owner = "process " + std::to_string(::getpid());
  const base::ExposedEpoch exposed(slot);
  held_ =
      map.core().store.reclaimer.hold(map.core(), map.core().clock.released(), std::move(owner));
}

Result<std::unique_ptr<PipelineImpl>> EmbeddedMap::open_pipeline(std::uint32_t in_flight) {
  const auto session = sessions_->acquire();
  if (!session) return std::unexpected(session.error());
  // Releases the session also if construction fails.
  std::unique_ptr<CallContext, SessionReturn> own(*session, SessionReturn{sessions_.get()});
  auto pipeline = std::make_unique<EmbeddedPipeline>(*core_, sessions_, *session, in_flight);
  own.release();
  return pipeline;
}

Result<MapStats> EmbeddedMap::stats() {
  const auto session = SessionLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  return tree::stats_of(*core_);
}

// The memory of one map can only be checked together with that of all maps.
Result<std::vector<std::string>> EmbeddedMap::audit() { return tree::audit_store(core_->store); }

}  // namespace espalier::client
