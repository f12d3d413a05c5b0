// SPDX-License-Identifier: Apache-2.0
// A node's first cache line, read once: what a walk needs to decide on its way down.
//
// Changing fields are read as atomics, and the compiler may not merge two atomic reads, so walks
// that read a field repeatedly pay each time. Here each word is read once.
#pragma once

#include <cstdint>

#include "kinds/map/node/node_view.hpp"

namespace espalier::tree {

struct NodeHead {
  std::uint64_t identity;  // map id below, generation above
  std::uint64_t created;
  std::uint64_t superseded;
  std::uint64_t low_key_prefix;
  std::uint64_t high_key_prefix;
  std::uint64_t base;
  wire::LockWord lock;
  std::uint64_t shape;  // kind, level, key_prefix_shift, chunks, prefix_bytes, sorted_end

  static NodeHead read(const std::byte* at) {
    const auto word = [at](std::size_t i) { return base::load_shared<std::uint64_t>(at + 8 * i); };
    NodeHead head;
    // In this order: if the identity is that of the expected node, and the node is live, all later
    // reads are of that node too, whatever the buffer's earlier use.
    head.identity = base::load_shared<std::uint64_t>(at, std::memory_order_acquire);
    head.superseded = base::load_shared<std::uint64_t>(at + 16, std::memory_order_acquire);
    head.created = word(1);
    head.low_key_prefix = word(3);
    head.high_key_prefix = word(4);
    head.base = word(5);
    head.lock = {base::load_shared<std::uint64_t>(at + 48, std::memory_order_acquire)};
    head.shape = word(7);
    return head;
  }

  [[nodiscard]] std::uint32_t map_id() const { return static_cast<std::uint32_t>(identity); }
  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(identity >> 32);
  }
  [[nodiscard]] bool leaf() const {
    return (shape & 0xFF) == static_cast<std::uint64_t>(wire::NodeKind::leaf);
  }
  [[nodiscard]] std::uint32_t level() const { return (shape >> 8) & 0xFF; }
  [[nodiscard]] KeyPrefixMap key_prefix_map() const {
    return {base, static_cast<std::uint32_t>(shape >> 16) & 63};
  }
  [[nodiscard]] std::uint32_t chunks() const { return (shape >> 24) & 0xFF; }
  [[nodiscard]] std::uint32_t prefix_bytes() const { return (shape >> 32) & 0xFFFF; }
  [[nodiscard]] std::uint32_t sorted_end() const { return static_cast<std::uint32_t>(shape >> 48); }

  /// Of an interior node: number of leading bytes that its fences share.
  [[nodiscard]] std::uint32_t fences_share() const { return wire::FencesShare{lock.bits}.bytes(); }

  /// Normalises a key that begins with the node's prefix; formats keep the first 16 or 32 bits.
  [[nodiscard]] std::uint64_t scaled(const SearchKey& key) const {
    return key_prefix_map()(key.head_after(prefix_bytes()));
  }
  /// The version check of DESIGN idea 1, for a node whose identity was checked.
  [[nodiscard]] Visibility current_at(std::uint64_t read_version, bool versions) const {
    if (created <= read_version && read_version < superseded && versions) [[likely]] {
      if (read_version != kNewest || superseded == wire::kLive) return Visibility::answers;
    }
    if (superseded == 0) return Visibility::nothing;
    if (!versions || read_version == kNewest) {
      return superseded == wire::kLive ? Visibility::answers : Visibility::newer;
    }
    return created > read_version ? Visibility::older : Visibility::newer;
  }
};
static_assert(offsetof(wire::NodeHeader, lock) == 48 && offsetof(wire::NodeHeader, kind) == 56);
static_assert(offsetof(wire::NodeHeader, level) == 57);
static_assert(offsetof(wire::NodeHeader, key_prefix_shift) == 58);
static_assert(offsetof(wire::NodeHeader, chunks) == 59);

}  // namespace espalier::tree
