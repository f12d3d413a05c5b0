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
void apply(tree::ThreadContext& context, Request& request, RequestState& state) {
  Entries entries;
  if (!entries.read(request.payload(), request.header.argument)) {
    state.result = fail(Code::invalid_argument, request.header.argument);
    return;
  }
  const auto applied =
      tree::apply_batch(context, *request.map->core, entries.writes, entries.checks);
  if (!applied) {
    state.result = std::unexpected(applied.error());
    return;
  }
  state.wait_for = applied->wait_for;
  state.outcome.version = applied->version;
  state.outcome.found = applied->existed;
  state.outcome.applied = !applied->failed_check;
  if (applied->failed_check) {
    state.outcome.error = {Code::condition_failed, 0, *applied->failed_check};
  }
}

// The answer waits for the release of the version under which all was written.
void applied(Engine& engine, Request& request) {
  RequestState& state = *request.state;
  if (!state.result) return engine.fail(request, state.result.error());
  state.going_on = true;
  engine.when_released(request, state.wait_for);
}

void start_batch(Engine& engine, Request& request) {
  // So many would be refused below, after they had taken several times the request's memory.
  if (request.header.argument > tree::kBatchWritesMax + tree::kBatchChecksMax) {
    return engine.fail(request, {Code::invalid_argument, 0, request.header.argument});
  }
  RequestState& state = request.begin_state();
  if (request.header.argument <= kEntriesHere && request.payload().size() <= kBytesHere) {
    apply(request.map->calls, request, state);
    return applied(engine, request);
  }
  engine.hand_over(request, [&request, &state, shard = engine.shard()] {
    tree::StoreCore& store = request.map->core->store;
    auto slot = store.epochs.join();
    if (!slot) {
      state.result = std::unexpected(slot.error());
      return;
    }
    tree::ThreadContext context(store, std::move(*slot), shard);
    apply(context, request, state);
  });
}

void go_on_batch(Engine& engine, Request& request) {
  if (!request.state->going_on) return applied(engine, request);
  const Completion& outcome = request.state->outcome;
  tree::Reclaimer& reclaimer = engine.services().store.reclaimer;
  if (reclaimer.due()) reclaimer.collect(request.map->calls.cache);
  if (!outcome.applied) return engine.fail(request, outcome.error);
  wire::ResponseHeader header{};
  header.version = outcome.version;
  header.flags = wire::kApplied;
  if (outcome.found) header.flags |= wire::kFound;
  engine.answer(request, header);
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
