// SPDX-License-Identifier: Apache-2.0
// The rings of `espalier-bench rings --experiment doorbell`, and the doorbells that they are given.
//
//   tail4 .. tail64   a word of 4 bytes for each ring, 4, 8, 16 or 64 bytes from the next, that
//                     counts what was published; the reader remembers what it has seen
//   bitmap            a bit for each ring; writers set it, the reader takes words whole
//   slots             nothing: the reader looks at the next slot of each ring
//
// A ring has 256 slots of 64 bytes; the last word of a slot is the number of what stands in it, so
// that nothing need be cleared. Rings begin at random places: were all at slot 0, the next slots
// would meet in one set of the cache, and looking at them would seem dearer than it is.
//
// Thread: each ring has one writer; one thread reads all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "bench/huge_memory.hpp"

namespace espalier::bench {

enum class Doorbell : std::uint8_t { tail4, tail8, tail16, tail64, bitmap, slots };

std::string_view name(Doorbell doorbell);
/// Bytes from one tail to the next; 0 where there are none.
std::uint32_t stride_of(Doorbell doorbell);

inline constexpr std::uint32_t kRingSlots = 256;
inline constexpr std::size_t kSlotBytes = 64;
inline constexpr std::size_t kPayloadWords = 7;
inline constexpr std::size_t kSequenceAt = 60;

/// What writers and the reader share.
class RingMemory {
 public:
  RingMemory(Doorbell doorbell, std::uint32_t rings, std::uint64_t seed);

  [[nodiscard]] std::uint32_t rings() const { return static_cast<std::uint32_t>(starts_.size()); }
  [[nodiscard]] std::uint32_t stride() const { return stride_; }
  /// How many slots a ring has had when the measurement begins.
  [[nodiscard]] std::uint32_t start(std::uint32_t ring) const { return starts_[ring]; }

  [[nodiscard]] std::byte* slot(std::uint32_t ring, std::uint32_t count) const {
    const std::size_t at = std::size_t{ring} * kRingSlots + count % kRingSlots;
    return slots_.data() + at * kSlotBytes;
  }
  [[nodiscard]] const std::byte* bells() const { return bells_; }
  [[nodiscard]] std::byte* tail(std::uint32_t ring) const {
    return bells_ + std::size_t{ring} * stride_;
  }
  [[nodiscard]] std::byte* bits(std::uint32_t ring) const {
    return bells_ + std::size_t{ring} / 64 * sizeof(std::uint64_t);
  }

  /// Says that a ring has now had `count` slots.
  void announce(std::uint32_t ring, std::uint32_t count) const {
    if (stride_ != 0) {
      base::store_shared(tail(ring), count, std::memory_order_release);
    } else if (doorbell_ == Doorbell::bitmap) {
      base::shared<std::uint64_t>(bits(ring))
          .fetch_or(std::uint64_t{1} << ring % 64, std::memory_order_release);
    }
  }

  /// Writes the next slot of a ring that had `count`, and announces it.
  void publish(std::uint32_t ring, std::uint32_t count, std::uint64_t value) const {
    std::byte* const to = slot(ring, count);
    for (std::size_t i = 0; i < kPayloadWords; ++i) {
      base::store_shared<std::uint64_t>(to + i * sizeof value, value + i);
    }
    base::store_shared(to + kSequenceAt, count + 1, std::memory_order_release);
    announce(ring, count + 1);
  }

 private:
  Doorbell doorbell_;
  std::uint32_t stride_;
  std::vector<std::uint32_t> starts_;
  HugeBuffer slots_;
  std::byte* bells_;  // after the slots
};

/// What the reader has seen of each ring: words, as far apart as the scan wants them.
class SeenCounts {
 public:
  SeenCounts(const RingMemory& memory, std::uint32_t stride);
  [[nodiscard]] const std::byte* data() const {
    return reinterpret_cast<const std::byte*>(lines_.data());
  }
  [[nodiscard]] std::uint32_t get(std::uint32_t ring) const {
    return base::load_plain<std::uint32_t>(data() + std::size_t{ring} * stride_);
  }
  void set(std::uint32_t ring, std::uint32_t count) {
    std::byte* const words = reinterpret_cast<std::byte*>(lines_.data());
    base::store_plain(words + std::size_t{ring} * stride_, count);
  }

 private:
  struct alignas(kSlotBytes) Line {
    std::array<std::byte, kSlotBytes> bytes{};
  };
  std::uint32_t stride_;
  std::vector<Line> lines_;
};

}  // namespace espalier::bench
