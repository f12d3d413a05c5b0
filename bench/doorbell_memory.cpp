// SPDX-License-Identifier: Apache-2.0
#include "bench/doorbell_memory.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kStartsBelow = 1 << 16;

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
}

std::size_t slots_bytes(std::uint32_t rings) {
  return std::size_t{rings} * kRingSlots * kSlotBytes;
}

// Room for any doorbell, so that all of them lie in memory of the same size.
std::size_t bells_bytes(std::uint32_t rings) { return std::size_t{rings} * kSlotBytes; }

}  // namespace

std::string_view name(Doorbell doorbell) {
  switch (doorbell) {
    case Doorbell::tail4: return "tail4";
    case Doorbell::tail8: return "tail8";
    case Doorbell::tail16: return "tail16";
    case Doorbell::tail64: return "tail64";
    case Doorbell::bitmap: return "bitmap";
    case Doorbell::slots: return "slots";
  }
  return "?";
}

std::uint32_t stride_of(Doorbell doorbell) {
  switch (doorbell) {
    case Doorbell::tail4: return 4;
    case Doorbell::tail8: return 8;
    case Doorbell::tail16: return 16;
    case Doorbell::tail64: return 64;
    case Doorbell::bitmap:
    case Doorbell::slots: break;
  }
  return 0;
}

RingMemory::RingMemory(Doorbell doorbell, std::uint32_t rings, std::uint64_t seed)
    : doorbell_(doorbell),
      stride_(stride_of(doorbell)),
      starts_(rings),
      slots_(slots_bytes(rings) + bells_bytes(rings)),
      bells_(slots_.data() + slots_bytes(rings)) {
  ESPALIER_ASSERT(rings > 0);
  std::memset(slots_.data(), 0, slots_.bytes());  // no page is to be taken while the clock runs
  base::Random random(seed);
  for (std::uint32_t ring = 0; ring < rings; ++ring) {
    // Not 0, or the zeros of a fresh slot could be the number of what it had last.
    starts_[ring] = static_cast<std::uint32_t>(random.between(1, kStartsBelow));
    if (stride_ != 0) announce(ring, starts_[ring]);
  }
}

SeenCounts::SeenCounts(const RingMemory& memory, std::uint32_t stride)
    : stride_(stride), lines_(whole_lines(std::size_t{memory.rings()} * stride) / kSlotBytes) {
  for (std::uint32_t ring = 0; ring < memory.rings(); ++ring) set(ring, memory.start(ring));
}

}  // namespace espalier::bench
