// SPDX-License-Identifier: Apache-2.0
// What a pair asks of its peer: work requests become records, and answers their completions.
#include <algorithm>

#include "base/atomic_bytes.hpp"
#include "fabric/ofi/pair.hpp"
#include "fabric/ofi/send_buffer.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::Operands;
using wire::ofi::RecordHead;
using wire::ofi::RecordKind;

constexpr std::uint32_t kForEver = 7;

RecordKind kind_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::read: return RecordKind::read;
    case Opcode::write: return RecordKind::write;
    case Opcode::write_immediate: return RecordKind::write_immediate;
    case Opcode::fetch_add: return RecordKind::fetch_add;
    case Opcode::compare_swap: return RecordKind::compare_swap;
    case Opcode::send: return RecordKind::send;
    case Opcode::send_immediate: return RecordKind::send_immediate;
    default: return RecordKind::invalid;
  }
}

bool brings_back(Opcode opcode) { return opcode == Opcode::read || is_atomic(opcode); }

}  // namespace

std::size_t Pair::begin(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  while (taken != requests.size() && queue_.push(requests[taken])) ++taken;
  return taken;
}

void Pair::ask_on() {
  const std::uint32_t limit = std::min(options().reads_in_flight, kReadsInFlightMax);
  while (queue_.any_waiting()) {
    const WorkRequest& next = queue_.next();
    if (!written_ && next.fence && reads_ != 0) return;
    if (brings_back(next.opcode) && reads_ >= limit) return;
    if (!ask_next()) return;
  }
}

std::uint32_t Pair::window_left() const {
  return static_cast<std::uint32_t>(wire::ofi::kWindowBytes - (asked_bytes_ - peer_did_));
}

// Returns false if not all of it could be sent now.
bool Pair::ask_next() {
  const WorkRequest& request = queue_.next();
  const bool atomic = is_atomic(request.opcode);
  const std::uint32_t carries = atomic                           ? std::uint32_t{sizeof(Operands)}
                                : request.opcode == Opcode::read ? 0
                                                                 : request.bytes;
  do {
    const std::uint32_t written = written_.value_or(0);
    const std::uint32_t left = carries - written;
    const std::uint32_t window = window_left();
    if (window < wire::ofi::record_bytes(std::min(left, SendBuffer::kPartMin))) return false;
    const auto room = channel_->out().room(
        std::min<std::uint32_t>(left, window - std::uint32_t{sizeof(RecordHead)}));
    if (!room) return false;
    RecordHead head{};
    head.bytes = *room;
    if (head.bytes != left) {
      // So that no word of the peer's is written in two parts.
      head.bytes -= static_cast<std::uint32_t>((request.remote + written + head.bytes) % 8);
    }
    if (written_) {
      head.kind = static_cast<std::uint8_t>(RecordKind::more);
    } else {
      head.kind = static_cast<std::uint8_t>(kind_of(request.opcode));
      head.message_bytes = request.bytes;
      head.immediate = has_immediate(request.opcode) ? request.immediate : 0;
      head.key = request.key;
      head.remote = request.remote;
    }
    std::byte* const payload = channel_->out().add(head);
    if (atomic) {
      base::store_plain(payload, Operands{request.operand, request.compare});
    } else if (head.bytes != 0) {
      std::copy_n(request.local + written, head.bytes, payload);
    }
    asked_bytes_ += wire::ofi::record_bytes(head.bytes);
    written_ = written + head.bytes;
  } while (*written_ != carries);
  written_.reset();
  if (brings_back(request.opcode)) ++reads_;
  queue_.begin_next();
  return true;
}

void Pair::take_answer(const Record& record) {
  if (record.kind() == RecordKind::starved) {
    if (!at_peer()) return end(Status::remote_invalid);
    if (starving_since_ns_ == 0) starving_since_ns_ = std::max<std::uint64_t>(now_ns_, 1);
    return;
  }
  if (!queue_.any_begun()) return end(Status::remote_invalid);
  const WorkRequest& oldest = queue_.front();
  switch (record.kind()) {
    case RecordKind::data: return take_data(record);
    case RecordKind::value: {
      if (!is_atomic(oldest.opcode) || record.payload.size() != kAtomicBytes) break;
      const auto old_value = base::load_plain<std::uint64_t>(record.payload.data());
      if (oldest.local != nullptr) base::store_plain(oldest.local, old_value);
      return complete_oldest(old_value);
    }
    case RecordKind::done:
      if (brings_back(oldest.opcode) || !record.payload.empty()) break;
      return complete_oldest();
    default: break;
  }
  end(Status::remote_invalid);
}

void Pair::take_data(const Record& record) {
  const WorkRequest& oldest = queue_.front();
  const std::size_t bytes = record.payload.size();
  if (oldest.opcode != Opcode::read || bytes > oldest.bytes - read_ ||
      (bytes == 0 && oldest.bytes != 0)) {
    return end(Status::remote_invalid);
  }
  if (bytes != 0) std::copy_n(record.payload.data(), bytes, oldest.local + read_);
  read_ += static_cast<std::uint32_t>(bytes);
  if (read_ == oldest.bytes) complete_oldest();
}

void Pair::complete_oldest(std::uint64_t old_value) {
  const WorkRequest& oldest = queue_.front();
  if (brings_back(oldest.opcode)) --reads_;
  complete(oldest, Status::success, old_value);
  queue_.pop();
  read_ = 0;
  starving_since_ns_ = 0;
}

std::uint64_t Pair::due_ns() const {
  if (state() != State::connected || !at_peer()) return 0;
  const bool gives_up = starving_since_ns_ != 0 && options().receive_retries != kForEver;
  const std::uint64_t starved =
      starving_since_ns_ + options().receive_retries * options().timeout_ns;
  return gives_up ? std::min(starved, ask_again_ns_) : ask_again_ns_;
}

// Keepalive probes: a live peer answers, whether it can execute the waiting request or not. Each
// try waits twice as long as the one before it: the provider reports a broken connection, so this
// is for a peer that hangs, and not for one that has no core just now.
void Pair::look_at_clock(std::uint64_t now_ns) {
  if (!at_peer()) {
    ask_again_ns_ = 0;
    return;
  }
  if (heard_ || ask_again_ns_ == 0) {
    heard_ = false;
    tries_ = 0;
    ask_again_ns_ = now_ns + options().timeout_ns;
  }
  if (starving_since_ns_ != 0 && options().receive_retries != kForEver &&
      now_ns >= starving_since_ns_ + options().receive_retries * options().timeout_ns) {
    return fail_oldest(Status::no_receive);
  }
  if (now_ns < ask_again_ns_) return;
  if (tries_++ == options().retries) return fail_oldest(Status::retry_exceeded);
  ask_again_ns_ = now_ns + (options().timeout_ns << tries_);
  channel_->out().probe();
}

}  // namespace espalier::fabric::ofi
