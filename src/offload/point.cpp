// SPDX-License-Identifier: Apache-2.0
// Offloads on one key: get, put, insert, update, erase; and the no-op, by which rings are measured.
#include "offload/reads.hpp"
#include "offload/walk_answer.hpp"

namespace espalier::offload {
namespace {

Error bad_payload(std::string_view payload) {
  return {Code::invalid_argument, 0, static_cast<std::uint32_t>(payload.size())};
}

Next noop(Call& call) { return call.answer({}); }

/// The snapshot that a get reads, which must stay until its walk has ended.
struct GetState {
  std::shared_ptr<HeldSnapshot> held;
};

// A value that the client has no room for is read again when it has.
Next get(Call& call) {
  if (const Completion* const found = call.walked()) {
    if (!found->ok) return call.fail(found->error);
    if (!call.response_fits(found->value.size())) return call.writable();
    return call.answer(header_of(*found), {found->value});
  }
  call.new_walk(Op::get);
  if (!call.at_snapshot()) [[likely]] {
    if (!call.payload().empty()) return call.fail(bad_payload(call.payload()));
    return call.walk();
  }
  GetState& state = call.state<GetState>();
  const ReadSource source = read_source(call, state.held);
  if (!source.found) return call.fail({Code::not_found, 0, 0});
  if (!source.payload.empty()) return call.fail(bad_payload(source.payload));
  state.held = source.snapshot;
  return call.walk(source.held());
}

template <Op kOp>
Next write(Call& call) {
  if (const Completion* const done = call.walked()) return answer_walk(call, *done);
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
    {.id = wire::OffloadId::noop,
     .name = "noop",
     .format = "nothing",
     .summary = "answers",
     .right = Right::none,
     .limits = {.key_bytes_max = 65535, .payload_bytes_max = wire::kMessageBytesMax},
     .step = noop},
    {.id = wire::OffloadId::get,
     .name = "get",
     .format = "key; snapshot, if the header says so",
     .summary = "answers whether the key is there, its value, and its version",
     .right = Right::read,
     .limits = kRead,
     .step = get},
    {.id = wire::OffloadId::put,
     .name = "put",
     .format = "key; value",
     .summary = "inserts or replaces",
     .right = Right::write,
     .limits = kWrite,
     .step = write<Op::put>},
    {.id = wire::OffloadId::insert,
     .name = "insert",
     .format = "key; value",
     .summary = "writes if the key is absent; answers whether it did",
     .right = Right::write,
     .limits = kWrite,
     .step = write<Op::insert>},
    {.id = wire::OffloadId::update,
     .name = "update",
     .format = "key; value",
     .summary = "writes if the key is present; answers whether it did",
     .right = Right::write,
     .limits = kWrite,
     .step = write<Op::update>},
    {.id = wire::OffloadId::erase,
     .name = "erase",
     .format = "key",
     .summary = "removes the key if it is there; answers whether it was",
     .right = Right::write,
     .limits = kErase,
     .step = write<Op::erase>},
};

}  // namespace

std::span<const Offload> point_offloads() { return kPointOffloads; }

}  // namespace espalier::offload
