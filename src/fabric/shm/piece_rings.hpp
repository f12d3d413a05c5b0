// SPDX-License-Identifier: Apache-2.0
// The shared memory of one connection, through which its messages go: a ring each way, and the
// flow-control state of each end. wire/fabric_shm.hpp draws the layout.
//
// Neither end blocks, and neither trusts the other: a head is copied once and checked in the copy,
// and numbers of the other end count only if they can be true.
//
// Invariants
// I1. No slot is written before the reader's credit shows that it copied out what it held one lap
//     ago; one slot more than a piece needs is free then, for the mark that nothing is behind it.
//
// Thread: each end one at a time; the two ends any two threads or processes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"
#include "wire/fabric_shm.hpp"

namespace espalier::fabric::shm {

class PieceWriter {
 public:
  PieceWriter() = default;
  /// `credit`: where the reader publishes how many slots it has copied out.
  PieceWriter(std::byte* slots, std::uint32_t count, const std::byte* credit)
      : slots_(slots), count_(count), credit_(credit) {}

  /// Whether there is room for a piece with so much payload. Cost: a load of shared memory where
  /// there was none yet.
  [[nodiscard]] bool fits(std::uint32_t payload_bytes) {
    const std::uint64_t needed = std::uint64_t{wire::fabric_slots(payload_bytes)} + 1;
    return room() >= needed || (ask_credit(), room() >= needed);
  }
  [[nodiscard]] std::uint32_t payload_max() const { return wire::fabric_piece_bytes_max(count_); }
  /// Publishes a piece. Its sequence word is filled in here. Requires: fits(head.bytes).
  void write(wire::FabricPieceHead head, const std::byte* payload);

 private:
  [[nodiscard]] std::uint64_t room() const { return seen_ + count_ - tail_; }
  void ask_credit();
  [[nodiscard]] std::byte* slot(std::uint64_t number) const {
    return slots_ + (number & (count_ - 1)) * wire::kFabricSlotBytes;
  }

  std::byte* slots_ = nullptr;
  std::uint32_t count_ = 0;
  const std::byte* credit_ = nullptr;
  std::uint64_t tail_ = 0;  // the slot to write next
  std::uint64_t seen_ = 0;  // slots that are known to be copied out
};

class PieceReader {
 public:
  PieceReader() = default;
  /// `credit`: where this end publishes how many slots it has copied out.
  PieceReader(const std::byte* slots, std::uint32_t count, std::byte* credit)
      : slots_(slots), count_(count), credit_(credit) {}

  /// Whether the next piece has come. Cost: a load.
  [[nodiscard]] bool ready() const {
    return base::load_shared<std::uint32_t>(slot(head_), std::memory_order_acquire) ==
           wire::fabric_sequence(head_);
  }
  /// Copies the head of the next piece. Returns false if it cannot be one. Requires: ready().
  [[nodiscard]] bool look(wire::FabricPieceHead& head) const;
  /// Copies payload of the next piece, from `offset` on. Requires: look() gave a head with so much.
  void copy(std::byte* to, std::uint32_t offset, std::uint32_t bytes) const;
  /// Goes on to the piece behind it. Requires: look() gave this head.
  void next(const wire::FabricPieceHead& head);
  /// Publishes the credit: what has been copied out.
  void publish_head();

 private:
  [[nodiscard]] const std::byte* slot(std::uint64_t number) const {
    return slots_ + (number & (count_ - 1)) * wire::kFabricSlotBytes;
  }

  const std::byte* slots_ = nullptr;
  std::uint32_t count_ = 0;
  std::byte* credit_ = nullptr;
  std::uint64_t head_ = 0;  // the slot to read next
  std::uint64_t published_head_ = 0;
};

class PieceRings {
 public:
  PieceRings() = default;
  /// Makes the memory, for the end that accepts. Errors: system.
  static Result<PieceRings> create(std::uint32_t ring_slots);
  /// Maps what the accepting end made. Errors: corrupt (it cannot be such memory), system.
  static Result<PieceRings> attach(memory::Descriptor descriptor, std::uint32_t ring_slots);

  [[nodiscard]] PieceWriter writer() const {
    return {memory_.at(wire::fabric_ring(side_, slots_)), slots_,
            theirs(offsetof(wire::FabricSide, credit))};
  }
  [[nodiscard]] PieceReader reader() const {
    return {memory_.at(wire::fabric_ring(1 - side_, slots_)), slots_,
            mine(offsetof(wire::FabricSide, credit))};
  }
  /// A field of wire::FabricSide that this end writes, or the other.
  [[nodiscard]] std::byte* mine(std::size_t field) const { return side(side_) + field; }
  [[nodiscard]] std::byte* theirs(std::size_t field) const { return side(1 - side_) + field; }
  [[nodiscard]] int descriptor() const { return memory_.descriptor(); }
  void close_descriptor() { memory_.close_descriptor(); }
  explicit operator bool() const { return static_cast<bool>(memory_); }

 private:
  [[nodiscard]] std::byte* side(std::uint32_t number) const {
    return memory_.at(offsetof(wire::FabricPage, sides) + number * sizeof(wire::FabricSide));
  }

  memory::SharedMemory memory_;
  std::uint32_t slots_ = 0;
  std::uint32_t side_ = 0;  // 0: this end connected; 1: it accepted
};

}  // namespace espalier::fabric::shm
