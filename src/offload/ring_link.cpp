// SPDX-License-Identifier: Apache-2.0
#include "offload/ring_link.hpp"

#include <algorithm>

#include "base/atomic_bytes.hpp"
#include "fabric/planted.hpp"

namespace espalier::offload {
namespace {

using fabric::Completion;
using fabric::WorkRequest;

constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;

/// How far `low`, the low bits of a line's number, is ahead of `from`: a little more, or a little
/// less for what comes once more.
std::int64_t ahead(std::uint32_t low, std::uint64_t from) {
  constexpr unsigned kAbove = 32 - wire::kLinkLineBits;
  const auto difference = (low - static_cast<std::uint32_t>(from)) << kAbove;
  return static_cast<std::int32_t>(difference) >> kAbove;
}

}  // namespace

RingLink::RingLink(Side side, std::byte* memory, const wire::ConnectionLayout& layout) {
  const bool client = side == Side::client;
  const std::uint32_t rings = layout.response_rings;
  outgoing_ = std::vector<Outgoing>(client ? 1 : rings);
  incoming_ = std::vector<Incoming>(client ? rings : 1);
  const auto page = [&](std::uint64_t offset) { return memory + wire::kLinkPageOffset + offset; };
  const std::uint64_t request_told = offsetof(wire::LinkPage, request_credit);
  std::byte* const request_credit = memory + offsetof(wire::ConnectionPage, request_credit);
  const auto put = [&](std::uint32_t ring, std::uint64_t place, std::uint64_t count,
                       std::uint64_t told, std::byte* credit, bool out) {
    if (out) {
      outgoing_[ring] = {memory + place, count, place, page(told), credit, 0, 0, 0};
      return;
    }
    Incoming& in = incoming_[ring];
    in.lines = memory + place;
    in.count = count;
    in.credit = credit;
    in.told_place = wire::kLinkPageOffset + told;
  };
  put(0, layout.requests(), layout.request_lines, request_told, request_credit, client);
  for (std::uint32_t i = 0; i < rings; ++i) {
    put(i, layout.responses(i), layout.response_lines,
        offsetof(wire::LinkPage, response_credits) + i * sizeof(std::uint64_t),
        memory + layout.response_side(i) + offsetof(wire::ResponseSide, credit), !client);
  }
}

void RingLink::attach(fabric::QueuePair& pair, const Peer& peer) {
  pair_ = &pair;
  peer_ = peer;
  generation_ += kGeneration;
  carried_.clear();
  stopped_ = false;
  for (Outgoing& ring : outgoing_) {
    // The pair before has ended: nothing is the fabric's own any more.
    ring.completed = ring.posted;
    refresh(ring);
    if (!fabric::planted(fabric::Bug::lines_not_carried_again)) ring.posted = ring.free;
    ring.completed = ring.posted;  // what is carried again is the fabric's own again
  }
  // To a pair that is the first there is nothing to tell. A peer that does nothing yet would not
  // acknowledge it, either.
  if (generation_ != kGeneration) ask();
}

// --- sending -------------------------------------------------------------------------------------

bool RingLink::carry() {
  if (pair_ == nullptr) return false;
  bool any = false;
  stopped_ = false;
  for (std::uint32_t i = 0; i < outgoing_.size(); ++i) any = carry_lines(i) || any;
  for (std::uint32_t i = 0; i < incoming_.size(); ++i) any = carry_credit(i) || any;
  return any;
}

// How many lines behind those that were posted are there to go together: they lie in one piece.
std::uint32_t RingLink::published(const Outgoing& ring) const {
  const std::uint64_t slot = ring.posted & (ring.count - 1);
  const auto most =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(ring.count - slot, kLinesMax));
  const std::byte* at = ring.lines + slot * wire::kRingLineBytes;
  for (std::uint32_t i = 0; i < most; ++i, at += wire::kRingLineBytes) {
    const auto word = base::load_shared<std::uint32_t>(at, std::memory_order_acquire);
    if (word != wire::sequence_of(ring.posted + i)) return i;
  }
  return most;
}

bool RingLink::carry_lines(std::uint32_t number) {
  Outgoing& ring = outgoing_[number];
  bool any = false;
  while (const std::uint32_t lines = published(ring)) {
    const std::uint64_t offset = (ring.posted & (ring.count - 1)) * wire::kRingLineBytes;
    const std::span<const std::byte> bytes(ring.lines + offset,
                                           std::size_t{lines} * wire::kRingLineBytes);
    const std::uint64_t behind = ring.posted + lines;
    const std::uint32_t note =
        wire::to_immediate({wire::LinkNoteKind::lines, number, static_cast<std::uint32_t>(behind)});
    const bool taken =
        peer_.way == wire::LinkWay::write
            ? post(WorkRequest::write_immediate(generation_, bytes, peer_.key,
                                                peer_.base + ring.place + offset, note))
            : post(WorkRequest::send_immediate(generation_, bytes, note));
    if (!taken) break;
    carried_.back() = {number, behind};
    ring.posted = behind;
    any = true;
  }
  return any;
}

bool RingLink::say_goodbye() {
  if (pair_ == nullptr || said_goodbye_) return true;
  carry();
  const std::uint32_t note = wire::to_immediate({wire::LinkNoteKind::goodbye, 0, 0});
  said_goodbye_ = !stopped_ && post(WorkRequest::send_immediate(generation_, {}, note).as_inline());
  return said_goodbye_;
}

void RingLink::ask() {
  for (Incoming& ring : incoming_) ring.tell = true;
}

bool RingLink::carry_credit(std::uint32_t number) {
  Incoming& ring = incoming_[number];
  const auto credit = base::load_shared<std::uint64_t>(ring.credit, std::memory_order_acquire);
  if (credit == ring.credit_told && !ring.tell) return false;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&credit, 1));
  const WorkRequest request =
      peer_.way == wire::LinkWay::write
          ? WorkRequest::write(generation_, bytes, peer_.key, peer_.base + ring.told_place)
          : WorkRequest::send_immediate(
                generation_, bytes, wire::to_immediate({wire::LinkNoteKind::credit, number, 0}));
  if (!post(request.as_inline())) return false;
  ring.credit_told = credit;
  ring.tell = false;
  return true;
}

bool RingLink::post(const WorkRequest& request) {
  if (carried_.size() < posts_max_ && pair_->post(request).taken == 1) {
    carried_.push_back({kNoRing, 0});
    return true;
  }
  stopped_ = true;
  return false;
}

// --- receiving -----------------------------------------------------------------------------------

void RingLink::completed(const Completion& completion) {
  const bool ours = completion.work_id == generation_ && pair_ != nullptr;
  if (!ours || completion.status != fabric::Status::success || carried_.empty()) return;
  const Carried done = carried_.front();
  carried_.pop_front();
  if (done.ring == kNoRing) return;
  Outgoing& ring = outgoing_[done.ring];
  ring.completed = std::max(ring.completed, done.line);
  refresh(ring);
}

void RingLink::refresh_credits() {
  for (Outgoing& ring : outgoing_) refresh(ring);
}

// What the peer says may be anything. It cannot have read what was not posted, and what it takes
// back it has read all the same.
void RingLink::refresh(Outgoing& ring) {
  const auto told = base::load_shared<std::uint64_t>(ring.told, std::memory_order_acquire);
  const std::uint64_t free = fabric::planted(fabric::Bug::credit_without_landing)
                                 ? ring.completed
                                 : std::min(told, ring.completed);
  if (free <= ring.free) return;
  ring.free = free;
  base::store_shared(ring.credit, free, std::memory_order_release);
}

bool RingLink::received(const Completion& completion, std::span<const std::byte> bytes) {
  if (!completion.with_immediate) return false;
  const wire::LinkNote note = wire::to_note(completion.immediate);
  const bool placed = completion.opcode == fabric::Opcode::receive_write;
  switch (note.kind) {
    case wire::LinkNoteKind::lines: {
      const std::uint32_t ring = fabric::planted(fabric::Bug::note_of_any_ring) ? 0 : note.ring;
      return ring < incoming_.size() && take_lines(incoming_[ring], note.line, bytes, placed);
    }
    case wire::LinkNoteKind::credit: return !placed && take_credit(note.ring, bytes);
    case wire::LinkNoteKind::goodbye: goodbye_ = true; return true;
  }
  return false;
}

bool RingLink::take_lines(Incoming& ring, std::uint32_t low, std::span<const std::byte> bytes,
                          bool placed) {
  const std::uint64_t landed = ring.landed.load(std::memory_order_relaxed);
  const std::int64_t more = ahead(low, landed);
  if (more > static_cast<std::int64_t>(ring.count) &&
      !fabric::planted(fabric::Bug::note_of_any_line)) {
    return false;
  }
  if (!placed) {
    const std::uint64_t lines = bytes.size() / wire::kRingLineBytes;
    if (bytes.size() % wire::kRingLineBytes != 0 || lines > kLinesMax) return false;
    // Those that came before stay as they are: a reader may be looking at them.
    const std::uint64_t first = landed + static_cast<std::uint64_t>(more) - lines;
    const std::uint64_t kept =
        fabric::planted(fabric::Bug::landed_too_far) && lines > 2 ? lines - 1 : lines;
    for (std::uint64_t i = 0; i < kept && more > 0; ++i) {
      const std::uint64_t line = first + i;
      if (static_cast<std::int64_t>(line - landed) < 0) continue;
      base::copy_shared(ring.lines + (line & (ring.count - 1)) * wire::kRingLineBytes,
                        bytes.data() + i * wire::kRingLineBytes, wire::kRingLineBytes);
    }
  }
  if (more > 0) {
    ring.landed.store(landed + static_cast<std::uint64_t>(more), std::memory_order_release);
  }
  return true;
}

bool RingLink::take_credit(std::uint32_t number, std::span<const std::byte> bytes) {
  if (number >= outgoing_.size()) return false;
  if (bytes.size() != sizeof(std::uint64_t) &&
      !fabric::planted(fabric::Bug::credit_of_any_length)) {
    return false;
  }
  Outgoing& ring = outgoing_[number];
  base::store_shared(ring.told, base::load_plain<std::uint64_t>(bytes.data()));
  refresh(ring);
  return true;
}

}  // namespace espalier::offload
