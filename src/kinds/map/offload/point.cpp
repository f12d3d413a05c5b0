// SPDX-License-Identifier: Apache-2.0
// Offloads on one key: get, put, insert, update, erase.
#include <optional>
#include <string_view>

#include "engine/typed_call.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/offload/long_value.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/reads.hpp"
#include "kinds/map/offload/walk_answer.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "memory/staged_bytes.hpp"
#include "wire/item_limits.hpp"

namespace espalier::offload {
namespace {

// A value that does not fit the ring yet is read again once it does.
Next got(Call& call, const Completion& found) {
  if (!found.ok) return call.fail(found.error);
  if (!call.response_fits(found.value.size())) return call.writable();
  if (found.value.size() > kLongValueBytes) [[unlikely]] {
    if (const auto begun = begin_long(call, header_of(found), {}, found.value)) return *begun;
  }
  return call.answer(header_of(found), {wire::in_register(found.value)});
}

Next get(Call& call, const map_calls::Get& asked) {
  if (const ItemReadState* const state = call.find_state<ItemReadState>(); state && state->answer) {
    return go_on(call, *state->answer);
  }
  new_walk(call, Op::get);
  if (!asked.snapshot) [[likely]]
    return begin_walk(call);
  ItemReadState& state = call.state<ItemReadState>();
  const ReadSource source = read_source(call, asked.snapshot, state.held);
  if (!source.found) return call.fail({Code::not_found, 0, 0});
  state.held = source.snapshot;
  return begin_walk(call, source.held());
}

/// A long value that is copied before the walk that writes it.
struct WriteState {
  std::optional<memory::StagedBytes> staged;
};

Next write_long(Call& call, Op op, std::string_view value) {
  if (!call.has_state<WriteState>()) call.state<WriteState>().staged = map_of(call).stage(value);
  std::optional<memory::StagedBytes>& staged = call.state<WriteState>().staged;
  if (staged && !staged->is_whole()) return copy_staged(call, *staged);
  new_walk(call, op).value = value;
  return staged ? begin_walk(call, *staged) : begin_walk(call);
}

template <Op kOp>
Next write(Call& call, std::string_view value) {
  if (value.size() > kLongValueBytes && value.size() <= wire::kValueBytesMax) [[unlikely]]
    return write_long(call, kOp, value);
  new_walk(call, kOp).value = value;
  return begin_walk(call);
}

Next put(Call& call, const map_calls::Put& asked) { return write<Op::put>(call, asked.value); }
Next insert(Call& call, const map_calls::Insert& asked) {
  return write<Op::insert>(call, asked.value);
}
Next update(Call& call, const map_calls::Update& asked) {
  return write<Op::update>(call, asked.value);
}
Next erase(Call& call, const map_calls::Erase&) { return write<Op::erase>(call, {}); }

template <class Asked, Next (*kStep)(Call&, const Asked&)>
constexpr Offload serve_write() {
  return serve_walk<Asked, kStep, answer_walk>();
}

const Offload kPointOffloads[] = {
    serve_walk<map_calls::Get, get, got>({.sampled = count_leaf}),
    serve_write<map_calls::Put, put>(),
    serve_write<map_calls::Insert, insert>(),
    serve_write<map_calls::Update, update>(),
    serve_write<map_calls::Erase, erase>(),
};

}  // namespace

std::span<const Offload> point_offloads() { return kPointOffloads; }

}  // namespace espalier::offload
