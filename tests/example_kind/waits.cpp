// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/waits.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "engine/peer_posts.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"

namespace espalier::example {
namespace {

using fabric::PostEnd;
using offload::Call;
using offload::Next;
using wait_calls::Chain;
using wait_calls::Chained;

Next stop(Call& call, const wait_calls::Stop&) {
  NodeWaits& waits = call.services().part<NodeWaits>();
  waits.stopped.store(true);
  waits.goes_on.wait(false);
  return answer(call, wire::Nothing{});
}

Next fill(Call& call, const wait_calls::Fill& asked) {
  return answer(call, wait_calls::Filled{wire::OwnBytes(std::string(asked.bytes, '\0'))});
}

/// Of one link of a chain.
struct ChainState {
  bool held = false;
  bool passed = false;
  bool called = false;
  std::string payload;
  wire::CallMessage message;
  channel::PeerAnswer answer;
  std::array<std::byte, 64> into{};
};

bool take_one(std::atomic<std::uint32_t>& count) {
  std::uint32_t left = count.load();
  while (left != 0 && !count.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

// It keeps its place: it has something to do in each turn.
bool may_pass(Call& call, ChainState& state, const Chain& asked) {
  NodeWaits& waits = call.services().part<NodeWaits>();
  if (asked.held == 0 || state.passed) return true;
  if (!std::exchange(state.held, true)) ++waits.held;
  state.passed = take_one(waits.may_go);
  if (state.passed) --waits.held;
  return state.passed;
}

void cancel_chain(Call& call) {
  ChainState* const state = call.find_state<ChainState>();
  if (state == nullptr || !state->held || std::exchange(state->passed, true)) return;
  NodeWaits& waits = call.services().part<NodeWaits>();
  --waits.held;
  ++waits.cancelled;
}

Next call_other(Call& call, ChainState& state, const Chain& asked) {
  const std::uint32_t fields[] = {0, asked.more - 1};
  state.payload = std::string(reinterpret_cast<const char*>(fields), sizeof fields);
  state.message = {.offload = Chain::kCall.id, .payload = state.payload};
  state.answer = {};
  state.answer.into = state.into;
  state.called = true;
  offload::PeerBatch batch(call);
  batch.call(0, channel::PeerLink::kAnySession, state.message, state.answer);
  return batch.completed();
}

Next pass_on(Call& call, const ChainState& state) {
  const channel::PeerAnswer& got = state.answer;
  const auto* const text = reinterpret_cast<const char*>(got.into.data());
  if (got.payload_bytes > got.into.size()) return call.fail({Code::corrupt, 0, 0});
  const auto chained = wire::read_reply<Chained>(got.header, {text, got.payload_bytes});
  if (got.header.code != 0) return call.fail({static_cast<Code>(got.header.code), 0, 0});
  return chained ? answer(call, *chained) : call.fail({Code::corrupt, 0, 0});
}

Next chain(Call& call, const Chain& asked) {
  auto& state = call.state<ChainState>();
  const std::uint8_t hops = call.request().hops();
  if (!may_pass(call, state, asked)) return call.again();
  if (const auto ends = peer_ends(call); !ends.empty()) {
    if (ends[0].how == PostEnd::done) return pass_on(call, state);
    if (hops == wire::kHopsMax) return call.fail({Code::unsupported, 0, hops});
    state.called = false;  // the link is made just now
    return call.again();
  }
  if (hops != 0 && !state.called) ++call.services().part<NodeWaits>().chained;
  if (asked.more == 0) return answer(call, Chained{hops});
  if (offload::PeerPosts::of(call).peers() == 0) return call.fail({Code::unsupported, 0, 0});
  return call_other(call, state, asked);
}

void make_waits(offload::TypedSlots<offload::NodePart>& parts) { parts.make<NodeWaits>(); }

}  // namespace

const offload::Kind& waits_kind() {
  static const offload::Offload calls[] = {
      offload::serve<wait_calls::Stop, stop>(),
      offload::serve<wait_calls::Fill, fill>(),
      offload::serve<Chain, chain>({.executor = &offload::kPeerPosts, .cancel = cancel_chain}),
  };
  static const std::span<const offload::Offload> all(calls);
  static const offload::Kind kind{.name = "waits", .calls = {&all, 1}, .make_part = make_waits};
  return kind;
}

}  // namespace espalier::example
