// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/interior_builder.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::tree {
namespace {

std::uint32_t groups_of(std::size_t children) {
  return static_cast<std::uint32_t>((children + wire::kGroupChildren - 1) / wire::kGroupChildren);
}

// The prefix of all separators, cut to the room there is for the part that the fences do not share.
std::string_view prefix_of(const Geometry& g, std::span<const Child> children,
                           std::uint32_t fences_share) {
  if (children.size() < 2) return {};
  const std::string_view first = children[1].separator;
  const std::size_t common = base::common_prefix_bytes(first, children.back().separator);
  return first.substr(0, std::min<std::size_t>(common, fences_share + g.prefix_room()));
}

// The range of a node's key prefixes extends one child's width beyond its first and last separator,
// so that keys of the first and last child map to distinct prefixes and need no comparison.
KeyPrefixMap key_prefix_map_for(std::span<const Child> children, std::string_view prefix,
                                std::string_view low, std::string_view high) {
  if (children.size() < 2) return {0, 63};
  const auto word = [prefix](std::string_view key) {
    return key_prefix_of(key.substr(prefix.size()));
  };
  const std::uint64_t first = word(children[1].separator);
  const std::uint64_t last = word(children.back().separator);
  std::uint64_t begin = low.starts_with(prefix) ? word(low) : 0;
  std::uint64_t end = high.starts_with(prefix) && !high.empty() ? word(high) : ~std::uint64_t{0};
  if (children.size() > 2) {
    const std::uint64_t width = (last - first) / (children.size() - 2);
    if (width < first - begin) begin = first - width;
    if (width < end - last) end = last + width;
  }
  return KeyPrefixMap::covering(begin, end);
}

}  // namespace

void gather_children(const NodeView& node, std::vector<Child>& children) {
  const std::uint32_t count = node.children();
  for (std::uint32_t i = 0; i < count; ++i) {
    children.push_back({i == 0 ? node.low_fence() : node.separator(i), node.child(i)});
  }
}

std::uint64_t interior_bytes(const Geometry& g, std::span<const Child> children) {
  std::uint64_t bytes = g.groups_begin + groups_of(children.size()) * sizeof(wire::ChildGroup);
  bytes += 2 * children.size();
  for (std::size_t i = 0; i < children.size(); ++i) {
    bytes += 2 + (i == 0 ? 0 : children[i].separator.size());
  }
  return bytes;
}

bool interior_fits(const Geometry& g, std::span<const Child> children, std::string_view low,
                   std::string_view high) {
  return groups_of(children.size()) <= g.groups_max &&
         interior_bytes(g, children) + fence_room(low, high) <= g.node_bytes;
}

void build_interior(std::byte* buffer, const Geometry& g, std::uint32_t level,
                    std::span<const Child> children, const NodeFrame& frame) {
  ESPALIER_ASSERT(!children.empty() && interior_fits(g, children, frame.low, frame.high));
  wire::NodeHeader header{};
  write_fences(buffer, g, frame, header);
  const std::uint32_t fences_share = header.prefix_bytes;
  const std::string_view prefix = prefix_of(g, children, fences_share);
  const auto key_prefix_word = [&](std::size_t i) {
    return key_prefix_of(children[i].separator.substr(prefix.size()));
  };
  const KeyPrefixMap map = key_prefix_map_for(children, prefix, frame.low, frame.high);
  const std::uint32_t groups = groups_of(children.size());
  const auto slots_at =
      static_cast<std::uint32_t>(g.groups_begin + groups * sizeof(wire::ChildGroup));
  auto key_at = static_cast<std::uint32_t>(slots_at + 2 * children.size());
  for (std::uint32_t group = 0; group < groups; ++group) {
    wire::ChildGroup segment;
    std::memset(&segment, 0xFF, sizeof segment.key_prefixes);
    std::memset(segment.children, 0, sizeof segment.children);
    for (std::uint32_t i = 0; i < wire::kGroupChildren; ++i) {
      const std::size_t index = group * wire::kGroupChildren + i;
      if (index >= children.size()) break;
      const std::string_view key = index == 0 ? std::string_view{} : children[index].separator;
      const std::uint64_t head = index == 0 ? 0 : map(key_prefix_word(index));
      segment.key_prefixes[i] = static_cast<std::uint32_t>(head >> 32);
      segment.children[i] = children[index].lid;
      base::store_plain(buffer + slots_at + 2 * index, static_cast<std::uint16_t>(key_at));
      base::store_plain(buffer + key_at, static_cast<std::uint16_t>(key.size()));
      if (!key.empty()) std::memcpy(buffer + key_at + 2, key.data(), key.size());
      key_at += 2 + static_cast<std::uint32_t>(key.size());
    }
    std::memcpy(buffer + g.groups_begin + group * sizeof segment, &segment, sizeof segment);
    base::store_plain(buffer + g.group_key_prefixes_begin + 2 * group,
                      static_cast<std::uint16_t>(segment.key_prefixes[0] >> 16));
  }
  std::memset(buffer + g.group_key_prefixes_begin + 2 * groups, 0xFF,
              std::size_t{2} * (g.groups_max - groups));
  std::memset(buffer + g.prefix_begin, 0, g.prefix_room());
  if (prefix.size() > fences_share) {
    std::memcpy(buffer + g.prefix_begin, prefix.data() + fences_share,
                prefix.size() - fences_share);
  }
  header.lock = wire::FencesShare::of(fences_share).bits;
  header.prefix_bytes = static_cast<std::uint16_t>(prefix.size());
  header.kind = wire::NodeKind::interior;
  header.level = static_cast<std::uint8_t>(level);
  header.key_prefix_base = map.base;
  header.key_prefix_shift = static_cast<std::uint8_t>(map.shift);
  header.chunks = static_cast<std::uint8_t>(groups);
  header.sorted_end = static_cast<std::uint16_t>(slots_at);
  header.items = static_cast<std::uint16_t>(children.size());
  write_header(buffer, header);
}

std::string_view shortest_separator(std::string_view left, std::string_view right) {
  std::size_t common = 0;
  while (common < left.size() && common < right.size() && left[common] == right[common]) ++common;
  return right.substr(0, common + 1);
}

}  // namespace espalier::tree
