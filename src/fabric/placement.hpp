// SPDX-License-Identifier: Apache-2.0
// Placement of the bytes of a WRITE on the machine that they are written to: into the processor's
// cache, or past it [RAMBDA §III-D, §IV-B, Fig. 5 and 6: adaptive DDIO].
//
//                        volatile memory         persistent memory
//   adaptive (default)   cache                   past it, and a fence before the acknowledgement
//   cache                cache                   cache: not durable until it is written back
//   memory               past it                 past it
//
// The paper's network card knows the kind of memory of each registered region, and sets a bit in
// the bus packets (TPH). Here programs place the bytes: the responder of `sim`, `roce` and `ofi`,
// and over `shm` the requester itself.
//
// A medium is written in whole granules of 256 bytes. Lines that are evicted from a cache arrive in
// arbitrary order, so each may cost a granule; stores past the cache arrive in order.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace espalier::fabric {

/// What a region is registered as.
enum class MemoryKind : std::uint8_t { volatile_memory, persistent };

enum class PlacementPolicy : std::uint8_t { adaptive, cache, memory };

[[nodiscard]] constexpr std::string_view name(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::adaptive: return "adaptive";
    case PlacementPolicy::cache: return "cache";
    case PlacementPolicy::memory: return "memory";
  }
  return "?";
}

[[nodiscard]] constexpr std::optional<PlacementPolicy> parse_placement_policy(
    std::string_view text) {
  using enum PlacementPolicy;
  for (const PlacementPolicy policy : {adaptive, cache, memory}) {
    if (text == name(policy)) return policy;
  }
  return std::nullopt;
}

/// How the bytes of a region are placed. As it stands: by ordinary stores, and nothing is counted.
struct Placement {
  MemoryKind kind = MemoryKind::volatile_memory;
  bool past_cache = false;

  /// Whether a completed WRITE is durable, if its transport declares it (Properties).
  [[nodiscard]] constexpr bool is_durable() const {
    return kind == MemoryKind::persistent && past_cache;
  }
  [[nodiscard]] constexpr bool is_ordinary() const {
    return kind == MemoryKind::volatile_memory && !past_cache;
  }
  friend constexpr bool operator==(const Placement&, const Placement&) = default;
};

[[nodiscard]] constexpr Placement placement_of(MemoryKind kind, PlacementPolicy policy) {
  const bool past_cache = policy == PlacementPolicy::memory ||
                          (policy == PlacementPolicy::adaptive && kind == MemoryKind::persistent);
  return {kind, past_cache};
}

/// What a persistent medium writes at a time.
inline constexpr std::uint32_t kGranuleBytes = 256;

/// WRITEs that were placed. Those into volatile memory through the cache are not counted.
struct PlacedCounts {
  std::uint64_t past_cache_bytes = 0;  ///< into memory of both kinds
  std::uint64_t persistent_bytes = 0;  ///< into persistent memory, either way
  /// Of persistent memory that WRITEs past the cache have touched. One that begins in the granule
  /// in which the last one ended goes on in it, as a medium combines them.
  std::uint64_t granules = 0;
  /// Of persistent memory, stored through the cache: each may come to the medium by itself.
  std::uint64_t cached_lines = 0;

  PlacedCounts& operator+=(const PlacedCounts& other) {
    past_cache_bytes += other.past_cache_bytes;
    persistent_bytes += other.persistent_bytes;
    granules += other.granules;
    cached_lines += other.cached_lines;
    return *this;
  }
  /// What was placed since `before`.
  PlacedCounts& operator-=(const PlacedCounts& before) {
    past_cache_bytes -= before.past_cache_bytes;
    persistent_bytes -= before.persistent_bytes;
    granules -= before.granules;
    cached_lines -= before.cached_lines;
    return *this;
  }
  /// Bytes that the medium writes for each that was asked for; 0: none was.
  [[nodiscard]] constexpr double write_amplification() const {
    if (persistent_bytes == 0) return 0;
    return static_cast<double>((granules + cached_lines) * kGranuleBytes) /
           static_cast<double>(persistent_bytes);
  }
};

class PlacedCounter {
 public:
  /// Of a whole WRITE. Cost: of volatile memory through the cache, nothing. Requires: bytes.
  void count(const std::byte* at, std::uint64_t bytes, Placement placement) {
    if (!placement.is_ordinary()) count_placed(at, bytes, placement);
  }
  [[nodiscard]] PlacedCounts counts() const;

 private:
  void count_placed(const std::byte* at, std::uint64_t bytes, Placement placement);

  std::atomic<std::uint64_t> past_cache_bytes_ = 0;
  std::atomic<std::uint64_t> persistent_bytes_ = 0;
  std::atomic<std::uint64_t> granules_ = 0;
  std::atomic<std::uint64_t> cached_lines_ = 0;
  std::atomic<std::uint64_t> last_granule_ = ~std::uint64_t{0};
};

/// Where a WRITE goes, if it may.
struct WriteTarget {
  std::byte* at = nullptr;
  Placement placement;

  explicit operator bool() const { return at != nullptr; }
};

}  // namespace espalier::fabric
