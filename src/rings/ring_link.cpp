// SPDX-License-Identifier: Apache-2.0
#include "rings/ring_link.hpp"

#include <algorithm>

#include "base/atomic_bytes.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::rings {
namespace {

using fabric::Completion;
using fabric::WorkRequest;

constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;

/// How far `low`, the low bits of a slot's number, is ahead of `from`: a little more, or a little
/// less for what comes once more.
std::int64_t ahead(std::uint32_t low, std::uint64_t from) {
  constexpr unsigned kAbove = 32 - wire::kLinkSlotBits;
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
  const std::uint64_t request_credit_offset = offsetof(wire::LinkPage, request_credit);
  std::byte* const request_credit = memory + offsetof(wire::ConnectionPage, request_credit);
  const auto put = [&](std::uint32_t ring, std::uint64_t place, std::uint64_t count,
                       std::uint64_t peer_credit, std::byte* credit, bool out) {
    if (out) {
      outgoing_[ring] = {memory + place, count, place, page(peer_credit), credit, 0, 0, 0};
      return;
    }
    Incoming& in = incoming_[ring];
    in.slots = memory + place;
    in.count = count;
    in.credit = credit;
    in.peer_credit_offset = wire::kLinkPageOffset + peer_credit;
  };
  put(0, layout.requests(), layout.request_slots, request_credit_offset, request_credit, client);
  for (std::uint32_t i = 0; i < rings; ++i) {
    put(i, layout.responses(i), layout.response_slots,
        offsetof(wire::LinkPage, response_credits) + i * sizeof(std::uint64_t),
        memory + layout.response_side(i) + offsetof(wire::ResponseSide, credit), !client);
  }
}

void RingLink::attach(fabric::QueuePair& pair, const Peer& peer) {
  pair_ = &pair;
  peer_ = peer;
  generation_ += kGeneration;
  mirrored_.clear();
  stopped_ = false;
  for (Outgoing& ring : outgoing_) {
    // The pair before has ended: nothing is the fabric's own any more.
    ring.completed = ring.posted;
    refresh(ring);
    if (!fabric::planted(fabric::Bug::slots_not_mirrored_again)) ring.posted = ring.free;
    ring.completed = ring.posted;  // what is mirrored again is the fabric's own again
  }
  // On the first pair there is no credit to send again. A peer that does nothing yet would not
  // acknowledge it, either.
  if (generation_ != kGeneration) ask();
}

// --- sending -------------------------------------------------------------------------------------

bool RingLink::mirror() {
  if (pair_ == nullptr) return false;
  bool any = false;
  stopped_ = false;
  for (std::uint32_t i = 0; i < outgoing_.size(); ++i) any = mirror_slots(i) || any;
  for (std::uint32_t i = 0; i < incoming_.size(); ++i) any = mirror_credit(i) || any;
  return any;
}

// How many slots behind those that were posted are there to go together: they lie in one piece.
std::uint32_t RingLink::published(const Outgoing& ring) const {
  const std::uint64_t index = ring.posted & (ring.count - 1);
  const auto most =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(ring.count - index, kSlotsMax));
  const std::byte* at = ring.slots + index * wire::kRingSlotBytes;
  for (std::uint32_t i = 0; i < most; ++i, at += wire::kRingSlotBytes) {
    const auto word = base::load_shared<std::uint32_t>(at, std::memory_order_acquire);
    if (word != wire::sequence_of(ring.posted + i)) return i;
  }
  return most;
}

bool RingLink::mirror_slots(std::uint32_t number) {
  Outgoing& ring = outgoing_[number];
  bool any = false;
  while (const std::uint32_t slots = published(ring)) {
    const std::uint64_t offset = (ring.posted & (ring.count - 1)) * wire::kRingSlotBytes;
    const std::span<const std::byte> bytes(ring.slots + offset,
                                           std::size_t{slots} * wire::kRingSlotBytes);
    const std::uint64_t behind = ring.posted + slots;
    const std::uint32_t note =
        wire::to_immediate({wire::LinkNoteKind::slots, number, static_cast<std::uint32_t>(behind)});
    const bool taken =
        peer_.way == wire::LinkWay::write
            ? post(WorkRequest::write_immediate(generation_, bytes, peer_.key,
                                                peer_.base + ring.place + offset, note))
            : post(WorkRequest::send_immediate(generation_, bytes, note));
    if (!taken) break;
    mirrored_.back() = {number, behind};
    ring.posted = behind;
    any = true;
  }
  return any;
}

bool RingLink::send_close() {
  if (pair_ == nullptr || close_sent_) return true;
  mirror();
  const std::uint32_t note = wire::to_immediate({wire::LinkNoteKind::close, 0, 0});
  close_sent_ = !stopped_ && post(WorkRequest::send_immediate(generation_, {}, note).as_inline());
  return close_sent_;
}

void RingLink::ask() {
  for (Incoming& ring : incoming_) ring.must_send_credit = true;
}

bool RingLink::mirror_credit(std::uint32_t number) {
  Incoming& ring = incoming_[number];
  const auto credit = base::load_shared<std::uint64_t>(ring.credit, std::memory_order_acquire);
  if (credit == ring.credit_sent && !ring.must_send_credit) return false;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&credit, 1));
  const WorkRequest request =
      peer_.way == wire::LinkWay::write
          ? WorkRequest::write(generation_, bytes, peer_.key, peer_.base + ring.peer_credit_offset)
          : WorkRequest::send_immediate(
                generation_, bytes, wire::to_immediate({wire::LinkNoteKind::credit, number, 0}));
  if (!post(request.as_inline())) return false;
  ring.credit_sent = credit;
  ring.must_send_credit = false;
  return true;
}

bool RingLink::post(const WorkRequest& request) {
  if (mirrored_.size() < posts_max_ && pair_->post(request).taken == 1) {
    mirrored_.push_back({kNoRing, 0});
    return true;
  }
  stopped_ = true;
  return false;
}

// --- receiving -----------------------------------------------------------------------------------

void RingLink::completed(const Completion& completion) {
  const bool ours = completion.work_id == generation_ && pair_ != nullptr;
  if (!ours || completion.status != fabric::Status::success || mirrored_.empty()) return;
  const Mirrored done = mirrored_.front();
  mirrored_.pop_front();
  if (done.ring == kNoRing) return;
  Outgoing& ring = outgoing_[done.ring];
  ring.completed = std::max(ring.completed, done.slot);
  refresh(ring);
}

std::uint64_t RingLink::slots_moved() const {
  std::uint64_t moved = 0;
  for (const Outgoing& ring : outgoing_) moved += ring.free;
  for (const Incoming& ring : incoming_) moved += ring.delivered.load(std::memory_order_relaxed);
  return moved;
}

void RingLink::refresh_credits() {
  for (Outgoing& ring : outgoing_) refresh(ring);
}

// What the peer says may be anything. It cannot have read what was not posted, and what it takes
// back it has read all the same.
void RingLink::refresh(Outgoing& ring) {
  const auto peer_credit =
      base::load_shared<std::uint64_t>(ring.peer_credit, std::memory_order_acquire);
  const std::uint64_t free = fabric::planted(fabric::Bug::credit_without_delivery)
                                 ? ring.completed
                                 : std::min(peer_credit, ring.completed);
  if (free <= ring.free) return;
  ring.free = free;
  base::store_shared(ring.credit, free, std::memory_order_release);
}

// Each way has one verb for each note. Where slots come by WRITE, whoever brings some needs the key
// of this memory; a SEND would need nothing.
bool RingLink::received(const Completion& completion, std::span<const std::byte> bytes) {
  if (!completion.with_immediate) return false;
  const wire::LinkNote note = wire::to_note(completion.immediate);
  const bool placed = completion.opcode == fabric::Opcode::receive_write;
  const bool writes = note.kind != wire::LinkNoteKind::close && peer_.way == wire::LinkWay::write;
  if (placed != writes && !fabric::planted(fabric::Bug::note_by_any_verb)) return false;
  switch (note.kind) {
    case wire::LinkNoteKind::slots: {
      const std::uint32_t ring = fabric::planted(fabric::Bug::note_of_any_ring) ? 0 : note.ring;
      return ring < incoming_.size() && take_slots(incoming_[ring], note.slot, bytes, placed);
    }
    // A credit that is written comes without a note.
    case wire::LinkNoteKind::credit: return !placed && !writes && take_credit(note.ring, bytes);
    case wire::LinkNoteKind::close: peer_closed_ = true; return true;
  }
  return false;
}

bool RingLink::take_slots(Incoming& ring, std::uint32_t low, std::span<const std::byte> bytes,
                          bool placed) {
  const std::uint64_t delivered = ring.delivered.load(std::memory_order_relaxed);
  const std::int64_t more = ahead(low, delivered);
  if (more > static_cast<std::int64_t>(ring.count) &&
      !fabric::planted(fabric::Bug::note_of_any_slot)) {
    return false;
  }
  if (!placed) {
    const std::uint64_t slots = bytes.size() / wire::kRingSlotBytes;
    if (bytes.size() % wire::kRingSlotBytes != 0 || slots > kSlotsMax) return false;
    // Those that came before stay as they are: a reader may be looking at them.
    const std::uint64_t first = delivered + static_cast<std::uint64_t>(more) - slots;
    const std::uint64_t kept =
        fabric::planted(fabric::Bug::delivered_too_far) && slots > 2 ? slots - 1 : slots;
    for (std::uint64_t i = 0; i < kept && more > 0; ++i) {
      const std::uint64_t slot = first + i;
      if (static_cast<std::int64_t>(slot - delivered) < 0) continue;
      base::copy_shared(ring.slots + (slot & (ring.count - 1)) * wire::kRingSlotBytes,
                        bytes.data() + i * wire::kRingSlotBytes, wire::kRingSlotBytes);
    }
  }
  if (more > 0) {
    ring.delivered.store(delivered + static_cast<std::uint64_t>(more), std::memory_order_release);
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
  base::store_shared(ring.peer_credit, base::load_plain<std::uint64_t>(bytes.data()));
  refresh(ring);
  return true;
}

}  // namespace espalier::rings
