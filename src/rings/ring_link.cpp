// SPDX-License-Identifier: Apache-2.0
#include "rings/ring_link.hpp"

#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::rings {
namespace {

using fabric::Completion;
using fabric::PostQueue;
using fabric::WorkRequest;

constexpr std::uint32_t kSignalEvery = RingLink::kPostsMax / 4;

/// The context of a post: the ring, and the number of the slot behind those that it carries.
/// kNoSlots for a credit or a close note.
constexpr std::uint64_t kNoSlots = 0;
constexpr unsigned kSlotBits = 60;
static_assert(wire::kResponseRingsMax <= 1u << (64 - kSlotBits));
constexpr std::uint64_t run_of(std::uint32_t ring, std::uint64_t behind) {
  return std::uint64_t{ring} << kSlotBits | behind;
}

/// How far `low`, the low bits of a slot's number, is ahead of `from`; negative for a slot that is
/// delivered again.
std::int64_t ahead(std::uint32_t low, std::uint64_t from) {
  constexpr unsigned kAbove = 32 - wire::kLinkSlotBits;
  const auto difference = (low - static_cast<std::uint32_t>(from)) << kAbove;
  return static_cast<std::int32_t>(difference) >> kAbove;
}

}  // namespace

RingLink::RingLink(Side side, std::byte* memory, const wire::ConnectionLayout& layout)
    : posts_(kPostsMax, kSignalEvery) {
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
  posts_.attach(pair);
  peer_ = peer;
  stopped_ = false;
  close_sent_ = false;  // the pair before may have lost it
  for (Outgoing& ring : outgoing_) {
    // The previous pair is in the error state: the fabric owns none of the slots.
    ring.completed = ring.posted;
    refresh(ring);
    if (!fabric::planted(fabric::Bug::slots_not_mirrored_again)) ring.posted = ring.free;
    ring.completed = ring.posted;  // the fabric owns again what is mirrored again
  }
  // On the first pair there is no credit to send again, and a peer that has not yet posted receives
  // would not acknowledge one.
  if (std::exchange(attached_before_, true)) ask();
}

void RingLink::detach() {
  if (!attached()) return;
  posts_.detach();
  static_cast<void>(posts_.ends());  // all of it is mirrored again by the next pair
}

// --- sending -------------------------------------------------------------------------------------

bool RingLink::mirror() {
  if (!attached()) return false;
  bool any = false;
  stopped_ = false;
  for (std::uint32_t i = 0; i < outgoing_.size(); ++i) any = mirror_slots(i) || any;
  for (std::uint32_t i = 0; i < incoming_.size(); ++i) any = mirror_credit(i) || any;
  return posts_.ring() || any;
}

bool RingLink::has_room() {
  if (posts_.pending() < posts_max_ && posts_.has_room()) return true;
  stopped_ = true;
  return false;
}

// Published slots behind the posted ones that one post can carry: they are contiguous.
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
    if (!has_room()) break;
    const std::uint64_t offset = (ring.posted & (ring.count - 1)) * wire::kRingSlotBytes;
    const std::span<const std::byte> bytes(ring.slots + offset,
                                           std::size_t{slots} * wire::kRingSlotBytes);
    const std::uint64_t behind = ring.posted + slots;
    const std::uint32_t note =
        wire::to_immediate({wire::LinkNoteKind::slots, number, static_cast<std::uint32_t>(behind)});
    const auto signal =
        slots == kSlotsMax ? PostQueue::Signal::by_itself : PostQueue::Signal::with_others;
    const WorkRequest request =
        peer_.way == wire::LinkWay::write
            ? WorkRequest::write_immediate(0, bytes, peer_.key, peer_.base + ring.place + offset,
                                           note)
            : WorkRequest::send_immediate(0, bytes, note);
    if (!posts_.add(request, run_of(number, behind), signal)) break;
    ring.posted = behind;
    any = true;
  }
  return any;
}

bool RingLink::send_close() {
  if (!attached()) return true;
  if (!close_sent_) {
    mirror();
    const std::uint32_t note = wire::to_immediate({wire::LinkNoteKind::close, 0, 0});
    close_sent_ = !stopped_ && has_room() &&
                  posts_.add(WorkRequest::send_immediate(0, {}, note).as_inline(), kNoSlots);
  }
  posts_.ring();
  return close_sent_;
}

void RingLink::ask() {
  for (Incoming& ring : incoming_) ring.must_send_credit = true;
}

bool RingLink::mirror_credit(std::uint32_t number) {
  Incoming& ring = incoming_[number];
  const auto credit = base::load_shared<std::uint64_t>(ring.credit, std::memory_order_acquire);
  if (credit == ring.credit_sent && !ring.must_send_credit) return false;
  if (!has_room()) return false;
  ring.credit_sent = credit;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&ring.credit_sent, 1));
  const WorkRequest request =
      peer_.way == wire::LinkWay::write
          ? WorkRequest::write(0, bytes, peer_.key, peer_.base + ring.peer_credit_offset)
          : WorkRequest::send_immediate(
                0, bytes, wire::to_immediate({wire::LinkNoteKind::credit, number, 0}));
  ring.must_send_credit = !posts_.add(request.as_inline(), kNoSlots);
  return !ring.must_send_credit;
}

// --- receiving -----------------------------------------------------------------------------------

void RingLink::completed(const Completion& completion) {
  posts_.completed(completion);
  for (const PostQueue::Ended& end : posts_.ends()) {
    if (end.how != fabric::PostEnd::done || end.owner == kNoSlots) continue;
    Outgoing& ring = outgoing_[end.owner >> kSlotBits];
    ring.completed = end.owner & ((std::uint64_t{1} << kSlotBits) - 1);
    refresh(ring);
  }
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

// The peer's credit is untrusted. A peer cannot have read what was not posted, and a credit that
// decreases changes nothing.
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

// Each way has one verb for each note. Where slots come by WRITE, the peer needs the key of this
// memory to deliver any; a SEND would need none.
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
    // Slots delivered before are not overwritten: a reader may be copying them.
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
