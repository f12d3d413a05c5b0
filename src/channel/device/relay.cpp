// SPDX-License-Identifier: Apache-2.0
#include "channel/device/relay.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "channel/device/host_posts.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/connection.hpp"
#include "engine/principal.hpp"
#include "engine/services.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Next;

/// Bytes that wait for one client's room, of one request, before the host's answer is cancelled.
constexpr std::size_t kRelayBytesMax = std::size_t{256} << 10;

constexpr std::string_view kLate = "no row was taken for 30 seconds: the query has ended";
constexpr std::string_view kOverNodes =
    "a device hands nothing on that comes over other nodes: have them ask its host";
constexpr std::string_view kTooLong =
    "with the name of who asks, this is too long for one message to the device's host: ask for "
    "less";

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

// Sends what the client has room for. A truncated answer ends with an error, since the client would
// take it as complete.
Next flush(Call& call, RelayState& state) {
  while (!state.pieces.empty()) {
    RelayState::Piece& first = state.pieces.front();
    if (!call.response_fits(first.payload.size())) {
      return state.ended ? call.writable() : call.handed_over();
    }
    if (state.ended && state.pieces.size() == 1) {
      if (state.late) return call.fail({Code::busy, 0, 0}, kLate);
      if (state.cut && !state.unwanted) return call.fail({Code::out_of_memory, 0, 0});
      const RelayState::Piece last = std::move(first);  // the answer frees the state
      return call.answer(header_from(last.header), {last.payload});
    }
    send_piece(call, first.header, first.payload);
    state.bytes -= first.payload.size();
    state.pieces.pop_front();
  }
  return call.handed_over();
}

// Refuses requests that came through other nodes: at the host they would wait among its clients, so
// nodes could deadlock in a cycle (docs/design/peers.md).
Next begin(Call& call, RelayState& state, AnswerPace pace) {
  if (call.request().hops() != 0) return call.fail({Code::unsupported, 0, 0}, kOverNodes);
  wire::CallMessage message;
  message.offload = call.offload().id;
  message.map = call.map_number();
  message.argument = call.argument();
  message.key = call.key();
  message.payload = state.payload.empty() ? call.payload() : client::text_of(state.payload);
  state.principal = offload::bytes_of(call.principal());
  message.principal = state.principal;
  if (call.at_snapshot()) {
    ESPALIER_ASSERT(state.snapshot.number != 0);
    message.at_snapshot = true;
    message.payload = base::bytes_of(state.snapshot.number);
    message.more_payload = call.payload_behind_snapshot();
  }
  if (message.bytes() > wire::kMessageBytesMax) {
    return call.fail({Code::invalid_argument, 0, 0}, kTooLong);
  }
  return post_to_host(call, message, pace);
}

}  // namespace

Next begin_relay(Call& call, SnapshotAtHost snapshot) {
  RelayState& state = call.new_state<RelayState>();
  state.snapshot = std::move(snapshot);
  return begin(call, state, AnswerPace::at_once);
}

Next begin_long_relay(Call& call, std::vector<std::byte> payload) {
  RelayState& state = call.new_state<RelayState>();
  state.payload = std::move(payload);
  return begin(call, state, AnswerPace::as_taken);
}

bool wants_more(Call& call) {
  RelayState& state = call.state<RelayState>();
  if (state.cut) return true;
  if (!call.has_deferred()) {
    if (state.pieces.empty()) {
      state.reader.took();
      return true;
    }
    const RelayState::Piece& first = state.pieces.front();
    if (call.response_fits(first.payload.size())) {
      send_piece(call, first.header, first.payload);
      state.bytes -= first.payload.size();
      state.pieces.pop_front();
      state.reader.took();
    }
  }
  const auto timeout_ns = call.services().reader_timeout_ns.load(std::memory_order_relaxed);
  if (state.reader.next_look(timeout_ns)) return false;
  // Frees the host's stream for others; what still arrives is discarded.
  state.late = true;
  state.cut = true;
  state.pieces.clear();
  state.bytes = 0;
  cancel_post(call);
  return true;
}

bool is_relayed(const Call& call) { return call.has_state<RelayState>(); }

Next relay(Call& call) {
  RelayState& state = call.state<RelayState>();
  const HostAnswer* const answer = host_answer(call);
  if (answer == nullptr) return flush(call, state);
  if (state.late && !answer->last) return call.handed_over();
  if (state.pieces.empty() && !state.cut && call.response_fits(answer->payload.size())) {
    if (answer->last) return call.answer(header_from(answer->header), {answer->payload});
    send_piece(call, answer->header, answer->payload);
    return call.handed_over();
  }
  state.pieces.push_back({answer->header, std::string(answer->payload)});
  state.bytes += answer->payload.size();
  state.ended = answer->last;
  if (!state.ended && !state.cut && state.bytes > kRelayBytesMax) {
    state.cut = true;
    cancel_post(call);
  }
  return flush(call, state);
}

void cancel_relay(Call& call) {
  call.state<RelayState>().unwanted = true;
  cancel_post(call);
}

Next ask_host(Call& call) { return is_relayed(call) ? relay(call) : begin_relay(call); }

}  // namespace espalier::device
