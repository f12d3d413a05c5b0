// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/responder.hpp"

#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/prefetch.hpp"
#include "fabric/placed_write.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/pair.hpp"

namespace espalier::fabric::roce {
namespace {

using enum PacketOpcode;

// The RNR timer: how long a peer waits for a receive.
constexpr std::uint64_t kNotReadyNs = 40'000;
// Bytes of a READ that are prefetched when its request arrives.
constexpr std::uint32_t kAskedAhead = 1024;

bool is_send(PacketOpcode opcode) { return opcode <= send_only_immediate; }
bool is_write(PacketOpcode opcode) {
  return opcode >= write_first && opcode <= write_only_immediate;
}
bool begins(PacketOpcode opcode) {
  return opcode == send_first || opcode == send_only || opcode == send_only_immediate ||
         opcode == write_first || opcode == write_only || opcode == write_only_immediate;
}
bool ends(PacketOpcode opcode) {
  return opcode != send_first && opcode != send_middle && opcode != write_first &&
         opcode != write_middle;
}
bool carries_immediate(PacketOpcode opcode) {
  return opcode == send_last_immediate || opcode == send_only_immediate ||
         opcode == write_last_immediate || opcode == write_only_immediate;
}

}  // namespace

Responder::Responder(Pair& pair, std::uint32_t mtu, std::uint32_t message_bytes_max)
    : pair_(pair), mtu_(mtu), message_bytes_max_(message_bytes_max) {}

void Responder::request(const Packet& packet) {
  if (refusing_) {
    // The refusal may have been lost. It does not overtake answers that are still to leave.
    if (answers_.empty() && psn_distance(refusal_.psn, packet.bth.psn) >= 0) {
      static_cast<void>(send_short(refusal_));
    }
    return;
  }
  const std::int32_t ahead = psn_distance(expected_, packet.bth.psn);
  if (ahead < 0) return repeat(packet);
  if (ahead > 0 && planted(Bug::gap_accepted)) {
    expected_ = packet.bth.psn;
    return execute(packet);
  }
  if (ahead > 0) {
    const bool goes_on = psn_distance(beyond_gap_, packet.bth.psn) > 0;
    beyond_gap_ = packet.bth.psn;
    if ((sequence_nak_sent_ && goes_on) || full()) return;
    sequence_nak_sent_ = true;
    ++pair_.counters().gaps;
    Answer gap;
    gap.psn = expected_;
    gap.aeth = Aeth::nak(msn_, NakCode::sequence_error);
    answers_.push_back(gap);
    return pair_.has_work();
  }
  sequence_nak_sent_ = false;
  execute(packet);
}

void Responder::execute(const Packet& packet) {
  const PacketOpcode opcode = packet.bth.opcode;
  if (is_send(opcode) || is_write(opcode)) return execute_part(packet);
  if (within_ != Within::nothing) return refuse(NakCode::invalid_request, Status::remote_invalid);
  if (opcode == read_request) return execute_read(packet);
  execute_atomic(packet);
}

void Responder::execute_read(const Packet& packet) {
  const Reth& reth = packet.reth;
  if (full()) return;
  if (reth.length > message_bytes_max_) {
    return refuse(NakCode::invalid_request, Status::remote_invalid);
  }
  // Asked for now, for the answers of a burst leave together, after the last of its requests.
  const auto ask = [&](const std::byte* from) {
    if (from != nullptr) base::prefetch(from, from + std::min(reth.length, kAskedAhead));
  };
  std::uint64_t map = 0;
  if (reth.length != 0 && !pair_.access_source(reth.key, reth.address, reth.length, ask)) {
    map = shared_map_of(reth);
    if (map == 0) return refuse(NakCode::remote_access, Status::remote_access);
    if (reth.length > mtu_ && !planted(Bug::shared_read_of_any_length)) {
      return refuse(NakCode::invalid_request, Status::remote_invalid);
    }
  }
  Answer answer;
  answer.kind = Answer::Kind::read;
  answer.psn = expected_;
  answer.packets = std::max(1u, base::divide_up(reth.length, mtu_));
  answer.reth = reth;
  answer.shared = map != 0;
  remember({read_request, expected_, answer.packets, reth, 0, map});
  done(answer.packets);
  answer.aeth = Aeth::ack(msn_);
  answers_.push_back(answer);
  pair_.has_work();
}

// Of which map, if the peer may read by this key; else 0.
std::uint64_t Responder::shared_map_of(const Reth& reth) {
  std::uint64_t map = 0;
  const bool may = pair_.access_shared(reth.key, reth.address,
                                       [&](const SharedSource& source) { map = source.map; });
  return may ? map : 0;
}

// Returns false if the peer may not.
bool Responder::change_word(const Packet& packet, std::uint64_t& old_value) {
  const AtomicEth& asked = packet.atomic;
  return pair_.access(asked.key, asked.address, kAtomicBytes, RemoteRights::atomic,
                      [&](std::byte* word) {
                        auto shared = base::shared<std::uint64_t>(word);
                        if (packet.bth.opcode == fetch_add) {
                          old_value = shared.fetch_add(asked.swap_or_add);
                        } else {
                          old_value = asked.compare;  // becomes what is there, if that is another
                          shared.compare_exchange_strong(old_value, asked.swap_or_add);
                        }
                      });
}

void Responder::execute_atomic(const Packet& packet) {
  const AtomicEth& asked = packet.atomic;
  if (full()) return;
  if (asked.address % kAtomicBytes != 0) {
    return refuse(NakCode::invalid_request, Status::remote_invalid);
  }
  Answer answer;
  const bool reached = change_word(packet, answer.old_value);
  if (!reached) return refuse(NakCode::remote_access, Status::remote_access);
  answer.kind = Answer::Kind::atomic;
  answer.psn = expected_;
  remember({packet.bth.opcode, expected_, 1, {}, answer.old_value, 0});
  done(1);
  answer.aeth = Aeth::ack(msn_);
  answers_.push_back(answer);
  pair_.has_work();
}

void Responder::execute_part(const Packet& packet) {
  const PacketOpcode opcode = packet.bth.opcode;
  const bool send = is_send(opcode);
  const bool first = begins(opcode);
  const bool last = ends(opcode);
  const Within continues = send ? Within::send : Within::write;
  if (within_ != (first ? Within::nothing : continues)) {
    return refuse(NakCode::invalid_request, Status::remote_invalid);
  }
  if (first) {
    placed_ = 0;
    write_ = packet.reth;
  }
  if (!part_fits(packet, first, last)) {
    return refuse(NakCode::invalid_request, Status::remote_invalid);
  }
  // A WRITE takes a receive only at its end, if it carries an immediate.
  const bool needs_receive = send ? first : carries_immediate(opcode);
  if (needs_receive && !receive_) {
    receive_ = pair_.take_receive();
    if (!receive_) return not_ready();
  }
  if (!(send ? place_send(packet) : place_write(packet))) return;
  within_ = last ? Within::nothing : continues;
  if (last) end_message(packet, send);
  done(1);
  if (!last) --msn_;  // counts messages
  if ((packet.bth.ask_acknowledge || last) && !pair_.holds_back()) acknowledge();
}

// Whether its length is what its opcode promises.
bool Responder::part_fits(const Packet& packet, bool first, bool last) const {
  const std::size_t bytes = packet.payload.size();
  if (last ? bytes > mtu_ || (!first && bytes == 0) : bytes != mtu_) return false;
  if (is_send(packet.bth.opcode)) return bytes <= message_bytes_max_ - placed_;
  if (write_.length > message_bytes_max_) return false;
  const std::uint32_t left = write_.length - placed_;
  return last ? bytes == left : bytes < left;
}

bool Responder::place_send(const Packet& packet) {
  const std::size_t bytes = packet.payload.size();
  if (bytes > receive_->into.size() - placed_) {
    pair_.complete_received(*std::exchange(receive_, std::nullopt), Opcode::receive,
                            Status::local_length, placed_, nullptr);
    refuse(NakCode::invalid_request, Status::local_length);
    return false;
  }
  std::copy(packet.payload.begin(), packet.payload.end(), receive_->into.begin() + placed_);
  placed_ += static_cast<std::uint32_t>(bytes);
  return true;
}

bool Responder::place_write(const Packet& packet) {
  if (write_.length == 0) return true;
  const bool all_granted = placed_ != 0 || pair_.may_access(write_.key, write_.address,
                                                            write_.length, RemoteRights::write);
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  const auto put = [&](const WriteTarget& to) {
    store_placed(to.at, packet.payload.data(), bytes, to.placement);
    if (placed_ + bytes == write_.length) {
      finish_write({to.at - placed_, to.placement}, write_.length, pair_.placed());
    }
  };
  const bool placed =
      all_granted && pair_.access_target(write_.key, write_.address + placed_, bytes, put);
  if (!placed) {
    refuse(NakCode::remote_access, Status::remote_access);
    return false;
  }
  placed_ += bytes;
  return true;
}

void Responder::end_message(const Packet& packet, bool send) {
  if (!receive_) return;
  const std::uint32_t* number =
      carries_immediate(packet.bth.opcode) ? &packet.immediate.immediate : nullptr;
  pair_.complete_received(*std::exchange(receive_, std::nullopt),
                          send ? Opcode::receive : Opcode::receive_write, Status::success, placed_,
                          number);
}

void Responder::done(std::uint32_t packets) {
  expected_ = psn_plus(expected_, packets);
  ++msn_;
}

void Responder::repeat(const Packet& packet) {
  switch (packet.bth.opcode) {
    case read_request: return repeat_read(packet);
    case fetch_add:
    case compare_swap: {
      const Remembered* const old = recall(packet.bth.psn);
      if (old == nullptr || old->opcode != packet.bth.opcode) return;
      if (full()) return;
      ++pair_.counters().atomics_again;
      Answer answer;
      answer.kind = Answer::Kind::atomic;
      answer.psn = old->psn;
      answer.old_value = old->old_value;
      if (planted(Bug::atomic_done_again)) static_cast<void>(change_word(packet, answer.old_value));
      answer.aeth = Aeth::ack(msn_);
      answers_.push_back(answer);
      return pair_.has_work();
    }
    default: ++pair_.counters().duplicates; return acknowledge();
  }
}

void Responder::repeat_read(const Packet& packet) {
  const Remembered* const old = recall(packet.bth.psn);
  const Reth& reth = packet.reth;
  if (old == nullptr || old->opcode != read_request || full()) return;
  const std::uint64_t from = reth.address - old->reth.address;
  const bool within = reth.key == old->reth.key && from <= old->reth.length &&
                      reth.length <= old->reth.length - from;
  const std::uint32_t packets = std::max(1u, base::divide_up(reth.length, mtu_));
  const auto first = static_cast<std::uint32_t>(psn_distance(old->psn, packet.bth.psn));
  const bool sent_elsewhere = old->map != 0 && first == 0 && reth.length == old->reth.length &&
                              !planted(Bug::changed_duplicate_dropped) &&
                              pair_.shared_map_of(reth.key) == old->map;
  const bool of_nothing = reth.length == 0 && old->reth.length == 0;  // whatever its key is now
  if ((!within && !sent_elsewhere && !of_nothing) || packets > old->packets - first) return;
  ++pair_.counters().reads_again;
  Answer answer;
  answer.kind = Answer::Kind::read;
  answer.psn = packet.bth.psn;
  answer.packets = packets;
  answer.reth = reth;
  answer.repeated = true;
  answer.shared = old->map != 0;
  answer.aeth = Aeth::ack(msn_);
  answers_.push_back(answer);
  pair_.has_work();
}

void Responder::remember(const Remembered& what) {
  if (remembered_.empty()) remembered_.resize(kRemembered);
  remembered_[remembered_next_++ % kRemembered] = what;
}

// The newest, since PSNs go round.
const Responder::Remembered* Responder::recall(std::uint32_t psn) const {
  for (std::uint32_t i = 1; i <= remembered_.size(); ++i) {
    const Remembered& old = remembered_[(remembered_next_ - i) % kRemembered];
    if (old.packets == 0) continue;
    const std::int32_t into = psn_distance(old.psn, psn);
    if (into >= 0 && into < static_cast<std::int32_t>(old.packets)) return &old;
  }
  return nullptr;
}

// One for all that came before it.
void Responder::acknowledge() {
  if (answers_.empty() || answers_.back().kind != Answer::Kind::acknowledge ||
      answers_.back().aeth.kind() != Aeth::Kind::ack) {
    if (full()) return;
    answers_.emplace_back();
  }
  answers_.back().psn = psn_plus(expected_, wire::roce::kMask24);  // the one before
  answers_.back().aeth = Aeth::ack(msn_);
  pair_.has_work();
}

void Responder::refuse(NakCode code, Status status) {
  refusing_ = true;
  refusal_ = {};
  refusal_.psn = expected_;
  refusal_.aeth = Aeth::nak(msn_, code);
  refusal_.last = true;
  why_ = status;
  answers_.push_back(refusal_);
  pair_.has_work();
}

void Responder::not_ready() {
  ++pair_.counters().not_ready;
  sequence_nak_sent_ = true;  // what is under way behind it comes again anyway
  beyond_gap_ = expected_;
  if (full()) return;
  Answer wait;
  wait.psn = expected_;
  wait.aeth = Aeth::rnr(msn_, rnr_timer(kNotReadyNs));
  if (planted(Bug::not_ready_takes_message)) done(1);
  answers_.push_back(wait);
  pair_.has_work();
}

bool Responder::transmit(std::uint32_t packets) {
  for (; !answers_.empty() && packets != 0; --packets) {
    Answer& answer = answers_.front();
    if (!send(answer)) return !answers_.empty();
    if (answer.sent != answer.packets) continue;
    const bool last = answer.last;
    answers_.pop_front();
    if (last) {
      pair_.end(why_);
      return false;
    }
  }
  return !answers_.empty();
}

// Returns false if it did not go: the port has no room, or the answer has become another.
bool Responder::send(Answer& answer) {
  if (answer.kind == Answer::Kind::read) return send_read_part(answer);
  if (!send_short(answer)) return false;
  answer.sent = 1;
  return true;
}

bool Responder::send_short(const Answer& answer) {
  Headers headers;
  const bool atomic = answer.kind == Answer::Kind::atomic;
  headers.bth.opcode = atomic ? PacketOpcode::atomic_acknowledge : PacketOpcode::acknowledge;
  headers.bth.psn = answer.psn;
  headers.aeth = answer.aeth;
  headers.atomic_ack.original = answer.old_value;
  if (pair_.begin_packet(headers, 0) == nullptr) return false;
  pair_.end_packet();
  return true;
}

bool Responder::send_read_part(Answer& answer) {
  const std::uint32_t offset = answer.sent * mtu_;
  const std::uint32_t bytes = std::min(mtu_, answer.reth.length - offset);
  const bool first = answer.sent == 0;
  const bool last = answer.sent + 1 == answer.packets;
  Headers headers;
  headers.bth.opcode = first  ? last ? read_response_only : read_response_first
                       : last ? read_response_last
                              : read_response_middle;
  headers.bth.psn = psn_plus(answer.psn, answer.sent);
  headers.aeth = answer.aeth;
  bool room = true;
  const auto read = [&](const auto& put) {
    if (answer.shared) return send_shared(answer, headers, room);
    return pair_.access_source(answer.reth.key, answer.reth.address + offset, bytes, put);
  };
  const auto put = [&](const std::byte* from) {
    std::byte* const payload = pair_.begin_packet(headers, bytes);
    room = payload != nullptr;
    if (!room) return;
    if (from != nullptr) {
      copy_from_shared(payload, from, bytes);
    } else {
      std::fill_n(payload, bytes, std::byte{0});
    }
    pair_.end_packet();
  };
  if (bytes == 0) {
    put(nullptr);
  } else if (!read(put)) {
    // Revoked since it was asked for.
    const std::uint32_t psn = headers.bth.psn;
    if (answer.repeated) {
      // It may have been answered before, and this is late: a peer that has the answer ignores it.
      answer = {};
      answer.psn = psn;
      answer.aeth = Aeth::nak(msn_, NakCode::remote_access);
      return send(answer);
    }
    answers_.clear();
    refuse(NakCode::remote_access, Status::remote_access);
    refusal_.psn = answers_.back().psn = psn;
    return false;
  }
  if (room) ++answer.sent;
  return room;
}

// Returns false if the peer may not.
bool Responder::send_shared(const Answer& answer, Headers& headers, bool& room) {
  const std::uint32_t bytes = std::min(mtu_, answer.reth.length);
  return pair_.access_shared(answer.reth.key, answer.reth.address, [&](const SharedSource& source) {
    std::byte* const payload = pair_.begin_packet(headers, bytes);
    room = payload != nullptr;
    if (!room) return;
    source.read({payload, bytes});
    pair_.end_packet();
  });
}

void Responder::flush() {
  if (!receive_) return;
  pair_.complete_received(*std::exchange(receive_, std::nullopt), Opcode::receive, Status::flushed,
                          0, nullptr);
}

}  // namespace espalier::fabric::roce
