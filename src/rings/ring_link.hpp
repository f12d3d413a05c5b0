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
// What one mirror() carries leaves by one doorbell, and one completion tells of all of it
// (fabric/post_queue.hpp). Only a run of slots that is as long as may be has one of its own: such
// runs come one after the other, and their slots are wanted back while the rest is on its way.
//
// Invariants
// L1. A slot that was mirrored is the fabric's own until its post has ended: the writer's credit is
//     the smaller one of the peer's credit and what is completed.
// L2. `delivered` never counts a slot that has not been delivered whole, and never goes back.
// L3. After attach() all is mirrored again that the peer's credit does not cover.
//
// Thread: one at a time, but for readers and writers of the rings.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/post_queue.hpp"
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
  /// Requires: the pair has ended, or there is none.
  void detach();
  [[nodiscard]] bool attached() const { return posts_.attached(); }

  /// Posts what there is to carry, as far as there is room. Returns whether there was anything.
  /// Cost: a look at each ring.
  bool mirror();
  /// Something that mirror() posted has ended, and all before it.
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
  [[nodiscard]] bool busy() const { return posts_.pending() != 0 || stopped_; }
  /// Of how many posts this end makes use at a time; kPostsMax at most.
  void limit_posts(std::uint32_t posts) { posts_max_ = std::min(posts, kPostsMax); }
  /// And how many it has in flight.
  [[nodiscard]] std::uint32_t posts() const { return static_cast<std::uint32_t>(posts_.pending()); }
  [[nodiscard]] const fabric::PostQueue::Counts& post_counts() const { return posts_.counts(); }
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
    std::uint64_t credit_sent = 0;         // stays until it is posted
    bool must_send_credit = false;         // though it was sent before
    std::atomic<std::uint64_t> delivered{0};
  };
  [[nodiscard]] bool mirror_slots(std::uint32_t ring);
  [[nodiscard]] bool mirror_credit(std::uint32_t ring);
  [[nodiscard]] bool has_room();
  [[nodiscard]] std::uint32_t published(const Outgoing& ring) const;
  void refresh(Outgoing& ring);
  [[nodiscard]] bool take_slots(Incoming& ring, std::uint32_t low, std::span<const std::byte> bytes,
                                bool placed);
  [[nodiscard]] bool take_credit(std::uint32_t ring, std::span<const std::byte> bytes);

  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  fabric::PostQueue posts_;
  Peer peer_;
  bool attached_before_ = false;
  bool stopped_ = false;  // the last mirror() found no room
  bool peer_closed_ = false;
  bool close_sent_ = false;
  std::uint32_t posts_max_ = kPostsMax;
};

}  // namespace espalier::rings
