// SPDX-License-Identifier: Apache-2.0
// Audit of sorted blocks: items in order within the fences, and chunks that lead to them.
#include <algorithm>

#include "kinds/map/write/audit_parts.hpp"

namespace espalier::tree {
namespace {

std::uint32_t length_bytes(std::uint32_t bytes) { return bytes < 0x80 ? 1 : 2; }

// Checks one item by itself. False if the bytes behind it cannot be parsed.
bool audit_item(NodeAudit& a, const PlacedItem& placed) {
  const auto& [offset, item] = placed;
  if (!a.report.expect(!item.key.empty(), "the item at ", offset,
                       " has no key or leaves the block")) {
    return false;
  }
  a.report.expect(item.key.size() <= a.g.key_bytes_max, "the key at ", offset, " is too long");
  a.report.expect(item.out_of_line || item.value_bytes <= a.g.inline_value_bytes_max,
                  "the value at ", offset, " is too long to be inline");
  const auto* begin = reinterpret_cast<const char*>(a.node.bytes() + offset);
  const auto lengths = static_cast<std::uint32_t>(item.key.data() - begin);
  const std::uint32_t coded = item.out_of_line ? std::uint32_t{wire::kOutOfLine} : item.value_bytes;
  a.report.expect(
      lengths == length_bytes(static_cast<std::uint32_t>(item.key.size())) + length_bytes(coded),
      "the lengths at ", offset, " are not as short as they can be");
  const char* end = item.value + item.value_bytes;
  const char* next = reinterpret_cast<const char*>(a.node.bytes() + item.end);
  const auto taken = static_cast<std::uint32_t>(end - begin);
  a.report.expect(offset + ((taken + a.g.unit_mask) & ~a.g.unit_mask) == item.end, "the item at ",
                  offset, " does not end where the next begins");
  a.report.expect(std::all_of(end, std::max(end, next), [](char byte) { return byte == 0; }),
                  "the bytes behind the item at ", offset, " are not 0");
  return true;
}

void audit_order(NodeAudit& a, const PlacedItem& placed, const PlacedItem* before) {
  const std::string_view key = placed.item.key;
  a.report.expect(before == nullptr || compare_keys(before->item.key, key) < 0, "the key at ",
                  placed.offset, " is not above the one before it");
  a.report.expect(compare_keys(a.place.low, key) <= 0 &&
                      (a.place.high.empty() || compare_keys(key, a.place.high) < 0),
                  "the key at ", placed.offset, " is outside the fences");
}

// The first item that begins in or behind a chunk, and whether it begins in the chunk.
struct ChunkFirst {
  const PlacedItem* item = nullptr;
  bool inside = false;
};

void audit_chunk(NodeAudit& a, std::uint32_t chunk, const ChunkFirst& first,
                 const KeyPrefixMap& map) {
  std::uint64_t head = 0xFFFF;
  std::uint32_t start = 0xFF;
  if (first.item != nullptr) {
    const std::string_view key = first.item->item.key;
    head =
        map(key_prefix_of(key.substr(std::min<std::size_t>(a.header.prefix_bytes, key.size())))) >>
        48;
    if (first.inside) {
      start =
          (first.item->offset - a.g.sorted_begin - (chunk << a.g.chunk_shift)) >> a.g.unit_shift;
    }
  }
  a.report.expect(a.node.chunk_key_prefix(chunk) == head, "the head of chunk ", chunk,
                  " is not that of its first item");
  const auto stored = std::to_integer<std::uint32_t>(a.node.bytes()[a.g.starts_begin + chunk]);
  a.report.expect(stored == start, "the start of chunk ", chunk, " is not its first item's");
}

void audit_chunks(NodeAudit& a, std::span<const PlacedItem> items) {
  const std::uint32_t bytes = a.header.sorted_end - a.g.sorted_begin;
  a.report.expect(a.header.chunks == (bytes == 0 ? 0 : ((bytes - 1) >> a.g.chunk_shift) + 1),
                  "its number of chunks does not fit its sorted block");
  const auto word = [&](const PlacedItem& placed) {
    const std::string_view key = placed.item.key;
    return key_prefix_of(key.substr(std::min<std::size_t>(a.header.prefix_bytes, key.size())));
  };
  const KeyPrefixMap map = a.node.key_prefix_map();
  if (!items.empty()) audit_scale(a, word(items.front()), word(items.back()));
  std::size_t at = 0;
  for (std::uint32_t chunk = 0; chunk < a.g.chunks_max; ++chunk) {
    const std::uint32_t begin = a.g.sorted_begin + (chunk << a.g.chunk_shift);
    while (at < items.size() && items[at].offset < begin) ++at;
    ChunkFirst first;
    if (at < items.size()) {
      first = {&items[at], items[at].offset < begin + (1u << a.g.chunk_shift)};
    }
    audit_chunk(a, chunk, first, map);
  }
}

}  // namespace

std::vector<PlacedItem> audit_sorted(NodeAudit& a) {
  std::vector<PlacedItem> items;
  const std::uint32_t end = a.header.sorted_end;
  if (!a.report.expect(
          end >= a.g.sorted_begin && end <= a.g.node_bytes - 8 && end <= a.header.fence_begin,
          "its sorted block does not lie between starts and fences")) {
    return items;
  }
  for (std::uint32_t offset = a.g.sorted_begin; offset < end;) {
    const PlacedItem placed{offset, a.node.sorted_item(offset, end)};
    if (!audit_item(a, placed)) return items;
    audit_order(a, placed, items.empty() ? nullptr : &items.back());
    items.push_back(placed);
    offset = placed.item.end;
  }
  a.report.expect(a.header.items == items.size(), "it counts ", std::uint64_t{a.header.items},
                  " sorted items and has ", items.size());
  audit_chunks(a, items);
  return items;
}

}  // namespace espalier::tree
