// SPDX-License-Identifier: Apache-2.0
// The shard map: how a map split by key range is distributed over nodes. Each node stores it beside
// its shard, and clients route by it (docs/formats/shards.md).
//
// Shard i has the keys from its border up to the border of shard i + 1. The first border is empty,
// below all keys; the last shard is unbounded above.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace espalier::wire {

inline constexpr std::uint32_t kShardsMax = 64;
inline constexpr std::uint32_t kShardAddressBytesMax = 255;
inline constexpr std::uint32_t kShardMapVersion = 1;  // borders are fixed

///   0     8         12    14       16
///   +-----+---------+-----+--------+--------------------------------------------
///   | uid | version | own | shards | of each: border bytes, address bytes, both
///   +-----+---------+-----+--------+--------------------------------------------
struct ShardMapHeader {
  std::uint64_t uid;      // random, identifies the whole map
  std::uint32_t version;  // kShardMapVersion
  std::uint16_t own;      // the shard of the node that answers
  std::uint16_t shards;   // 1 to kShardsMax
};
static_assert(sizeof(ShardMapHeader) == 16);
static_assert(offsetof(ShardMapHeader, version) == 8 && offsetof(ShardMapHeader, shards) == 14);
static_assert(std::has_unique_object_representations_v<ShardMapHeader>);

/// One shard; its border and its address follow.
struct ShardHead {
  std::uint16_t border_bytes;
  std::uint16_t address_bytes;
};
static_assert(sizeof(ShardHead) == 4 && std::has_unique_object_representations_v<ShardHead>);

/// What is wrong with bytes that should be a shard map.
enum class ShardFault : std::uint8_t {
  invalid = 0,
  too_short = 1,        // the bytes end within a field
  too_long = 2,         // bytes follow the last shard
  unknown_version = 3,  // written by a later version
  bad_count = 4,        // no shard, or more than kShardsMax
  bad_own = 5,          // the own shard's index is out of range
  first_border = 6,     // the first border is not empty
  border_order = 7,     // a border is not above its predecessor
  border_too_long = 8,  // longer than the map's limit on keys
  bad_address = 9,      // empty, too long, or with a byte that is not printable
  address_twice = 10,   // two shards have the same address
};

[[nodiscard]] constexpr std::string_view text_of(ShardFault fault) {
  switch (fault) {
    case ShardFault::invalid: break;
    case ShardFault::too_short: return "the shard map ends too early";
    case ShardFault::too_long: return "something follows the shard map";
    case ShardFault::unknown_version: return "the shard map is of an unknown version";
    case ShardFault::bad_count: return "a map has 1 to 64 shards";
    case ShardFault::bad_own: return "the own shard is none of the map's";
    case ShardFault::first_border: return "the first shard has no border";
    case ShardFault::border_order: return "borders ascend, each above the one before";
    case ShardFault::border_too_long: return "a border is longer than keys of this map may be";
    case ShardFault::bad_address: return "an address has 1 to 255 printable characters";
    case ShardFault::address_twice: return "each shard has an address of its own";
  }
  return "";
}

/// The keys in [low, high); an empty `high` is above all keys.
struct KeyBounds {
  std::string_view low{};
  std::string_view high{};

  [[nodiscard]] bool has(std::string_view key) const {
    return key >= low && (high.empty() || key < high);
  }
  /// Whether [low, high) lies within; empty bounds are below and above all keys.
  [[nodiscard]] bool has_range(std::string_view range_low, std::string_view range_high) const {
    return range_low >= low && (high.empty() || (!range_high.empty() && range_high <= high));
  }
};

struct Shard {
  std::string low;      // its border
  std::string address;  // as clients reach its node
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// A validated shard map.
struct ShardMap {
  std::uint64_t uid = 0;
  std::uint32_t own = 0;
  std::vector<Shard> shards;

  [[nodiscard]] std::size_t size() const { return shards.size(); }
  /// The shard that has this key. Cost: a binary search.
  [[nodiscard]] std::size_t shard_of(std::string_view key) const {
    const auto above = std::ranges::upper_bound(
        shards, key, {}, [](const Shard& shard) { return std::string_view(shard.low); });
    return static_cast<std::size_t>(above - shards.begin()) - 1;  // the first border is below all
  }
  /// The shard that has the largest keys below `high`; an empty `high` is above all keys.
  [[nodiscard]] std::size_t last_below(std::string_view high) const {
    if (high.empty()) return shards.size() - 1;
    const auto from = std::ranges::lower_bound(
        shards, high, {}, [](const Shard& shard) { return std::string_view(shard.low); });
    return static_cast<std::size_t>(from - shards.begin()) - 1;
  }
  /// The key below which a shard ends; empty: unbounded.
  [[nodiscard]] std::string_view high(std::size_t shard) const {
    return shard + 1 < shards.size() ? std::string_view(shards[shard + 1].low) : std::string_view();
  }
  [[nodiscard]] KeyBounds bounds(std::size_t shard) const {
    return {shards[shard].low, high(shard)};
  }
  /// Whether both describe one map over the same nodes; `own` may differ.
  [[nodiscard]] bool same(const ShardMap& other) const {
    return uid == other.uid && shards == other.shards;
  }
};

namespace detail {

template <class T>
[[nodiscard]] bool take_shard_part(std::string_view& bytes, T& to) {
  if (bytes.size() < sizeof to) return false;
  std::memcpy(&to, bytes.data(), sizeof to);
  bytes.remove_prefix(sizeof to);
  return true;
}

[[nodiscard]] inline bool is_shard_address(std::string_view address) {
  return !address.empty() && address.size() <= kShardAddressBytesMax &&
         std::ranges::all_of(address, [](char c) { return c > ' ' && c < '\x7F'; });
}

}  // namespace detail

/// The first fault of a map; invalid: none.
[[nodiscard]] inline ShardFault fault_of(const ShardMap& map, std::uint32_t key_bytes_max) {
  const std::span<const Shard> shards(map.shards);
  if (shards.empty() || shards.size() > kShardsMax) return ShardFault::bad_count;
  if (map.own >= shards.size()) return ShardFault::bad_own;
  if (!shards.front().low.empty()) return ShardFault::first_border;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i];
    if (i != 0 && shard.low <= shards[i - 1].low) return ShardFault::border_order;
    if (shard.low.size() > key_bytes_max) return ShardFault::border_too_long;
    if (!detail::is_shard_address(shard.address)) return ShardFault::bad_address;
    const auto same = [&](const Shard& other) { return other.address == shard.address; };
    if (std::ranges::any_of(shards.first(i), same)) return ShardFault::address_twice;
  }
  return ShardFault::invalid;
}

/// Parses a shard map from untrusted bytes. Reads each field once.
[[nodiscard]] inline std::expected<ShardMap, ShardFault> read_shard_map(
    std::string_view bytes, std::uint32_t key_bytes_max) {
  const auto fail = [](ShardFault fault) { return std::unexpected(fault); };
  ShardMapHeader header{};
  if (!detail::take_shard_part(bytes, header)) return fail(ShardFault::too_short);
  if (header.version != kShardMapVersion) return fail(ShardFault::unknown_version);
  if (header.shards == 0 || header.shards > kShardsMax) return fail(ShardFault::bad_count);
  ShardMap map;
  map.uid = header.uid;
  map.own = header.own;
  map.shards.reserve(header.shards);
  for (std::uint32_t i = 0; i < header.shards; ++i) {
    ShardHead head{};
    if (!detail::take_shard_part(bytes, head)) return fail(ShardFault::too_short);
    if (std::size_t{head.border_bytes} + head.address_bytes > bytes.size()) {
      return fail(ShardFault::too_short);
    }
    map.shards.push_back({std::string(bytes.substr(0, head.border_bytes)),
                          std::string(bytes.substr(head.border_bytes, head.address_bytes))});
    bytes.remove_prefix(std::size_t{head.border_bytes} + head.address_bytes);
  }
  if (!bytes.empty()) return fail(ShardFault::too_long);
  if (const ShardFault fault = fault_of(map, key_bytes_max); fault != ShardFault::invalid) {
    return fail(fault);
  }
  return map;
}

/// Encodes a shard map. Requires: it has no fault.
[[nodiscard]] inline std::string bytes_of(const ShardMap& map) {
  std::string bytes;
  const auto add = [&bytes](const auto& part) {
    bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
  };
  add(ShardMapHeader{map.uid, kShardMapVersion, static_cast<std::uint16_t>(map.own),
                     static_cast<std::uint16_t>(map.shards.size())});
  for (const Shard& shard : map.shards) {
    add(ShardHead{static_cast<std::uint16_t>(shard.low.size()),
                  static_cast<std::uint16_t>(shard.address.size())});
    bytes += shard.low;
    bytes += shard.address;
  }
  return bytes;
}

/// Upper bound on the encoded size.
inline constexpr std::uint32_t kShardMapBytesMax =
    sizeof(ShardMapHeader) +
    kShardsMax * (sizeof(ShardHead) + std::uint32_t{65535} + kShardAddressBytesMax);

}  // namespace espalier::wire
