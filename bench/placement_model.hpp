// SPDX-License-Identifier: Apache-2.0
// A model of the memory below stores: a cache that evicts lines at random, and the memory behind
// it. It counts the memory's reads and writes, and has no time.
//
//   store, through the cache  -> [ lines, evicted at random ] -> memory
//   store, past it            -> memory
//
//   volatile memory     writes a line of 64 bytes
//   persistent memory   gathers lines in a buffer of some granules of 256 bytes; the granule that
//                       was not written for longest leaves it, and is read first if lines of it are
//                       missing [RAMBDA §III-D]
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "fabric/placement.hpp"

namespace espalier::bench {

struct ModelledTraffic {
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
};

class ModelledMemory {
 public:
  /// Size of its buffer: 16 KiB.
  static constexpr std::size_t kGranulesGathered = 64;

  explicit ModelledMemory(fabric::MemoryKind kind) : kind_(kind) {}

  void write_line(std::uint64_t line);
  [[nodiscard]] const ModelledTraffic& traffic() const { return traffic_; }

 private:
  struct Gathered {
    std::uint64_t granule = 0;
    std::uint64_t written = 0;  // number of the last write; 0: none
    std::uint32_t lines = 0;    // a bit for each
  };
  void leave(const Gathered& granule);

  const fabric::MemoryKind kind_;
  std::array<Gathered, kGranulesGathered> buffer_{};
  std::uint64_t writes_ = 0;
  ModelledTraffic traffic_;
};

class ModelledCache {
 public:
  /// Requires: at least a line.
  ModelledCache(ModelledMemory& memory, std::uint64_t bytes, std::uint64_t seed);

  void store_line(std::uint64_t line);
  /// A store that bypasses the cache.
  void store_past(std::uint64_t line);

 private:
  ModelledMemory& memory_;
  std::size_t lines_max_;
  base::Random random_;
  std::vector<std::uint64_t> lines_;
  std::unordered_map<std::uint64_t, std::size_t> where_;
};

}  // namespace espalier::bench
