// SPDX-License-Identifier: Apache-2.0
// Offloads on one key: get, put, insert, update, erase; and the no-op, by which rings are measured.
#include <optional>
#include <utility>

#include "offload/long_value.hpp"
#include "offload/reads.hpp"
#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

Error bad_payload(std::string_view payload) {
  return {Code::invalid_argument, 0, static_cast<std::uint32_t>(payload.size())};
}

Next noop(Call& call) { return call.answer({}); }

// What does not fit yet is read again when it does.
Next got(Call& call, const Completion& found) {
  if (!found.ok) return call.fail(found.error);
  if (!call.response_fits(found.value.size())) return call.writable();
  if (found.value.size() > kLongValueBytes) [[unlikely]] {
    if (const auto begun = begin_long(call, header_of(found), {}, found.value)) return *begun;
  }
  return call.answer(header_of(found), {found.value});
}

Next get(Call& call) {
  if (const Completion* const found = call.walked()) return got(call, *found);
  if (const ItemReadState* const state = call.find_state<ItemReadState>(); state && state->answer) {
    return go_on(call, *state->answer);
  }
  call.new_walk(Op::get);
  if (!call.at_snapshot()) [[likely]] {
    if (!call.payload().empty()) return call.fail(bad_payload(call.payload()));
    return call.walk();
  }
  ItemReadState& state = call.state<ItemReadState>();
  const ReadSource source = read_source(call, state.held);
  if (!source.found) return call.fail({Code::not_found, 0, 0});
  if (!source.payload.empty()) return call.fail(bad_payload(source.payload));
  state.held = source.snapshot;
  return call.walk(source.held());
}

/// A long value that is copied before the walk that writes it.
struct WriteState {
  std::optional<tree::StagedValue> staged;
};

template <Op kOp>
Next write_long(Call& call) {
  if (!call.has_state<WriteState>()) {
    call.state<WriteState>().staged = call.map().stage(call.payload());
  }
  std::optional<tree::StagedValue>& staged = call.state<WriteState>().staged;
  if (staged && !staged->is_whole()) return copy_staged(call, *staged);
  call.new_walk(kOp).value = call.payload();
  return staged ? call.walk(*staged) : call.walk();
}

template <Op kOp>
Next write(Call& call) {
  if (const Completion* const done = call.walked()) return answer_walk(call, *done);
  const std::size_t bytes = call.payload().size();
  if (bytes > kLongValueBytes && bytes <= wire::kValueBytesMax) [[unlikely]]
    return write_long<kOp>(call);
  call.new_walk(kOp).value = call.payload();
  return call.walk();
}

constexpr Limits kRead{.map = true,
                       .payload_bytes_max = sizeof(std::uint64_t),
                       .at_snapshot = true,
                       .keys = Keys::one};
constexpr Limits kErase{.map = true, .keys = Keys::one};
constexpr Limits kWrite{
    .map = true, .payload_bytes_max = wire::kMessageBytesMax, .keys = Keys::one};

const Offload kPointOffloads[] = {
    {{.id = wire::OffloadId::noop,
      .name = "noop",
      .format = "nothing",
      .summary = "answers",
      .right = Right::none,
      .limits = {.key_bytes_max = 65535, .payload_bytes_max = wire::kMessageBytesMax},
      .at_device = wire::AtDevice::here},
     {.step = noop}},
    {{.id = wire::OffloadId::get,
      .name = "get",
      .format = "key; snapshot, if the header says so",
      .summary = "answers whether the key is there, its value, and its version",
      .right = Right::read,
      .limits = kRead,
      .at_device = wire::AtDevice::walked},
     {.step = get}},
    {{.id = wire::OffloadId::put,
      .name = "put",
      .format = "key; value",
      .summary = "inserts or replaces",
      .right = Right::write,
      .limits = kWrite,
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = write<Op::put>}},
    {{.id = wire::OffloadId::insert,
      .name = "insert",
      .format = "key; value",
      .summary = "writes if the key is absent; answers whether it did",
      .right = Right::write,
      .limits = kWrite,
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = write<Op::insert>}},
    {{.id = wire::OffloadId::update,
      .name = "update",
      .format = "key; value",
      .summary = "writes if the key is present; answers whether it did",
      .right = Right::write,
      .limits = kWrite,
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = write<Op::update>}},
    {{.id = wire::OffloadId::erase,
      .name = "erase",
      .format = "key",
      .summary = "removes the key if it is there; answers whether it was",
      .right = Right::write,
      .limits = kErase,
      .at_device = wire::AtDevice::relayed,
      .changes = true},
     {.step = write<Op::erase>}},
};

}  // namespace

std::span<const Offload> point_offloads() { return kPointOffloads; }

}  // namespace espalier::offload
