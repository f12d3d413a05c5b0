// SPDX-License-Identifier: Apache-2.0
// The offload that writes several items at once, on conditions.
#include <utility>
#include <vector>

#include "offload/engine.hpp"
#include "tree/write/batch.hpp"

namespace espalier::offload {
namespace {

/// The entries of a batch, as they lie in the request.
struct Entries {
  std::vector<tree::BatchWrite> writes;
  std::vector<tree::BatchCheck> checks;

  /// Returns false if the payload is no batch of so many entries.
  bool read(std::string_view payload, std::uint32_t count) {
    PayloadReader reader(payload);
    for (; count != 0 && reader.good(); --count) {
      const auto entry = reader.take<wire::BatchEntry>();
      const std::string_view key = reader.text(entry.key_bytes);
      const std::string_view value = reader.text(entry.value_bytes);
      if (!reader.good() || entry.reserved != 0) return false;
      switch (static_cast<wire::BatchKind>(entry.kind)) {
        case wire::BatchKind::if_absent:
        case wire::BatchKind::if_present:
        case wire::BatchKind::if_value:
        case wire::BatchKind::if_version:
          checks.push_back(
              {key, value, entry.version, static_cast<tree::WriteCondition::Kind>(entry.kind)});
          break;
        case wire::BatchKind::put: writes.push_back({key, value, false}); break;
        case wire::BatchKind::erase: writes.push_back({key, {}, true}); break;
        default: return false;
      }
    }
    return reader.complete();
  }
};

// A batch is written in one piece, so one of more entries or bytes than these is not for the
// engine's thread, on which everybody waits for it.
constexpr std::uint32_t kEntriesHere = 64;
constexpr std::size_t kBytesHere = std::size_t{64} << 10;

// Keeps what is to be answered, or an error.
void apply(tree::Worker& worker, InFlight& r, Steps& steps) {
  Entries entries;
  if (!entries.read(r.payload(), r.header.argument)) {
    steps.result = fail(Code::invalid_argument, r.header.argument);
    return;
  }
  const auto applied = tree::apply_batch(worker, *r.map->core, entries.writes, entries.checks);
  if (!applied) {
    steps.result = std::unexpected(applied.error());
    return;
  }
  steps.wait_for = applied->wait_for;
  steps.outcome.version = applied->version;
  steps.outcome.found = applied->existed;
  steps.outcome.applied = !applied->failed_check;
  if (applied->failed_check) {
    steps.outcome.error = {Code::condition_failed, 0, *applied->failed_check};
  }
}

// The answer waits for the release of the version under which all was written.
void applied(Engine& engine, InFlight& r) {
  Steps& steps = *r.steps;
  if (!steps.result) return engine.fail(r, steps.result.error());
  steps.going_on = true;
  engine.when_released(r, steps.wait_for);
}

void start_batch(Engine& engine, InFlight& r) {
  // So many would be refused below, after they had taken several times the request's memory.
  if (r.header.argument > tree::kBatchWritesMax + tree::kBatchChecksMax) {
    return engine.fail(r, {Code::invalid_argument, 0, r.header.argument});
  }
  Steps& steps = r.begin_steps();
  if (r.header.argument <= kEntriesHere && r.payload().size() <= kBytesHere) {
    apply(r.map->calls, r, steps);
    return applied(engine, r);
  }
  engine.hand_over(r, [&r, &steps, shard = engine.shard()] {
    tree::StoreCore& store = r.map->core->store;
    auto slot = store.epochs.join();
    if (!slot) {
      steps.result = std::unexpected(slot.error());
      return;
    }
    tree::Worker worker(store, std::move(*slot), shard);
    apply(worker, r, steps);
  });
}

void go_on_batch(Engine& engine, InFlight& r) {
  if (!r.steps->going_on) return applied(engine, r);
  const Completion& outcome = r.steps->outcome;
  tree::Reclaimer& reclaimer = engine.services().store.reclaimer;
  if (reclaimer.due()) reclaimer.collect(r.map->calls.cache);
  if (!outcome.applied) return engine.fail(r, outcome.error);
  wire::ResponseHeader header{};
  header.version = outcome.version;
  header.flags = wire::kApplied;
  if (outcome.found) header.flags |= wire::kFound;
  engine.answer(r, header);
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::write_batch,
     .name = "write_batch",
     .format = "argument: how many entries; payload: each a BatchEntry, its key, its value",
     .summary = "writes all under one version if all conditions hold; else condition_failed, with "
                "the number of the first that does not",
     .limits = {.map = true, .payload_bytes_max = wire::kMessageBytesMax},
     .start = start_batch,
     .resume = go_on_batch},
};

}  // namespace

std::span<const Offload> batch_offloads() { return kOffloads; }

}  // namespace espalier::offload
