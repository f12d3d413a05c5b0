// SPDX-License-Identifier: Apache-2.0
// Offloads on hash maps: making and opening them, their numbers, and what is done with one item. A
// get is answered in the step that reads it. A write that was released at once, as nearly all are,
// is answered in its first step too.
#include "kinds/hash/offload/hash_offloads.hpp"

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/connection.hpp"
#include "engine/object_call.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/hash/execute.hpp"
#include "kinds/hash/offload/long_pair.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

using hash::HashMap;
using hash::HashThreadLease;

std::shared_ptr<HashMap> hash_of(Call& call) {
  return call.catalog().find<HashMap>(call.map_number());
}

Next fail_no_hash(Call& call) { return call.fail({Code::not_found, 0, call.map_number()}); }

Next create_hash(Call& call, const hash_calls::Create& asked) {
  if (asked.shape.versions == 0 && call.is_durable()) {
    return call.fail({Code::unsupported, 0, 0},
                     "hash maps of a node with a data folder keep versions: without them readers "
                     "see what a crash can lose");
  }
  return obtain_object(call, asked);
}

// --- reading -------------------------------------------------------------------------------------

/// A long value that is on its way.
struct HashReadState {
  std::unique_ptr<LongPairAnswer> answer;
};

// Within the epoch that the reader exposes.
Next begin_long_pair(Call& call, std::shared_ptr<HashMap> map, hash::HashThread& thread,
                     const hash_calls::ItemFound& found) {
  base::EpochPin pin = call.services().store.epoch_pins.pin(thread.slot.exposed());
  rings::ResponseRing& ring = call.connection().ring(call.response_ring());
  HashReadState& state = call.state<HashReadState>();
  state.answer =
      std::make_unique<LongPairAnswer>(std::move(map), std::move(pin), ring, found.value);
  const wire::ReplyMessage<hash_calls::ItemFound> message(found);
  state.answer->header = message.header();
  return state.answer->go_on(call);
}

Next hash_get(Call& call, const hash_calls::Get& asked) {
  if (const auto* const state = call.find_state<HashReadState>()) {
    return state->answer->go_on(call);
  }
  auto map = hash_of(call);
  if (map == nullptr) return fail_no_hash(call);
  const auto lease = HashThreadLease::take(map->store().threads);
  if (!lease) return call.fail(lease.error());
  const hash::KeyHash hashed = map->hash(asked.key);
  const hash::ExposedEpoch exposed(**lease);
  const hash::HashAnswer found = hash::HashReader::get_exposed(*map, asked.key, hashed);
  const hash_calls::ItemFound reply{found.found, found.version, found.read_version, found.value};
  if (!call.response_fits(found.value.size())) return call.writable();
  if (found.value.size() > kLongPairBytes) [[unlikely]] {
    return begin_long_pair(call, std::move(map), **lease, reply);
  }
  return answer(call, reply);
}

// --- writing -------------------------------------------------------------------------------------

// So long a write rests whose record is not durable yet.
constexpr std::uint64_t kReleaseAgainNs = 20'000;

/// A write that was begun. `begun` is empty until a helper has done that.
template <class Request>
struct HashWriteState {
  std::shared_ptr<HashMap> map;
  std::optional<hash::StagedPair> staged;  // goes before the map
  std::optional<hash::Unreleased<typename Request::Reply>> begun;
};

template <class Request>
hash::Unreleased<typename Request::Reply> begin_here(HashMap& map, const Request& asked) {
  const auto lease = HashThreadLease::take(map.store().threads);
  if (!lease) return hash::Unreleased<typename Request::Reply>(std::unexpected(lease.error()));
  return hash_calls::begin(map, **lease, asked);
}

/// The bytes that a write copies or compares.
template <class Request>
std::size_t bytes_to_copy(const Request& asked) {
  std::size_t bytes = 0;
  if constexpr (requires { asked.value; }) bytes += asked.value.size();
  if constexpr (requires { asked.expected; }) bytes += asked.expected.size();
  return bytes;
}

/// Copies a long value piece by piece, and then begins its write.
template <class Request>
JobStep begin_long_write(HashWriteState<Request>& state, const Request& asked,
                         StepContext& context) {
  const auto lease = HashThreadLease::take(state.map->store().threads);
  if (!lease) {
    state.begun.emplace(std::unexpected(lease.error()));
    return JobStep::done;
  }
  if constexpr (requires { asked.value; }) {
    if (asked.value.size() > kLongPairBytes && !state.staged) {
      auto staged = state.map->stage(**lease, asked.key, asked.value);
      if (!staged) {
        state.begun.emplace(std::unexpected(staged.error()));
        return JobStep::done;
      }
      state.staged.emplace(*std::move(staged));
    }
    while (state.staged && !state.staged->copy(kCopiedPieceBytes)) {
      if (context.should_return()) return JobStep::again;
    }
    hash::StagedPair* const staged = state.staged ? &*state.staged : nullptr;
    state.begun.emplace(hash_calls::begin(*state.map, **lease, asked, staged));
  } else {
    state.begun.emplace(hash_calls::begin(*state.map, **lease, asked));
  }
  return JobStep::done;
}

template <class Request>
Next write_hash(Call& call, const Request& asked) {
  using State = HashWriteState<Request>;
  State* state = call.find_state<State>();
  if (state == nullptr) {
    auto map = hash_of(call);
    if (map == nullptr) return fail_no_hash(call);
    if (bytes_to_copy(asked) <= kLongPairBytes) [[likely]] {
      auto begun = begin_here(*map, asked);
      if (map->released(begun.version)) return answer_or_fail(call, begun.answer);
      try {
        state = &call.new_state<State>();
      } catch (const std::bad_alloc&) {  // what is done must be answered
        if (map->wait_for(begun.version)) return answer_or_fail(call, begun.answer);
        return call.fail(catalog::kRecordLost);
      }
      state->begun.emplace(std::move(begun));
    } else {
      state = &call.new_state<State>();
    }
    state->map = std::move(map);
  }
  if (!state->begun) {
    return call.helper_steps_when_possible(
        [state, asked](StepContext& context) { return begin_long_write(*state, asked, context); });
  }
  if (state->map->released(state->begun->version))
    return answer_or_fail(call, state->begun->answer);
  if (state->map->clock().failed()) return call.fail(catalog::kRecordLost);
  // It keeps no place while it waits for a disk.
  return call.is_durable() ? call.at(base::monotonic_ns() + kReleaseAgainNs) : call.again();
}

template <class Request>
constexpr Offload serve_hash_write() {
  return serve<Request, write_hash<Request>>({.waits_for_release = true});
}

const Offload kHashOffloads[] = {
    serve<hash_calls::Create, create_hash>(),      serve_opening<hash_calls::Open>(),
    serve_on<HashMap, hash_calls::Stats>(),        serve<hash_calls::Get, hash_get>(),
    serve_hash_write<hash_calls::Put>(),           serve_hash_write<hash_calls::Insert>(),
    serve_hash_write<hash_calls::Update>(),        serve_hash_write<hash_calls::Erase>(),
    serve_hash_write<hash_calls::CompareAndSet>(), serve_hash_write<hash_calls::Add>(),
};

}  // namespace

std::span<const Offload> hash_offloads() { return kHashOffloads; }

}  // namespace espalier::offload
