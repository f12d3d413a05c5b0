// SPDX-License-Identifier: Apache-2.0
// How a target does what changes memory or fills a receive: one at a time for each pair.
#include <cstring>
#include <utility>

#include "fabric/sim/pair.hpp"
#include "fabric/sim/responder.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

void Responder::begin_landing(Message request, std::optional<Receive> receive) {
  World& world = pair_.world();
  Landing& landing = landing_.emplace();
  landing.request = std::move(request);
  landing.receive = receive;
  if (is_write(landing.request.opcode)) {
    landing.pieces = cut_in_pieces(landing.request.remote, landing.request.bytes, world.faults(),
                                   world.random());
  }
  schedule_piece();
}

void Responder::schedule_piece() {
  const Landing& landing = *landing_;
  World& world = pair_.world();
  std::uint64_t delay = 0;
  if (landing.pieces.empty()) {
    delay = world.faults().land_ns.draw(world.random());
  } else {
    delay = landing.pieces[landing.done].after_ns;
    if (landing.done != 0) delay -= landing.pieces[landing.done - 1].after_ns;
  }
  pair_.after(
      delay, What::line_written, landing.request.sequence,
      [sequence = landing.request.sequence](Pair& pair) { pair.responder().land_piece(sequence); });
}

void Responder::land_piece(std::uint64_t sequence) {
  // What has failed meanwhile is an earlier READ: this is given up half done.
  if (!landing_ || landing_->request.sequence != sequence || failure_) return;
  Landing& landing = *landing_;
  if (peer_stops(landing.request)) return;
  World& world = pair_.world();
  if (landing.done != landing.pieces.size()) {
    const Piece& piece = landing.pieces[landing.done];
    const std::byte* const from = landing.request.data.data() + piece.offset;
    if (!copy_to_region(pair_, landing.request, piece, from)) {
      ++world.counts().revoked;
      return refuse(landing.request, Status::remote_access, Status::remote_access);
    }
    if (landing.done != 0 && world.steps() != landing.steps + 1) landing.torn = true;
    landing.steps = world.steps();
    ++landing.done;
  }
  if (landing.done != landing.pieces.size()) return schedule_piece();
  finish_landing();
}

void Responder::finish_landing() {
  const Landing landing = std::move(*landing_);
  landing_.reset();
  const Message& request = landing.request;
  if (landing.torn) ++pair_.world().counts().torn_writes;
  if (is_write(request.opcode)) finish_write_in_region(pair_, request);
  if (landing.receive) {
    const Receive& receive = *landing.receive;
    const bool sent = is_send(request.opcode);
    if (sent && request.bytes != 0) {
      std::memcpy(receive.into.data(), request.data.data(), request.bytes);
    }
    pair_.complete_receive_noted(receive, sent ? Opcode::receive : Opcode::receive_write,
                                 Status::success, request.bytes,
                                 has_immediate(request.opcode) ? &request.immediate : nullptr);
  }
  answer(request, Status::success);
  send_answer(request.sequence);
  go_on();
}

void Responder::begin_atomic(Message request) {
  landing_.emplace().request = std::move(request);
  if (pair_.world().take_atomic_unit(pair_.name())) do_atomic();
}

void Responder::do_atomic() {
  if (!landing_ || failure_) return;  // the unit is left when the pair ends, which is soon
  World& world = pair_.world();
  Landing& landing = *landing_;
  std::byte word[kAtomicBytes];
  if (!copy_from_region(pair_, landing.request, {0, kAtomicBytes, 0}, word)) {
    ++world.counts().revoked;
    return refuse(landing.request, Status::remote_access, Status::remote_access);
  }
  std::memcpy(&landing.old_value, word, kAtomicBytes);
  const std::uint64_t delay = world.faults().split_atomic_ns.draw(world.random());
  const std::uint64_t sequence = landing.request.sequence;
  if (delay == 0) return finish_atomic(sequence);
  pair_.after(delay, What::atomic, sequence,
              [sequence](Pair& pair) { pair.responder().finish_atomic(sequence); });
}

void Responder::finish_atomic(std::uint64_t sequence) {
  if (!landing_ || landing_->request.sequence != sequence || failure_) return;
  World& world = pair_.world();
  const Message& request = landing_->request;
  const std::uint64_t old_value = landing_->old_value;
  const Piece word{0, kAtomicBytes, 0};
  std::uint64_t now = 0;
  bool good = copy_from_region(pair_, request, word, reinterpret_cast<std::byte*>(&now));
  const bool adds = request.opcode == Opcode::fetch_add;
  if (good && (adds || old_value == request.compare)) {
    if (now != old_value) ++world.counts().torn_atomics;
    const std::uint64_t value = adds ? old_value + request.operand : request.operand;
    good = copy_to_region(pair_, request, word, reinterpret_cast<const std::byte*>(&value));
  }
  if (!good) {
    ++world.counts().revoked;
    return refuse(request, Status::remote_access, Status::remote_access);
  }
  answer(request, Status::success).old_value = old_value;
  landing_.reset();
  world.leave_atomic_unit(pair_.name());
  send_answer(sequence);
  go_on();
}

}  // namespace espalier::fabric::sim
