// SPDX-License-Identifier: Apache-2.0
// Reads and writes the slots of one ring. wire/ring.hpp defines what a slot is.
//
// Neither end blocks, and neither trusts the other: a reader copies each slot once and looks only
// at its copy; a writer accepts a credit only if it can be true. Each end only writes bytes and
// publishes slots in the other's memory: so a fabric can carry the same rings.
//
// Invariants
// I1. No slot is written before the reader has copied out what it held one lap ago (credits).
// I2. The reader's credit never counts a slot that it has not copied out, with all before it.
// I3. The reader leaves at most a quarter of the ring read but without published credit.
//
// Thread: each object one at a time; the two ends may be any two threads or processes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "base/prefetch.hpp"
#include "wire/message.hpp"
#include "wire/ring.hpp"

namespace espalier::rings {

/// Copies a slot out of memory that another process may change concurrently. The copy is complete:
/// the compiler cannot read the slot again.
inline void copy_slot(std::byte* to, const std::byte* slot) {
  if constexpr (base::kThreadSanitizer) {
    for (std::size_t i = 0; i < wire::kRingSlotBytes; i += sizeof(std::uint64_t)) {
      base::store_plain(to + i, base::load_shared<std::uint64_t>(slot + i));
    }
  } else {
    std::memcpy(to, slot, wire::kRingSlotBytes);
    asm volatile("" ::: "memory");
  }
}

/// The consumer's end.
class SlotReader {
 public:
  SlotReader() = default;
  /// `credit`: the word that publishes to the writer what has been read. `head`: the first slot to
  /// read, all before it having been read. `delivered`: the word that holds the number of the slot
  /// behind the last one delivered whole, for slots that a fabric brings; null: the writer writes
  /// them here itself.
  SlotReader(const std::byte* slots, std::uint32_t count, std::byte* credit, std::uint64_t head = 0,
             const std::atomic<std::uint64_t>* delivered = nullptr)
      : slots_(slots),
        mask_(count - 1),
        credit_(credit),
        delivered_(delivered),
        publish_every_(count / 4),
        head_(head),
        published_head_(head),
        next_(slots + (head & mask_) * wire::kRingSlotBytes) {}

  /// Whether the next slot has arrived.
  [[nodiscard]] bool ready() const {
    const std::uint64_t head = head_;  // which the load below would have read again
    const std::atomic<std::uint64_t>* const delivered = delivered_;
    return base::load_shared<std::uint32_t>(next(), std::memory_order_acquire) ==
               wire::sequence_of(head) &&
           (delivered == nullptr || head < delivered->load(std::memory_order_acquire));
  }
  /// The address of the next slot, to prefetch it.
  [[nodiscard]] const std::byte* next() const { return next_; }
  /// Copies the next slot out, and advances. Requires: ready().
  void take(std::byte* to) {
    copy_slot(to, next_);
    const std::uint64_t head = ++head_;
    next_ = slots_ + (head & mask_) * wire::kRingSlotBytes;
    if (head - published_head_ >= publish_every_) publish_head();
  }
  /// Publishes the credit: what has been read.
  void publish_head() {
    published_head_ = head_;
    base::store_shared(credit_, head_, std::memory_order_release);
  }
  [[nodiscard]] bool has_unpublished_head() const { return published_head_ != head_; }
  [[nodiscard]] std::uint64_t head() const { return head_; }

 private:
  const std::byte* slots_ = nullptr;
  std::uint64_t mask_ = 0;
  std::byte* credit_ = nullptr;
  const std::atomic<std::uint64_t>* delivered_ = nullptr;
  std::uint64_t publish_every_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t published_head_ = 0;
  const std::byte* next_ = nullptr;
};

/// The producer's view of the slots: where they are, and which may be written.
class SlotSpace {
 public:
  SlotSpace() = default;
  /// `read`: the slot behind those that the reader is known to have copied out.
  SlotSpace(std::byte* slots, std::uint32_t count, const std::byte* credit, std::uint64_t read = 0)
      : slots_(slots), count_(count), credit_(credit), seen_(read) {}

  [[nodiscard]] std::byte* slot(std::uint64_t number) const {
    return slots_ + (number & (count_ - 1)) * wire::kRingSlotBytes;
  }
  /// The same, to be written next. Another thread of this process may have written it one lap ago;
  /// that it has been read since, the reader published through its own mapping, at addresses which
  /// ThreadSanitizer does not know for the same.
  [[nodiscard]] std::byte* slot_to_write(std::uint64_t number) const {
    std::byte* const at = slot(number);
    if constexpr (base::kThreadSanitizer) {
      static_cast<void>(base::load_shared<std::uint32_t>(at, std::memory_order_acquire));
    }
    return at;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Free slots from `tail` on, by the credit that was last loaded.
  [[nodiscard]] std::uint64_t room(std::uint64_t tail) const { return seen_ + count_ - tail; }
  /// The same, after loading the credit. A credit beyond the tail, or one that decreases, cannot be
  /// true, and changes nothing.
  std::uint64_t ask_room(std::uint64_t tail) {
    const auto credit = base::load_shared<std::uint64_t>(credit_, std::memory_order_acquire);
    if (credit <= tail && credit > seen_) seen_ = credit;
    return room(tail);
  }
  /// Publishes a slot to the reader.
  void publish(std::uint64_t number) const {
    base::store_shared(slot(number), wire::sequence_of(number), std::memory_order_release);
  }

 private:
  std::byte* slots_ = nullptr;
  std::uint64_t count_ = 0;
  const std::byte* credit_ = nullptr;
  std::uint64_t seen_ = 0;
};

/// Copies few bytes, mostly 16: without a call where they are at most 32.
inline void copy_few(std::byte* to, const void* from, std::size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  if (bytes >= 16 && bytes <= 32) {
    std::byte head[16];
    std::byte tail[16];
    std::memcpy(head, source, 16);
    std::memcpy(tail, source + bytes - 16, 16);
    std::memcpy(to, head, 16);
    std::memcpy(to + bytes - 16, tail, 16);
  } else if (bytes != 0) {
    std::memcpy(to, source, bytes);
  }
}

/// How many slots ahead a writer prefetches for writing: their reader has long finished with them,
/// and the cache line has the time of so many messages to arrive.
inline constexpr std::uint64_t kAhead = 8;

/// Writes one message, piece by piece, into slots that the writer may write.
///
/// Headers are passed as words that were put together in registers. A struct that is filled field
/// by field and then copied stalls on store forwarding: that was a third of a no-op's time.
class MessageWriter {
 public:
  /// Begins at slot `number`.
  MessageWriter(const SlotSpace& space, std::uint64_t number)
      : space_(space), number_(number), at_(space.slot_to_write(number)) {}

  /// The header, first of all. The low half of its first word is left to the slot's own.
  void header(const wire::HeaderWords& words) {
    base::store_plain(at_ + 4, static_cast<std::uint32_t>(words[0] >> 32));
    for (std::size_t i = 1; i < words.size(); ++i) base::store_plain(at_ + 8 * i, words[i]);
    used_ = sizeof words;
  }
  void put(const void* from, std::size_t bytes) {
    if (bytes <= wire::kRingSlotBytes - used_) [[likely]] {
      copy_few(at_ + used_, from, bytes);
      used_ += static_cast<std::uint32_t>(bytes);
      return;
    }
    put_long(static_cast<const std::byte*>(from), bytes);
  }
  /// Publishes what is left. Returns the number of the slot behind the message.
  std::uint64_t finish() {
    space_.publish(number_);
    base::prefetch_to_write(space_.slot(number_ + kAhead));
    return number_ + 1;
  }

 private:
  void put_long(const std::byte* from, std::size_t bytes) {
    while (bytes != 0) {
      if (used_ == wire::kRingSlotBytes) next_slot();
      const std::size_t now = std::min<std::size_t>(bytes, wire::kRingSlotBytes - used_);
      std::memcpy(at_ + used_, from, now);
      used_ += static_cast<std::uint32_t>(now);
      from += now;
      bytes -= now;
    }
  }
  void next_slot() {
    space_.publish(number_);
    at_ = space_.slot_to_write(++number_);
    used_ = sizeof(std::uint32_t);
  }

  const SlotSpace& space_;
  std::uint64_t number_;
  std::byte* at_;
  std::uint32_t used_ = sizeof(std::uint32_t);
};

/// A message that a ring has no room for as a whole: written as far as there is room.
class MessageStream {
 public:
  MessageStream() = default;
  /// `message` begins with its header and lives until done().
  MessageStream(const std::byte* message, std::uint32_t bytes, std::uint64_t first_slot)
      : message_(message), bytes_(bytes), slot_(first_slot) {}

  /// Writes as many slots as there is room for. Returns how many it wrote.
  std::uint32_t write(const SlotSpace& space, std::uint64_t room) {
    std::uint32_t written = 0;
    for (; room != 0 && !done(); --room, ++written) {
      constexpr std::uint32_t kWord = sizeof(std::uint32_t);
      if (sent_ == 0) sent_ = kWord;  // the header's own sequence word
      const std::uint32_t now = std::min(bytes_ - sent_, wire::kRingSlotPayload);
      std::memcpy(space.slot_to_write(slot_) + kWord, message_ + sent_, now);
      sent_ += now;
      space.publish(slot_++);
    }
    return written;
  }
  [[nodiscard]] bool done() const { return sent_ >= bytes_; }
  /// The slot that comes next.
  [[nodiscard]] std::uint64_t slot() const { return slot_; }

 private:
  const std::byte* message_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint32_t sent_ = 0;
  std::uint64_t slot_ = 0;
};

}  // namespace espalier::rings
