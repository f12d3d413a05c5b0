// SPDX-License-Identifier: Apache-2.0
// What comes to a pair through the ring. All of it was written by a peer that may mean ill.
#include <algorithm>
#include <utility>

#include "fabric/placed_write.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/shm/pair.hpp"

namespace espalier::fabric::shm {
namespace {

using wire::FabricPiece;

constexpr int kPiecesAtATime = 64;  // others want their turn

bool takes_receive(FabricPiece kind) {
  return kind == FabricPiece::send || kind == FabricPiece::send_immediate ||
         kind == FabricPiece::write_immediate;
}

bool is_write(FabricPiece kind) {
  return kind == FabricPiece::write || kind == FabricPiece::write_immediate;
}

FabricPiece kind_of(const wire::FabricPieceHead& head) {
  return static_cast<FabricPiece>(head.kind);
}

}  // namespace

// What the peer sent before its end. A ring holds only so much, and a peer that is gone adds
// nothing to it; one that still writes is no longer listened to.
void Pair::receive_rest() {
  constexpr int kTurns = 2 * kRingSlots / kPiecesAtATime;
  for (int i = 0; i < kTurns && state() == State::connected && reader_.ready(); ++i) {
    if (!receive()) return;
  }
}

// Returns whether anything was taken.
bool Pair::receive() {
  const std::uint64_t done = done_;
  const std::uint64_t starved = starved_;
  bool moved = false;
  for (int i = 0; i < kPiecesAtATime && reader_.ready(); ++i) {
    wire::FabricPieceHead head;
    const Taken taken = reader_.look(head) ? take_piece(head) : refuse(Status::remote_invalid);
    if (taken == Taken::failed) return false;
    if (taken == Taken::starved) break;
    reader_.next(head);
    moved = true;
    if (taken == Taken::message) finish_message();
  }
  if (moved) reader_.publish_head();
  if (done_ != done) {
    base::store_shared(channel_.mine(offsetof(wire::FabricSide, done)), done_,
                       std::memory_order_release);
  }
  if (starved_ != starved) {
    base::store_shared(channel_.mine(offsetof(wire::FabricSide, starved)), starved_);
  }
  if (moved || starved_ != starved) wake_peer();
  return moved;
}

// Ends the pair; the peer completes its request with this.
Pair::Taken Pair::refuse(Status why) {
  base::store_shared(channel_.mine(offsetof(wire::FabricSide, done)), done_,
                     std::memory_order_release);
  base::store_shared(channel_.mine(offsetof(wire::FabricSide, failure)),
                     static_cast<std::uint32_t>(why), std::memory_order_release);
  end(why);
  return Taken::failed;
}

Pair::Taken Pair::take_piece(const wire::FabricPieceHead& head) {
  if (incoming_.open) {
    const std::uint32_t left = incoming_.first.message_bytes - incoming_.got;
    if (kind_of(head) != FabricPiece::more || head.bytes == 0 || head.bytes > left) {
      return refuse(Status::remote_invalid);
    }
  } else if (const Taken begun = begin_message(head); begun != Taken::piece) {
    return begun;
  }
  if (!place(head)) return refuse(Status::remote_access);
  incoming_.got += head.bytes;
  return incoming_.got == incoming_.first.message_bytes ? Taken::message : Taken::piece;
}

Pair::Taken Pair::begin_message(const wire::FabricPieceHead& head) {
  const FabricPiece kind = kind_of(head);
  if (!(takes_receive(kind) || is_write(kind)) || head.message_bytes > kMessageBytesMax ||
      head.bytes > head.message_bytes || (head.bytes == 0 && head.message_bytes != 0)) {
    return refuse(Status::remote_invalid);
  }
  if (takes_receive(kind)) {
    incoming_.receive = receives().take();
    if (!incoming_.receive) {
      starved_ = done_ + 1;
      return Taken::starved;
    }
    if (!is_write(kind) && head.message_bytes > incoming_.receive->into.size()) {
      complete_receive(*std::exchange(incoming_.receive, std::nullopt), Opcode::receive,
                       Status::local_length, 0);
      return refuse(Status::remote_invalid);
    }
  }
  incoming_.open = true;
  incoming_.first = head;
  incoming_.got = 0;
  return Taken::piece;
}

// Puts the payload of a piece where it belongs. Returns false if it does not belong anywhere.
bool Pair::place(const wire::FabricPieceHead& head) {
  const wire::FabricPieceHead& first = incoming_.first;
  if (head.bytes == 0) return true;
  if (!is_write(kind_of(first))) {
    reader_.copy(incoming_.receive->into.data() + incoming_.got, 0, head.bytes);
    return true;
  }
  // Other threads read the destination, and the peer may still write the source: so the bytes pass
  // through private memory.
  constexpr std::uint32_t kAtATime = 2048;
  std::byte between[kAtATime];
  host_.reader.enter();
  // All of the message, so that nothing is written of one that is not wholly within.
  const WriteTarget to =
      host_.reader.find_target(first.key, first.remote, first.message_bytes, options().domain);
  for (std::uint32_t i = 0; to && i < head.bytes; i += kAtATime) {
    const std::uint32_t now = std::min(head.bytes - i, kAtATime);
    reader_.copy(between, i, now);
    store_placed(to.at + incoming_.got + i, between, now, to.placement);
  }
  if (to && incoming_.got + head.bytes == first.message_bytes) {
    finish_write(to, first.message_bytes, host_.reader.placed());
  }
  host_.reader.leave();
  return static_cast<bool>(to);
}

void Pair::finish_message() {
  incoming_.open = false;
  ++done_;
  if (!incoming_.receive) return;
  const wire::FabricPieceHead& first = incoming_.first;
  const FabricPiece kind = kind_of(first);
  const bool immediate = kind != FabricPiece::send;
  const Opcode opcode = is_write(kind) ? Opcode::receive_write : Opcode::receive;
  complete_receive(*std::exchange(incoming_.receive, std::nullopt), opcode, Status::success,
                   first.message_bytes, immediate ? &first.immediate : nullptr);
}

}  // namespace espalier::fabric::shm
