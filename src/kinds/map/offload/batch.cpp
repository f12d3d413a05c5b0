// SPDX-License-Identifier: Apache-2.0
// The offload that writes several items conditionally, in one batch.
#include <algorithm>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/batch_entries.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/long_value.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/batch.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/staged_value.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::offload {
namespace {

/// The entries of a batch; views point into the request.
struct Entries {
  std::vector<tree::BatchWrite> writes;
  std::vector<tree::BatchCheck> checks;

  /// Returns false if the payload is not a batch of exactly `count` entries.
  bool read(std::string_view payload, std::uint32_t count) {
    wire::PayloadReader reader(payload);
    for (; count != 0; --count) {
      const auto step = tree::take_step(reader);
      if (!step) return false;
      if (step->kind == wire::BatchKind::check) {
        checks.push_back({step->key, step->condition});
      } else {
        writes.push_back({step->key, step->value, step->kind == wire::BatchKind::erase});
      }
    }
    return reader.complete();
  }
  /// Whether the map's own shard has all their keys.
  [[nodiscard]] bool lie_in(const wire::ShardMap& map) const {
    const auto has = [own = map.bounds(map.own)](const auto& entry) { return own.has(entry.key); };
    return std::ranges::all_of(writes, has) && std::ranges::all_of(checks, has);
  }
};

// A batch is applied in one piece, so a larger one runs on a helper instead of the scheduler's
// thread, where all other requests would wait for it.
constexpr std::uint32_t kEntriesHere = 64;
constexpr std::size_t kBytesHere = std::size_t{64} << 10;
constexpr std::uint64_t kAgainNs = 1'000'000;  // between two attempts without memory

/// Result of the batch once it was applied; before that, what helpers have copied of it.
struct BatchState {
  std::optional<Result<tree::BatchApplied>> done;
  std::uint64_t starving_since_ns = 0;  // time of the first attempt without memory

  std::optional<Entries> entries;
  std::size_t to_stage = 0;               // index of the next write to stage
  std::list<memory::StagedBytes> staged;  // values of writes, which point here
};

// Like other writes it waits a while for memory held by leases, or by readers of expired snapshots.
bool may_try_again(Call& call, BatchState& state) {
  const bool starved = !*state.done && state.done->error().code == Code::out_of_memory;
  if (!starved || !call.services().store.others_hold_memory()) return false;
  const std::uint64_t now = base::monotonic_ns();
  if (state.starving_since_ns == 0) state.starving_since_ns = now;
  return now - state.starving_since_ns < tree::kLeasedTimeoutNs;
}

Result<Entries> read(const tree::MapCore& map, std::string_view payload, std::uint32_t count) {
  Entries entries;
  if (!entries.read(payload, count)) return fail(Code::invalid_argument, count);
  if (map.shard != nullptr && !entries.lie_in(*map.shard)) return fail(Code::wrong_shard);
  return entries;
}

Result<tree::BatchApplied> apply(tree::ThreadContext& context, tree::MapCore& map,
                                 const Entries& entries) {
  return tree::apply_batch(context, map, entries.writes, entries.checks);
}

// Copies values into buffers of their own, piece by piece. False: more is to be done. Without
// memory for a buffer, the batch itself tries again.
bool stage_values(StepContext& step, tree::ThreadContext& context, tree::MapCore& map,
                  BatchState& state) {
  for (; state.to_stage < state.entries->writes.size(); ++state.to_stage) {
    tree::BatchWrite& write = state.entries->writes[state.to_stage];
    if (write.erase || write.value.size() <= map.geometry.inline_value_bytes_max) continue;
    if (write.value.size() > wire::kValueBytesMax) return true;  // refused later
    if (write.staged == nullptr) {
      auto begun = tree::stage_value(context, map, write.value);
      if (!begun) return true;
      write.staged = &state.staged.emplace_back(*std::move(begun));
    }
    while (!write.staged->copy(kCopiedBytes)) {
      if (step.should_return()) return false;
    }
    if (step.should_return()) {
      ++state.to_stage;
      return false;
    }
  }
  return true;
}

// On a helper thread, which has no epoch slot of its own.
JobStep apply_elsewhere(StepContext& step, BatchState& state, tree::MapCore& map,
                        const map_calls::BatchToWrite& asked, std::uint32_t shard) {
  auto slot = map.store.epochs.join();
  if (!slot) {
    state.done = std::unexpected(slot.error());
    return JobStep::done;
  }
  tree::ThreadContext context(map.store, std::move(*slot), shard);
  if (!state.entries) {
    auto entries = read(map, asked.entries, asked.count);
    if (!entries) {
      state.done = std::unexpected(entries.error());
      return JobStep::done;
    }
    state.entries = *std::move(entries);
  }
  if (!stage_values(step, context, map, state)) return JobStep::again;
  state.done = apply(context, map, *state.entries);
  return JobStep::done;
}

Next answer_batch(Call& call, const tree::BatchApplied& done) {
  memory::Reclaimer& reclaimer = call.services().store.reclaimer;
  if (reclaimer.due()) reclaimer.collect(host_map_of(call).calls.cache);
  if (done.failed_check) return call.fail({Code::condition_failed, 0, *done.failed_check});
  return answer(call, map_calls::ItemWritten{done.existed, true, done.version, 0});
}

Next write_batch(Call& call, const map_calls::BatchToWrite& asked) {
  BatchState& state = call.state<BatchState>();
  if (!state.done) {
    // Would be refused below, but only after using several times the request's memory.
    if (asked.count > tree::kBatchWritesMax + tree::kBatchChecksMax) {
      return call.fail({Code::invalid_argument, 0, asked.count});
    }
    HostMap& map = host_map_of(call);
    // Like a writing walk: too many others wait for their records to be durable.
    if (map.recorded && !map.may_write()) return call.after_release();
    if (asked.count > kEntriesHere || asked.entries.size() > kBytesHere) {
      return call.helper_steps_when_possible(
          [&state, &core = *map.core, asked, shard = call.shard()](StepContext& step) {
            return apply_elsewhere(step, state, core, asked, shard);
          });
    }
    const auto entries = read(*map.core, asked.entries, asked.count);
    state.done = entries ? apply(map.calls, *map.core, *entries) : std::unexpected(entries.error());
  }
  if (may_try_again(call, state)) {
    state.done.reset();
    state.entries.reset();
    state.staged.clear();
    state.to_stage = 0;
    return call.at(base::monotonic_ns() + kAgainNs);
  }
  const Result<tree::BatchApplied>& done = *state.done;
  const HostMap& map = host_map_of(call);
  const bool no_room = !done && done.error().code == Code::busy;
  if (no_room && map.recorded && call.may_wait_for_room()) return call.with_room();
  if (!done) return call.fail(done.error());
  // The answer waits for the release of the batch's version. For a map without records, that
  // depends on other writers only, not on the disk.
  if (map.recorded) {
    call.wait_for(done->wait_for);
  } else if (map.released() < done->wait_for) {
    return wait_for_release(call, done->wait_for);
  }
  return answer_batch(call, *done);
}

const Offload kBatchOffloads[] = {serve_map<map_calls::BatchToWrite, write_batch>()};

}  // namespace

std::span<const Offload> batch_offloads() { return kBatchOffloads; }

}  // namespace espalier::offload
