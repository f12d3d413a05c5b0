// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/cells.hpp"
#include "engine/endpoint_side.hpp"
#include "fabric/region_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "engine/connection.hpp"
#include "engine/peer_posts.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"

namespace espalier::example {
namespace {

using cell_calls::Copy;
using cell_calls::Grant;
using cell_calls::Granted;
using fabric::PostEnd;
using offload::Call;
using offload::Next;

// --- at the node whose words they are ------------------------------------------------------------

/// The key of one session.
class CellsKey final : public offload::SessionPart {
 public:
  CellsKey(NodeCells& node, Result<fabric::Registration> made)
      : node_(node), cells_(node.cells), key_(std::move(made)) {
    ++node_.keys;
  }
  [[nodiscard]] const Result<fabric::Registration>& key() const { return key_; }
  void end() override {
    key_ = fail(Code::not_found);
    --node_.keys;
  }

 private:
  NodeCells& node_;
  std::shared_ptr<const Cells> cells_;
  Result<fabric::Registration> key_;  // goes first
};

Next grant(Call& call, const Grant&) {
  const offload::LinkSide* const side = call.connection().side.get();
  if (side == nullptr || !side->endpoint.lets_write()) {
    return call.fail({Code::unsupported, 0, 0}, "this connection has no memory to use");
  }
  NodeCells& node = call.services().part<NodeCells>();
  const auto offer = [&] {
    const memory::SharedMemory& memory = node.cells->memory();
    return side->endpoint.regions.offer(
        {memory.at(0), memory.bytes(), memory.descriptor(), 0},
        fabric::RemoteRights::read | fabric::RemoteRights::write | fabric::RemoteRights::atomic,
        side->domain);
  };
  auto* part = call.connection().parts.find<CellsKey>();
  if (part == nullptr) part = &call.connection().parts.of<CellsKey>(node, offer());
  if (!part->key()) return call.fail(part->key().error());
  const fabric::RemoteRegion remote = part->key()->remote();
  return answer(call, Granted{remote.base, remote.key, Cells::kWords});
}

// --- at the node that copies ---------------------------------------------------------------------

constexpr std::array<std::string_view, 2> kPeers{"b", "c"};

/// What a scheduler was granted by its peers.
struct Grants final : offload::SchedulerPart {
  struct Of {
    std::uint64_t session = 0;
    Granted granted;
  };
  std::array<Of, kPeers.size()> peers;
};

struct CopyState {
  enum class After : std::uint8_t { nothing, grants, read, write };
  After after = After::nothing;
  std::array<std::size_t, kPeers.size()> peers{};
  std::array<std::uint64_t, kPeers.size()> sessions{};
  std::array<channel::PeerAnswer, kPeers.size()> answers;
  std::array<std::array<std::byte, 64>, kPeers.size()> bytes;
  std::uint64_t word = 0;
  std::uint64_t copies = 0;
};

constexpr wire::CallMessage kAskForGrant{.offload = Grant::kCall.id};

// Posts that left may have taken effect; the client gets that error.
Next refuse(Call& call, PostEnd how) {
  const bool left = how == PostEnd::unknown;
  return call.fail({Code::connection_lost, 0, 0}, left ? "it is not known whether it was copied"
                                                       : "a peer is not there: nothing was copied");
}

Next ask_for_grants(Call& call, CopyState& state) {
  offload::PeerBatch batch(call);
  for (std::size_t i = 0; i < kPeers.size(); ++i) {
    state.answers[i].into = state.bytes[i];
    state.sessions[i] = offload::PeerPosts::of(call).link(state.peers[i]).session();
    batch.call(state.peers[i], state.sessions[i], kAskForGrant, state.answers[i]);
  }
  state.after = CopyState::After::grants;
  return batch.completed();
}

std::optional<Granted> granted_in(const CopyState& state, std::size_t peer) {
  const channel::PeerAnswer& answer = state.answers[peer];
  if (answer.header.code != 0 || answer.payload_bytes > answer.into.size()) return std::nullopt;
  const auto* const text = reinterpret_cast<const char*>(answer.into.data());
  return wire::read_reply<Granted>(answer.header, {text, answer.payload_bytes});
}

bool known(Call& call, const CopyState& state) {
  const auto& grants = call.scheduler_part<Grants>().peers;
  for (std::size_t i = 0; i < kPeers.size(); ++i) {
    const std::uint64_t now = offload::PeerPosts::of(call).link(state.peers[i]).session();
    if (now == 0 || grants[i].session != now) return false;
  }
  return true;
}

Next read(Call& call, CopyState& state, const Copy& asked) {
  const Grants::Of& b = call.scheduler_part<Grants>().peers[0];
  const Grants::Of& c = call.scheduler_part<Grants>().peers[1];
  if (asked.from >= b.granted.words || asked.to >= c.granted.words) {
    return call.fail({Code::invalid_argument, 0, std::max(asked.from, asked.to)});
  }
  offload::PeerBatch batch(call);
  batch.read(state.peers[0], b.session, std::as_writable_bytes(std::span(&state.word, 1)),
             b.granted.key, b.granted.base + asked.from * sizeof(std::uint64_t));
  state.after = CopyState::After::read;
  return batch.completed();
}

Next write(Call& call, CopyState& state, const Copy& asked) {
  const Grants::Of& c = call.scheduler_part<Grants>().peers[1];
  const auto at = [&](std::uint64_t word) { return c.granted.base + word * sizeof(std::uint64_t); };
  offload::PeerBatch batch(call);
  batch.write(state.peers[1], c.session, std::as_bytes(std::span(&state.word, 1)), c.granted.key,
              at(asked.to));
  batch.fetch_add(state.peers[1], c.session, c.granted.key, at(kCopiesCounted), 1,
                  reinterpret_cast<std::byte*>(&state.copies));
  state.after = CopyState::After::write;
  return batch.completed();
}

Next copy(Call& call, const Copy& asked) {
  CopyState& state = call.state<CopyState>();
  for (const offload::PeerEnd& end : peer_ends(call)) {
    if (end.how != PostEnd::done) return refuse(call, end.how);
  }
  switch (state.after) {
    case CopyState::After::nothing:
      for (std::size_t i = 0; i < kPeers.size(); ++i) {
        const auto number = offload::PeerPosts::of(call).find(kPeers[i]);
        if (!number) return call.fail({Code::unsupported, 0, 0}, "this node has no peers b and c");
        state.peers[i] = *number;
      }
      return known(call, state) ? read(call, state, asked) : ask_for_grants(call, state);
    case CopyState::After::grants:
      for (std::size_t i = 0; i < kPeers.size(); ++i) {
        const auto granted = granted_in(state, i);
        if (!granted) return call.fail({Code::not_permitted, 0, 0}, "a peer grants nothing");
        call.scheduler_part<Grants>().peers[i] = {state.sessions[i], *granted};
      }
      return read(call, state, asked);
    case CopyState::After::read: return write(call, state, asked);
    case CopyState::After::write: break;
  }
  return answer(call, cell_calls::Copied{state.word});
}

void make_cells(offload::TypedSlots<offload::NodePart>& parts) { parts.make<NodeCells>(); }

}  // namespace

const offload::Kind& cells_kind() {
  static const offload::Offload calls[] = {
      offload::serve<Grant, grant>(),
      offload::serve<Copy, copy>({.executor = &offload::kPeerPosts}),
  };
  static const std::span<const offload::Offload> all(calls);
  static const offload::Kind kind{.name = "cells", .calls = {&all, 1}, .make_part = make_cells};
  return kind;
}

}  // namespace espalier::example
