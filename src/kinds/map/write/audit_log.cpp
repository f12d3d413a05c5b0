// SPDX-License-Identifier: Apache-2.0
// Audit of log blocks: entries where the slots say, in the order of versions, with hints that sort
// them without comparing keys; and only 0xFF behind them.
#include <algorithm>

#include "kinds/map/write/audit_parts.hpp"

namespace espalier::tree {
namespace {

using Entries = std::vector<LogItem>;

std::uint32_t entry_units(const LogItem& entry) {
  const std::size_t bytes = sizeof(wire::LogEntry) + entry.key.size() + entry.value_bytes;
  return static_cast<std::uint32_t>((bytes + wire::kLogUnitBytes - 1) / wire::kLogUnitBytes);
}

bool audit_room(NodeAudit& a, wire::LockWord lock) {
  // Readers find the log behind the sorted block; log_begin must agree.
  const std::uint32_t begin = a.header.log_begin;
  const std::uint32_t end = a.header.log_end;
  a.report.expect(begin == ((a.header.sorted_end + 7u) & ~7u),
                  "its log does not begin behind its sorted block");
  const std::uint32_t room_end = std::min<std::uint32_t>(a.header.fence_begin, a.g.node_bytes - 8);
  const std::uint32_t log_bytes = a.g.leaf_log_bytes(a.node.sorted_end() - a.g.sorted_begin,
                                                     a.header.items, !a.node.has_high_fence());
  a.report.expect(end == std::max(begin, std::min(begin + log_bytes, room_end & ~7u)),
                  "its log does not end where its room ends");
  a.report.expect(lock.bits >> 48 == 0, "the unused bits of its lock word are not 0");
  return a.report.expect(lock.entries() <= a.g.log_slots,
                         "its log has too many entries: ", lock.entries()) &&
         a.report.expect(lock.entries() == 0 || begin + lock.units() * wire::kLogUnitBytes <= end,
                         "its log is longer than its room");
}

// Reads the entries in the order in which they were written; stops at an invalid one.
Entries read_entries(NodeAudit& a, wire::LockWord lock) {
  Entries entries;
  std::uint32_t position = 0;
  for (std::uint32_t i = 0; i < lock.entries(); ++i) {
    const auto slot = base::load_plain<std::uint16_t>(a.node.bytes() + a.g.slots_begin + 2 * i);
    const std::uint32_t offset = a.header.log_begin + position * wire::kLogUnitBytes;
    if (!a.report.expect((slot & 0xFFu) == position, "log slot ", i,
                         " does not point behind the entry before it") ||
        !a.report.expect(offset + sizeof(wire::LogEntry) <= a.node.log_end(), "log entry ", i,
                         " leaves the log")) {
      return entries;
    }
    const LogItem entry = a.node.log_item_at(i, offset, wire::kLive);
    if (!a.report.expect(!entry.key.empty(), "log entry ", i, " has no key or leaves the log")) {
      return entries;
    }
    a.report.expect(base::load_plain<std::uint16_t>(a.node.bytes() + offset +
                                                    offsetof(wire::LogEntry, reserved)) == 0,
                    "the unused bytes of log entry ", i, " are not 0");
    a.report.expect(slot >> 8 == tag_of(entry.key), "log slot ", i,
                    " does not carry its key's tag");
    position += entry_units(entry);
    entries.push_back(entry);
  }
  a.report.expect(position == lock.units(), "its entries take ", position,
                  " units of log, it says ", lock.units());
  return entries;
}

void audit_unwritten(NodeAudit& a, wire::LockWord lock) {
  const std::byte* bytes = a.node.bytes();
  const auto unwritten = [](std::byte byte) { return byte == std::byte{0xFF}; };
  const std::byte* slots = bytes + a.g.slots_begin;
  a.report.expect(std::all_of(slots + std::size_t{2} * lock.entries(),
                              slots + std::size_t{2} * a.g.log_slots, unwritten),
                  "a log slot behind the last entry is written");
  const std::byte* places = bytes + a.g.places_begin;
  a.report.expect(std::all_of(places + std::size_t{2} * lock.entries(),
                              places + std::size_t{2} * a.g.log_slots, unwritten),
                  "a log place behind the last entry is written");
  const std::uint32_t begin = a.header.log_begin + lock.units() * wire::kLogUnitBytes;
  const std::uint32_t end = a.node.log_end();
  a.report.expect(begin >= end || std::all_of(bytes + begin, bytes + end, unwritten),
                  "its log behind the last entry is not filled with 0xFF");
}

void audit_versions(NodeAudit& a, const Entries& entries) {
  std::uint64_t before = a.header.created;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t version = entries[i].version;
    if (!a.map.options.versions) {
      a.report.expect(version == 0, "log entry ", i, " has a version although versions are off");
      continue;
    }
    // Only writes of one batch share a version; all are newer than the leaf.
    a.report.expect(version >= before && version > a.header.created, "the version of log entry ", i,
                    " does not ascend");
    a.report.expect(version <= a.map.clock.taken(), "the version of log entry ", i,
                    " was not taken yet");
    before = version;
  }
}

void audit_entry(NodeAudit& a, const Entries& entries, std::size_t i,
                 std::span<const PlacedItem> sorted) {
  const LogItem& entry = entries[i];
  a.report.expect(compare_keys(a.place.low, entry.key) <= 0 &&
                      (a.place.high.empty() || compare_keys(entry.key, a.place.high) < 0),
                  "the key of log entry ", i, " is outside the fences");
  a.report.expect(entry.key.size() <= a.g.key_bytes_max &&
                      (entry.out_of_line || entry.value_bytes <= a.g.inline_value_bytes_max),
                  "log entry ", i, " is too long");
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), entry.key,
                                   [](const PlacedItem& item, std::string_view key) {
                                     return compare_keys(item.item.key, key) < 0;
                                   });
  const bool exact = at != sorted.end() && at->item.key == entry.key;
  a.report.expect(entry.place == (at == sorted.end() ? a.header.sorted_end : at->offset),
                  "the place of log entry ", i, " is not the first sorted item not below it");
  const auto earlier = std::span(entries).first(i);
  const auto below = std::count_if(earlier.begin(), earlier.end(), [&](const LogItem& other) {
    return compare_keys(other.key, entry.key) < 0;
  });
  const bool again = std::any_of(earlier.begin(), earlier.end(),
                                 [&](const LogItem& other) { return other.key == entry.key; });
  a.report.expect(entry.order_hint == below, "the order hint of log entry ", i, " is wrong");
  a.report.expect(((entry.flags & wire::kLogShadowsSorted) != 0) == exact, "log entry ", i,
                  " is wrong about shadowing a sorted item");
  a.report.expect(((entry.flags & wire::kLogSameKeyNext) != 0) == again, "log entry ", i,
                  " is wrong about the next entry having its key");
  a.report.expect(entry.flags < 2 * wire::kLogSameKeyNext, "log entry ", i, " has an unknown flag");
  a.report.expect(!entry.erase() || (entry.value_bytes == 0 && !entry.out_of_line), "log entry ", i,
                  " erases and has a value");
}

wire::ValueRef value_ref(const char* at) {
  wire::ValueRef value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The newest entry of each key, and the items that no entry replaced. Computed without the hints
// and flags under audit.
LeafContent newest_content(const Entries& entries, std::span<const PlacedItem> sorted) {
  LeafContent content;
  std::vector<std::string_view> logged;
  for (std::size_t i = entries.size(); i-- > 0;) {
    const LogItem& entry = entries[i];
    if (std::find(logged.begin(), logged.end(), entry.key) != logged.end()) continue;
    logged.push_back(entry.key);
    if (entry.erase()) continue;
    ++content.items;
    if (entry.out_of_line) content.values.push_back(value_ref(entry.value));
  }
  std::sort(logged.begin(), logged.end());
  for (const PlacedItem& placed : sorted) {
    if (std::binary_search(logged.begin(), logged.end(), placed.item.key)) continue;
    ++content.items;
    if (placed.item.out_of_line) content.values.push_back(value_ref(placed.item.value));
  }
  return content;
}

}  // namespace

LeafContent audit_log(NodeAudit& a, std::span<const PlacedItem> sorted) {
  const wire::LockWord lock{a.header.lock};
  Entries entries;
  if (audit_room(a, lock)) {
    entries = read_entries(a, lock);
    if (entries.size() == lock.entries()) audit_unwritten(a, lock);
  }
  audit_versions(a, entries);
  for (std::size_t i = 0; i < entries.size(); ++i) audit_entry(a, entries, i, sorted);
  return newest_content(entries, sorted);
}

}  // namespace espalier::tree
