// SPDX-License-Identifier: Apache-2.0
// The regions of one peer that this process has mapped, by key.
//
// In front stands a direct-mapped array, indexed by the low bits of a key: these are the key's
// place at the peer, so the regions of a peer with few of them are all there.
//
// Invariants
// I1. What the front holds is mapped: an entry is cleared before its mapping goes.
// I2. Never more than kMappingsMax mappings, nor than bytes_max of all of them: the peer decides
//     how long its memory is; memory without pages costs the peer nothing, but this side addresses.
//
// Thread: that of the queue pair's endpoint.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "fabric/placement.hpp"
#include "fabric/types.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

/// A region of the peer, as it can be loaded from and stored to.
struct alignas(64) Window {
  std::uint64_t base = 0;  // the peer's address of its first byte
  std::uint64_t bytes = 0;
  std::byte* at = nullptr;          // where it is mapped
  const std::byte* word = nullptr;  // where the key stands while it is good
  RegionKey key = 0;
  RemoteRights rights = RemoteRights::none;
  Placement placement{};  // of what is stored there
};

/// Where the key stands in the peer's words while it is good.
[[nodiscard]] inline const std::byte* word_of(const memory::SharedMemory& words, RegionKey key) {
  return words.at((key & 0xFFFF) * sizeof(RegionKey));
}

class MappingCache {
 public:
  static constexpr std::size_t kMappingsMax = 1024;
  /// 8 TiB of the 128 TiB of addresses that a process has.
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 43;

  explicit MappingCache(std::uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  /// The region, or null: it is not mapped. Cost: a load, mostly.
  [[nodiscard]] const Window* find(RegionKey key) {
    const Window* const front = find_front(key);
    return front != nullptr ? front : find_behind(key);
  }
  /// What stands in the front where this key would: another region, or none, if it is not there.
  [[nodiscard]] const Window& front(RegionKey key) const { return front_[key % kFront]; }
  /// The same as find(), looking in the front only.
  [[nodiscard]] const Window* find_front(RegionKey key) const {
    const Window& front = front_[key % kFront];
    return front.key == key && key != 0 ? &front : nullptr;
  }
  /// Takes in a mapping, of no more than bytes_max. Those of revoked keys go; if there are still
  /// too many, or too long ones, so do others. What find() gave before is no more.
  void insert(const Window& window, memory::SharedMemory memory);
  /// What keeps a region mapped that find() gave.
  [[nodiscard]] std::shared_ptr<const memory::SharedMemory> mapping(RegionKey key) const {
    const auto found = mapped_.find(key);
    return found == mapped_.end() ? nullptr : found->second.memory;
  }
  void clear();
  [[nodiscard]] std::size_t size() const { return mapped_.size(); }

 private:
  static constexpr std::size_t kFront = 64;
  struct Mapped {
    Window window;
    std::shared_ptr<const memory::SharedMemory> memory;
  };
  [[nodiscard]] const Window* find_behind(RegionKey key);
  void make_room(std::uint64_t bytes);
  void forget(std::unordered_map<RegionKey, Mapped>::iterator entry);

  std::array<Window, kFront> front_{};
  std::unordered_map<RegionKey, Mapped> mapped_;
  std::uint64_t bytes_ = 0;  // of all mappings
  std::uint64_t bytes_max_;
};

}  // namespace espalier::fabric::shm
