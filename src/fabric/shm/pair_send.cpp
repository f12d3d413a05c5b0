// SPDX-License-Identifier: Apache-2.0
// The send side of a pair: starts work requests inline or in turn, and completes them.
#include <algorithm>
#include <cerrno>

#include "base/barrier.hpp"
#include "base/clock.hpp"
#include "fabric/shm/control_packets.hpp"
#include "fabric/shm/pair.hpp"

namespace espalier::fabric::shm {
namespace {

using wire::FabricPiece;

constexpr std::uint32_t kForEver = 7;
constexpr std::size_t kAhead = 32;  // requests whose memory is asked for before their turn

FabricPiece piece_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::send: return FabricPiece::send;
    case Opcode::send_immediate: return FabricPiece::send_immediate;
    case Opcode::write: return FabricPiece::write;
    case Opcode::write_immediate: return FabricPiece::write_immediate;
    default: return FabricPiece::invalid;
  }
}

Status status_of(OneSided::Outcome outcome) {
  switch (outcome) {
    case OneSided::Outcome::invalid: return Status::remote_invalid;
    case OneSided::Outcome::too_late: return Status::remote_operation;
    default: return Status::remote_access;
  }
}

}  // namespace

std::size_t Pair::begin(std::span<const WorkRequest> requests) {
  const bool at_once = queue_.empty() && state() == State::connected;
  // One READ alone, in as few instructions as can be: how many wait for memory at a time is a
  // question of how many the processor can keep in flight.
  if (at_once && requests.size() == 1 && one_sided_.read_inline(requests[0])) [[likely]] {
    complete(requests[0], Status::success);
    return 1;
  }
  return begin_any(requests, at_once);
}

[[gnu::noinline]] std::size_t Pair::begin_any(std::span<const WorkRequest> requests, bool at_once) {
  const std::size_t taken = at_once ? run_inline(requests) : 0;
  return taken == requests.size() ? taken : begin_in_turn(requests, taken);
}

void Pair::prefetch(std::span<const WorkRequest> requests) const {
  for (const WorkRequest& request : requests) one_sided_.prefetch(request);
}

// What needs nothing but loads and stores. Returns how many were taken.
inline std::size_t Pair::run_inline(std::span<const WorkRequest> requests) {
  const std::size_t count = requests.size();
  if (count > 1) {
    for (std::size_t i = 0; i < std::min(count, kAhead); ++i) one_sided_.prefetch(requests[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) one_sided_.prefetch(requests[i + kAhead]);
    if (one_sided_.read_inline(requests[i])) [[likely]] {
      complete(requests[i], Status::success);
    } else if (!run_now(requests[i])) {
      return i;
    }
  }
  return count;
}

// The same, for all that read_inline() does not do. Returns false if the request was not taken.
[[gnu::noinline]] bool Pair::run_now(const WorkRequest& request) {
  if (state() == State::error) {
    complete(request, Status::flushed);
    return true;
  }
  if (takes_receive(request.opcode)) return false;
  std::uint64_t old_value = 0;
  const OneSided::Outcome outcome = one_sided_.run(request, old_value);
  if (outcome == OneSided::Outcome::unmapped) return false;
  if (outcome == OneSided::Outcome::done) {
    complete(request, Status::success, old_value);
  } else {
    complete(request, status_of(outcome));
    end(status_of(outcome));
  }
  return true;
}

std::size_t Pair::begin_in_turn(std::span<const WorkRequest> requests, std::size_t taken) {
  while (taken != requests.size() && queue_.push(requests[taken])) ++taken;
  if (state() == State::connected) begin_waiting();
  return taken;
}

void Pair::send_on() {
  take_done();
  if (state() == State::connected) begin_waiting();
  if (state() == State::connected) look_for_starving();
}

void Pair::take_done() {
  const auto done = base::load_shared<std::uint64_t>(
      channel_.theirs(offsetof(wire::FabricSide, done)), std::memory_order_acquire);
  if (done == completed_) return;
  // More than was sent, or less than before: a protocol violation.
  if (done < completed_ || done > sent_) return end(Status::remote_invalid);
  for (; completed_ != done; ++completed_, queue_.pop()) complete(queue_.front(), Status::success);
  starving_since_ns_ = 0;
}

void Pair::begin_waiting() {
  const std::uint64_t sent = sent_;
  const std::uint32_t written = written_.value_or(0);
  while (state() == State::connected && queue_.any_waiting()) {
    if (!(goes_by_ring(queue_.next()) ? write_next() : run_next())) break;
  }
  const bool published = sent_ != sent || written_.value_or(0) != written;
  if (published && state() == State::connected) wake_peer();
}

// Returns false if it must wait, or the pair has ended.
bool Pair::run_next() {
  if (queue_.any_begun()) return false;
  const WorkRequest request = queue_.front();
  std::uint64_t old_value = 0;
  const OneSided::Outcome outcome = one_sided_.run(request, old_value);
  if (outcome == OneSided::Outcome::unmapped) {
    ask(request.key);
    return false;
  }
  if (outcome != OneSided::Outcome::done) {
    fail_front(status_of(outcome));
    return false;
  }
  complete(request, Status::success, old_value);
  queue_.pop();
  return true;
}

// Returns false if the ring has no room for all of it now.
bool Pair::write_next() {
  const WorkRequest& request = queue_.next();
  wire::FabricPieceHead head{};
  do {
    const std::uint32_t written = written_.value_or(0);
    const std::uint32_t now = std::min(request.bytes - written, writer_.payload_max());
    if (!writer_.fits(now)) return false;
    head.bytes = now;
    if (!written_) {
      head.kind = static_cast<std::uint8_t>(piece_of(request.opcode));
      head.immediate = request.immediate;
      head.message_bytes = request.bytes;
      head.key = request.key;
      head.remote = request.remote;
    } else {
      head = {0, now, static_cast<std::uint8_t>(FabricPiece::more), {}, 0, 0, 0, 0};
    }
    writer_.write(head, request.local + written);
    written_ = written + now;
  } while (*written_ != request.bytes);
  written_.reset();
  ++sent_;
  queue_.begin_next();
  return true;
}

void Pair::fail_front(Status why) {
  complete(queue_.front(), why);
  queue_.pop();
  end(why);
}

std::shared_ptr<PeerMemory> Pair::writable_memory(RegionKey key, std::uint64_t remote,
                                                  std::uint64_t bytes) {
  if (state() != State::connected) return nullptr;
  bool asks = false;
  auto memory = one_sided_.writable(key, remote, bytes, asks);
  if (asks) ask(key);
  return memory;
}

// Whether the request whose turn it is cannot begin before this key's memory is there.
bool Pair::front_waits_for(RegionKey key) const {
  return queue_.any_waiting() && !queue_.any_begun() && queue_.next().key == key &&
         !goes_by_ring(queue_.next());
}

// Where the socket has no room, progress() tries again.
void Pair::ask(RegionKey key) {
  if (asked_ != 0) return;  // one question at a time
  link_->asked.store(key);
  if (send_ask(link_->socket.number(), key)) {
    asked_ = key;
  } else {
    link_->asked.store(0);
  }
}

// Whether the peer says that it has no receive for the oldest message, and that matters.
bool Pair::peer_starves() const {
  if (options().receive_retries == kForEver || !queue_.any_begun()) return false;
  return base::load_shared<std::uint64_t>(channel_.theirs(offsetof(wire::FabricSide, starved))) ==
         completed_ + 1;
}

void Pair::look_for_starving() {
  if (!peer_starves()) return;
  const std::uint64_t now = base::monotonic_ns();
  if (starving_since_ns_ == 0) starving_since_ns_ = now;
  if (now >= due_ns()) fail_front(Status::no_receive);
}

void Pair::wake_peer() {
  base::full_fence();
  const auto word =
      base::shared<std::uint32_t>(channel_.theirs(offsetof(wire::FabricSide, sleeping)));
  if (word.load(std::memory_order_relaxed) == 0 || word.exchange(0) == 0) return;
  // Where the socket has no room, there are packets enough in it to wake the peer.
  static_cast<void>(send_wake(link_->socket.number()));
}

}  // namespace espalier::fabric::shm
