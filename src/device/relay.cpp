// SPDX-License-Identifier: Apache-2.0
#include "device/relay.hpp"

#include <utility>

#include "base/bytes.hpp"
#include "device/relay_link.hpp"
#include "offload/connection.hpp"
#include "offload/principal.hpp"
#include "offload/reads.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::HostAnswer;
using offload::Next;

/// What waits for one client's room, of one request, before the host is told to stop.
constexpr std::size_t kRelayBytesMax = std::size_t{256} << 10;

wire::ResponseHeader header_from(const wire::ResponseHeader& host) {
  wire::ResponseHeader header{};
  header.flags = host.flags;
  header.code = host.code;
  header.version = host.version;
  header.read_version = host.read_version;
  return header;
}

void send_piece(Call& call, const wire::ResponseHeader& header, std::string_view payload) {
  const auto kind = static_cast<wire::ChunkKind>(header.flags & wire::kChunkBits);
  call.send_chunk(kind, header_from(header), {payload});
}

// Sends what the client has room for. What was cut off ends with an error: the client would take it
// for all there is.
Next flush(Call& call, RelayState& state) {
  while (!state.pieces.empty()) {
    RelayState::Piece& first = state.pieces.front();
    if (!call.response_fits(first.payload.size())) {
      return state.ended ? call.writable() : call.more_of_answer();
    }
    if (state.ended && state.pieces.size() == 1) {
      if (state.cut && !state.unwanted) return call.fail({Code::out_of_memory, 0, 0});
      const RelayState::Piece last = std::move(first);  // the answer frees the state
      return call.answer(header_from(last.header), {last.payload});
    }
    send_piece(call, first.header, first.payload);
    state.bytes -= first.payload.size();
    state.pieces.pop_front();
  }
  return call.more_of_answer();
}

}  // namespace

RelayedSnapshot::RelayedSnapshot(RelayLink& link, std::uint32_t map, std::uint64_t number,
                                 std::uint64_t version)
    : link_(link), connection_(link.connection()), map_(map), number_(number) {
  held_.version = version;
}

RelayedSnapshot::~RelayedSnapshot() { link_.close_snapshot(connection_, number_); }

std::uint64_t RelayedSnapshot::number() const {
  return link_.connection() == connection_ ? number_ : 0;
}

Next begin_relay(Call& call) {
  RelayState& state = call.new_state<RelayState>();
  offload::Post post;
  post.offload = call.offload().id;
  post.map = call.map_number();
  post.argument = call.argument();
  post.key = call.key();
  post.payload = call.payload();
  state.principal = offload::bytes_of(call.principal());
  post.principal = state.principal;
  if (call.at_snapshot()) {
    const offload::ReadSource source = offload::read_source(call, nullptr);
    if (!source.found) return call.fail({Code::not_found, 0, 0});
    state.held = source.snapshot;
    state.host_snapshot = static_cast<const RelayedSnapshot&>(*state.held).number();
    if (state.host_snapshot == 0) return call.fail({Code::connection_lost, 0, 0});
    post.at_snapshot = true;
    post.payload = base::bytes_of(state.host_snapshot);
    post.more_payload = source.payload;
  }
  return call.post(post);
}

bool is_relayed(const Call& call) { return call.has_state<RelayState>(); }

Next relay(Call& call) {
  RelayState& state = call.state<RelayState>();
  const HostAnswer* const answer = call.host_answer();
  if (answer == nullptr) return flush(call, state);
  if (state.pieces.empty() && !state.cut && call.response_fits(answer->payload.size())) {
    if (answer->last) return call.answer(header_from(answer->header), {answer->payload});
    send_piece(call, answer->header, answer->payload);
    return call.more_of_answer();
  }
  state.pieces.push_back({answer->header, std::string(answer->payload)});
  state.bytes += answer->payload.size();
  state.ended = answer->last;
  if (!state.ended && !state.cut && state.bytes > kRelayBytesMax) {
    state.cut = true;
    call.cancel_post();
  }
  return flush(call, state);
}

void cancel_relay(Call& call) {
  call.state<RelayState>().unwanted = true;
  call.cancel_post();
}

}  // namespace espalier::device
