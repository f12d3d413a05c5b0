// SPDX-License-Identifier: Apache-2.0
// One end of a queue pair that mirrors the rings of a connection into the peer's memory.
// wire/ring_link.hpp defines what travels, and why it may be mirrored again after a lost pair.
//
// Readers and writers of rings do not see the link. A writer publishes slots in its own memory; the
// link reads their sequence words, and mirrors what is published. A SlotReader sees by
// `delivered()` how far the peer's slots are in place; the link mirrors its credit back.
//
//   writer -> slots -> mirror() ==========> received() -> delivered -> reader
//   writer <- credit <- completed() <===== mirror() <- credit <- reader
//
// Cost: all that one mirror() posts shares one doorbell and one completion
// (fabric/post_queue.hpp). Only a run of kSlotsMax slots is signalled by itself: such runs are sent
// in order, and the writer needs their slots back while later runs are still in flight.
//
// Invariants
// L1. A mirrored slot belongs to the fabric until its post has completed: the writer's credit is
//     the smaller of the peer's credit and the slots whose posts have completed.
// L2. `delivered` never counts a slot that has not been delivered whole, and never decreases.
// L3. After attach() every slot that the peer's credit does not cover is mirrored again.
//
// Thread: one at a time; readers and writers of the rings may be other threads.
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
  /// The end of the link: the client writes requests and reads responses, the node the reverse.
  enum class Side : std::uint8_t { client, node };
  /// The most slots that one post carries.
  static constexpr std::uint32_t kSlotsMax = 64;
  static constexpr std::uint32_t kMirroredBytesMax = kSlotsMax * wire::kRingSlotBytes;
  /// The most posts that one end has in flight; the other end posts more receives than that.
  static constexpr std::uint32_t kPostsMax = 128;

  /// `memory`: of a connection of this layout; outlives the link.
  RingLink(Side side, std::byte* memory, const wire::ConnectionLayout& layout);
  RingLink(const RingLink&) = delete;
  RingLink& operator=(const RingLink&) = delete;

  /// For the SlotReader of an incoming ring.
  [[nodiscard]] const std::atomic<std::uint64_t>& delivered(std::uint32_t ring) const {
    return incoming_[ring].delivered;
  }

  /// The peer's memory.
  struct Peer {
    wire::LinkWay way = wire::LinkWay::invalid;
    fabric::RegionKey key = 0;
    std::uint64_t base = 0;
  };
  /// Uses this pair, which lives until detach(), from now on. The caller passes its completions to
  /// completed() and its receives to received().
  void attach(fabric::QueuePair& pair, const Peer& peer);
  /// Requires: the pair is in the error state, or there is none.
  void detach();
  [[nodiscard]] bool attached() const { return posts_.attached(); }

  /// Posts published slots and new credits, as far as there is room. Returns whether any were.
  /// Cost: a look at each ring.
  bool mirror();
  /// Handles the completion of something that mirror() posted, and of all posts before it.
  void completed(const fabric::Completion& completion);
  /// Handles a receive. `bytes`: of a SEND, its payload. Returns false if the peer violates the
  /// protocol.
  [[nodiscard]] bool received(const fabric::Completion& completion,
                              std::span<const std::byte> bytes);
  /// Frees slots that the peer has read. For transports whose peers write their credit themselves.
  void refresh_credits();
  /// Mirrors what is published, then sends the close note, which ends the session. Returns false if
  /// there was no room: call it again. The peer has the note when busy() returns false.
  bool send_close();
  /// Whether the peer has sent its close note.
  [[nodiscard]] bool peer_closed() const { return peer_closed_; }
  /// Makes the next mirror() post the credits even if they have not changed: a probe, which a dead
  /// peer does not acknowledge.
  void ask();
  /// Whether posts are in flight, or the last mirror() found no room.
  [[nodiscard]] bool busy() const { return posts_.pending() != 0 || stopped_; }
  /// Limits the posts in flight; kPostsMax at most.
  void limit_posts(std::uint32_t posts) { posts_max_ = std::min(posts, kPostsMax); }
  /// Posts in flight.
  [[nodiscard]] std::uint32_t posts() const { return static_cast<std::uint32_t>(posts_.pending()); }
  [[nodiscard]] const fabric::PostQueue::Counts& post_counts() const { return posts_.counts(); }
  /// Counts slots delivered and slots freed: grows whenever either end makes progress.
  [[nodiscard]] std::uint64_t slots_moved() const;
  /// Whether slots behind this one of an incoming ring have been delivered.
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
    const std::byte* credit = nullptr;     // where the reader publishes what it has read
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
