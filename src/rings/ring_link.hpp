// SPDX-License-Identifier: Apache-2.0
// Mirrors rings over a queue pair: one end of it. What travels, and why it may be mirrored again,
// stands in wire/ring_link.hpp.
//
// Writers and readers of rings know nothing of it. A writer publishes slots in its own memory; the
// link sees by their sequence words how far it is, and mirrors them. A reader's SlotReader sees by
// `delivered()` how far the peer's slots are in place; the credit that it stores is mirrored back.
//
//   writer -> slots -> mirror() ==========> received() -> delivered -> reader
//   writer <- credit <- completed() <===== mirror() <- credit <- reader
//
// Invariants
// L1. A slot that was mirrored is the fabric's own until its completion: the writer's credit is the
//     smaller one of the peer's credit and what is completed.
// L2. `delivered` never counts a slot that has not been delivered whole, and never goes back.
// L3. After attach() all is mirrored again that the peer's credit does not cover.
//
// Thread: one at a time, but for readers and writers of the rings.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fabric/queue_pair.hpp"
#include "wire/ring.hpp"
#include "wire/ring_link.hpp"

namespace espalier::rings {

class RingLink {
 public:
  /// Whose end it is: the client writes requests and reads responses, the node the other way.
  enum class Side : std::uint8_t { client, node };
  /// Slots that travel together, at most.
  static constexpr std::uint32_t kSlotsMax = 64;
  static constexpr std::uint32_t kMirroredBytesMax = kSlotsMax * wire::kRingSlotBytes;
  /// Posts that one end may have in flight; the other has more receives than that.
  static constexpr std::uint32_t kPostsMax = 128;

  /// `memory`: of a connection of this layout; outlives the link.
  RingLink(Side side, std::byte* memory, const wire::ConnectionLayout& layout);
  RingLink(const RingLink&) = delete;
  RingLink& operator=(const RingLink&) = delete;

  /// For the SlotReader of a ring that comes in.
  [[nodiscard]] const std::atomic<std::uint64_t>& delivered(std::uint32_t ring) const {
    return incoming_[ring].delivered;
  }

  /// The peer's memory.
  struct Peer {
    wire::LinkWay way = wire::LinkWay::invalid;
    fabric::RegionKey key = 0;
    std::uint64_t base = 0;
  };
  /// Carries by this pair from now on, which lives until detach(). Its completions are handed to
  /// completed(), its receives to received().
  void attach(fabric::QueuePair& pair, const Peer& peer);
  void detach() { pair_ = nullptr; }
  [[nodiscard]] bool attached() const { return pair_ != nullptr; }

  /// Posts what there is to carry, as far as there is room. Returns whether anything was posted.
  /// Cost: a look at each ring.
  bool mirror();
  /// Something that mirror() posted has ended.
  void completed(const fabric::Completion& completion);
  /// Something has come from the peer. `bytes`: of a SEND, its payload. Returns false if the peer
  /// does not keep to the protocol.
  [[nodiscard]] bool received(const fabric::Completion& completion,
                              std::span<const std::byte> bytes);
  /// Lets writers have what the peer has read. For transports whose peers write that by themselves.
  void refresh_credits();
  /// Mirrors what there is, and then sends the close note, which ends the session; to be called
  /// again while it returns false, for there was no room. The peer has heard when busy() ends.
  bool send_close();
  /// Whether the peer has sent its close note.
  [[nodiscard]] bool peer_closed() const { return peer_closed_; }
  /// Has the next mirror() say something, whether there is news or not: a peer that is gone will
  /// not acknowledge it.
  void ask();
  /// Whether something is mirrored just now, or could not be for want of room.
  [[nodiscard]] bool busy() const { return !mirrored_.empty() || stopped_; }
  /// Of how many posts this end makes use at a time; kPostsMax at most.
  void limit_posts(std::uint32_t posts) { posts_max_ = std::min(posts, kPostsMax); }
  /// And how many it has in flight.
  [[nodiscard]] std::uint32_t posts() const { return static_cast<std::uint32_t>(mirrored_.size()); }
  /// Grows whenever a slot has come, or the peer tells that it has read one.
  [[nodiscard]] std::uint64_t slots_moved() const;
  /// Whether slots have been delivered behind this one of a ring that comes in.
  [[nodiscard]] bool delivered_behind(std::uint32_t ring, std::uint64_t slot) const {
    return slot < incoming_[ring].delivered.load(std::memory_order_relaxed);
  }

 private:
  struct Outgoing {
    std::byte* slots = nullptr;
    std::uint64_t count = 0;
    std::uint64_t place = 0;           // of the first slot, in the memory
    std::byte* peer_credit = nullptr;  // where the peer's credit lands
    std::byte* credit = nullptr;       // where the writer looks for it
    std::uint64_t posted = 0;          // the slot behind those that were
    std::uint64_t completed = 0;
    std::uint64_t free = 0;  // what stands in `credit`
  };
  struct Incoming {
    std::byte* slots = nullptr;
    std::uint64_t count = 0;
    const std::byte* credit = nullptr;     // where the reader tells what he has read
    std::uint64_t peer_credit_offset = 0;  // where that lands, in the peer's memory
    std::uint64_t credit_sent = 0;
    bool must_send_credit = false;  // though it was sent before
    std::atomic<std::uint64_t> delivered{0};
  };
  struct Mirrored {
    std::uint32_t ring;  // kNoRing: it was a credit, or the close note
    std::uint64_t slot;  // behind the last
  };

  static constexpr std::uint32_t kNoRing = ~std::uint32_t{0};

  [[nodiscard]] bool mirror_slots(std::uint32_t ring);
  [[nodiscard]] bool mirror_credit(std::uint32_t ring);
  [[nodiscard]] bool post(const fabric::WorkRequest& request);
  [[nodiscard]] std::uint32_t published(const Outgoing& ring) const;
  void refresh(Outgoing& ring);
  [[nodiscard]] bool take_slots(Incoming& ring, std::uint32_t low, std::span<const std::byte> bytes,
                                bool placed);
  [[nodiscard]] bool take_credit(std::uint32_t ring, std::span<const std::byte> bytes);

  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  fabric::QueuePair* pair_ = nullptr;
  Peer peer_;
  std::uint64_t generation_ = 0;   // of attach(): completions of an earlier pair change nothing
  std::deque<Mirrored> mirrored_;  // posted and not completed, in order
  bool stopped_ = false;           // the last mirror() found no room
  bool peer_closed_ = false;
  bool close_sent_ = false;
  std::uint32_t posts_max_ = kPostsMax;
};

}  // namespace espalier::rings
