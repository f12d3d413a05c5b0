// SPDX-License-Identifier: Apache-2.0
// The two rings of a memif link (fabric/memif/format.hpp): either side sends into one and receives
// from the other.
//
// The memory is shared with a peer that may write any of it at any time. So
// I1. each descriptor is copied once, and checked against its region in the copy;
// I2. a frame is copied out before it is read;
// I3. a count that the peer has moved further than the ring is long, or a descriptor that points
//     outside, is a protocol violation, which ends the link.
// This side remembers what it wrote itself, and does not read it back.
//
// Frames that the connecting side sends lie one behind the other, line by line, so that the bytes
// of a burst are few lines in a row; what it receives comes into slots of one size, for it cannot
// know how long frames will be.
//
// Thread: each ring one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/memif/format.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::memif {

/// Longest frame: the largest packet of RoCEv2 over IPv6, with a VLAN tag, in whole lines.
inline constexpr std::uint32_t kFrameBytesMax = 4288;
/// Of a slot to receive into. An odd number of lines, so that slots spread over a cache's sets.
inline constexpr std::uint32_t kSlotBytes = 69 * 64;
static_assert(kFrameBytesMax <= kSlotBytes);

using Regions = std::vector<memory::SharedMemory>;

/// A ring in memory. Requires: it lies within, aligned to a line.
class Ring {
 public:
  Ring() = default;
  Ring(std::byte* at, std::uint32_t log2_slots) : at_(at), slots_(1u << log2_slots) {}

  [[nodiscard]] static constexpr std::uint64_t bytes(std::uint32_t log2_slots) {
    return sizeof(wire::memif::RingBytes) +
           (std::uint64_t{sizeof(wire::memif::DescriptorBytes)} << log2_slots);
  }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  void begin();
  [[nodiscard]] bool is_one() const;
  [[nodiscard]] std::uint16_t head() const;
  [[nodiscard]] std::uint16_t tail() const;
  void set_head(std::uint16_t to);
  void set_tail(std::uint16_t to);
  [[nodiscard]] bool quiet() const;
  void set_quiet(bool quiet);
  [[nodiscard]] wire::memif::DescriptorBytes load(std::uint16_t number) const;
  void store(std::uint16_t number, const wire::memif::DescriptorBytes& descriptor);

 private:
  [[nodiscard]] std::byte* slot(std::uint16_t number) const;

  std::byte* at_ = nullptr;
  std::uint32_t slots_ = 0;
};

/// Whether a descriptor lies in the regions; then where.
[[nodiscard]] std::byte* find(const Regions& regions,
                              const wire::memif::DescriptorBytes& descriptor);

/// Sends. `own` is the memory to pack frames into, of the connecting side, a power of two of bytes;
/// empty: the peer says where there is room.
class SendingRing {
 public:
  SendingRing() = default;
  SendingRing(Ring ring, const Regions* regions, std::span<std::byte> own,
              std::uint32_t own_offset);

  /// Where a frame of so many bytes is to be written; null: no room now, or too long, or broken.
  std::byte* begin(std::size_t bytes);
  /// Whether there is never room for one so long: asked after begin() gave none.
  [[nodiscard]] bool too_long(std::size_t bytes) const {
    return bytes > kFrameBytesMax || (own_.empty() && seen_ != written_ && bytes > writing_.bytes);
  }
  /// It is written.
  void end();
  /// Publishes written frames. Returns whether there were any.
  bool publish();
  /// Asked after publish(): the peer sleeps.
  [[nodiscard]] bool peer_sleeps() const { return !ring_.quiet(); }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::byte* begin_packed(std::size_t bytes);
  std::byte* begin_offered(std::size_t bytes);

  Ring ring_;
  const Regions* regions_ = nullptr;
  std::span<std::byte> own_;
  std::uint32_t own_offset_ = 0;     // of `own`, in region 0
  std::vector<std::uint64_t> ends_;  // of frames in `own`, by slot: lines counted on and on
  std::uint64_t lines_written_ = 0;
  std::uint64_t lines_free_to_ = 0;
  std::uint64_t writing_line_ = 0;
  wire::memif::DescriptorBytes writing_{};
  std::uint16_t written_ = 0;  // slots
  std::uint16_t published_ = 0;
  std::uint16_t seen_ = 0;  // what the peer has said
  bool broken_ = false;
};

/// Frames that were copied out, the receiver's to change; their memory is used again with the next
/// burst.
class Arrivals {
 public:
  static constexpr std::size_t kFramesMax = 64;
  /// That may be written behind a frame: by a switch, which has it grow.
  static constexpr std::size_t kRoomBehind = 16;
  static_assert(kFrameBytesMax + kRoomBehind <= kSlotBytes);

  Arrivals() : bytes_(kFramesMax * kSlotBytes) {}
  void clear() { used_ = 0; }
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes) {
    const std::span taken(bytes_.data() + used_, bytes);
    used_ += (bytes + kRoomBehind + 63) / 64 * 64;
    return taken;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

/// Receives. `own_slots` are those of the connecting side, in region 0; empty: the peer's
/// descriptors say where frames lie.
class ReceivingRing {
 public:
  ReceivingRing() = default;
  ReceivingRing(Ring ring, const Regions* regions, std::span<std::byte> own_slots,
                std::uint32_t own_offset);
  /// Offers its own slots: when the link is up, for some listening ends begin by setting all counts
  /// to 0.
  void start() {
    if (!own_slots_.empty()) offer_slots();
  }

  /// Copies out as many frames as have come, at most `most`, and gives back their room. Those that
  /// no frame of ours can be are skipped, and counted. Requires: most <= Arrivals::kFramesMax.
  void take(std::size_t most, Arrivals& arrivals, std::vector<std::span<std::byte>>& frames);
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }
  [[nodiscard]] bool broken() const { return broken_; }

  [[nodiscard]] bool ready() const;
  /// A peer that sends after this wakes this side; what was sent before must be looked for.
  void fall_asleep();
  void rise() { ring_.set_quiet(true); }

 private:
  void offer_slots();

  Ring ring_;
  const Regions* regions_ = nullptr;
  std::span<std::byte> own_slots_;
  std::uint32_t own_offset_ = 0;
  std::uint16_t taken_ = 0;
  std::uint16_t offered_ = 0;  // of own slots
  bool in_parts_ = false;      // within a frame of several descriptors
  std::uint64_t skipped_ = 0;
  bool broken_ = false;
};

}  // namespace espalier::fabric::memif
