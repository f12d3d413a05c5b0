// SPDX-License-Identifier: Apache-2.0
#include "tree/leaf_scan.hpp"

#include <algorithm>

#include "tree/planted.hpp"

namespace espalier::tree {
namespace {

// Whether some log entry, visible or not, belongs before a sorted item in [begin, end).
bool log_reaches_into(const NodeView& leaf, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  std::uint32_t inside = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint32_t at = leaf.log_offset(i);
    const auto back =
        base::load_plain<std::uint16_t>(leaf.bytes() + at + offsetof(wire::LogEntry, back));
    inside |= (at == 0 ? 1u : 0u) | (back - begin < end - begin ? 1u : 0u);
  }
  return inside != 0;
}

}  // namespace

// The slots of the visible entries in key order, only the newest of each key.
void LeafScan::sort_visible_log(std::uint64_t read_version) {
  const NodeView leaf(leaf_, *geometry_);
  log_first_ = log_last_ = 0;
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  std::uint32_t visible = 0;  // versions ascend in the log: stop at the first that is too new
  while (visible < entries && leaf.log_item(visible, read_version).version != wire::kLive) {
    ++visible;
  }
  if (visible == 0) return;
  std::uint8_t all[wire::kLogSlotsMax];
  sort_log(leaf, visible, all);
  for (std::uint32_t i = 0; i < visible; ++i) {
    order_[log_last_++] = all[i];
    std::uint8_t flags = leaf.log_item(all[i], read_version).flags;
    while ((flags & wire::kLogSameKeyNext) != 0 && i + 1 < visible) {
      flags = leaf.log_item(all[++i], read_version).flags;
    }
  }
}

// Drops the log entries outside the bounds. An entry that points to another item than the bound
// does lies on that item's side; only entries that point to the same item are compared.
void LeafScan::bound_log(const SearchKey* low, Position low_at, const SearchKey* high,
                         Position high_at) {
  const NodeView leaf(leaf_, *geometry_);
  const auto before = [&](std::uint32_t index, const SearchKey& bound, Position at) {
    const LogItem item = leaf.log_item(order_[index], wire::kLive);
    if (item.back != at.offset) return item.back < at.offset;
    return compare_keys(item.key, bound.view()) < 0;
  };
  while (low != nullptr && log_first_ < log_last_ && before(log_first_, *low, low_at)) {
    ++log_first_;
  }
  while (high != nullptr && log_first_ < log_last_ && !before(log_last_ - 1, *high, high_at)) {
    --log_last_;
  }
}

void LeafScan::look_at_next_entry() {
  stop_ = end_;
  if (log_first_ == log_last_) return;
  next_ = NodeView(leaf_, *geometry_).log_item(order_[log_first_], wire::kLive);
  stop_ = std::min<std::uint32_t>(end_, next_.back);
}

void LeafScan::begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                     const SearchKey* low, const SearchKey* high) {
  leaf_ = leaf.bytes();
  geometry_ = &leaf.geometry();
  created_ = leaf.created();
  gathered_.clear();
  log_first_ = log_last_ = 0;
  const std::uint32_t sorted_end = leaf.sorted_end();
  Position low_at{geometry_->sorted_begin, false};
  Position high_at{sorted_end, false};
  if (low != nullptr) low_at = lower_bound(leaf, *low, probe_leaf(leaf, *low, kit));
  if (high != nullptr) high_at = lower_bound(leaf, *high, probe_leaf(leaf, *high, kit));
  offset_ = low_at.offset;
  end_ = std::max(low_at.offset, high_at.offset);
  sort_visible_log(read_version);
  bound_log(low, low_at, high, high_at);
  look_at_next_entry();
}

bool LeafScan::take_few(const NodeView& leaf, const SearchKey& low, const LeafProbe& probe,
                        std::uint32_t few, Item* items) {
  const std::uint32_t begin = lower_bound(leaf, low, probe).offset;
  const std::uint32_t sorted_end = leaf.sorted_end();
  const std::uint64_t created = leaf.created();
  std::uint32_t offset = begin;
  for (std::uint32_t count = 0; count < few; ++count) {
    if (offset >= sorted_end) return false;
    const SortedItem item = leaf.sorted_item(offset, sorted_end);
    if (item.out_of_line || item.key.empty()) return false;
    items[count] = {item.key, {item.value, item.value_bytes}, created};
    offset = item.end;
  }
  return !log_reaches_into(leaf, begin, offset);
}

// Takes sorted items as long as they have the lengths of the first: then the place of the next one
// does not depend on what was just read, and the reads overlap.
std::uint32_t LeafScan::take_alike(Item* items, std::uint32_t room) {
  constexpr std::uint32_t kAhead = 768;
  const auto lengths = base::load_plain<std::uint16_t>(leaf_ + offset_);
  const std::uint32_t key_bytes = lengths & 0xFFu;
  const std::uint32_t value_bytes = lengths >> 8;
  if ((lengths & 0x8080) != 0 || key_bytes == 0) return 0;
  const std::uint32_t step =
      (2 + key_bytes + value_bytes + geometry_->unit_mask) & ~geometry_->unit_mask;
  const auto* at = reinterpret_cast<const char*>(leaf_) + offset_;
  std::uint32_t count = 0;
  std::uint32_t offset = offset_;
  while (count < room && offset + step <= stop_ &&
         base::load_plain<std::uint16_t>(reinterpret_cast<const std::byte*>(at)) == lengths) {
    __builtin_prefetch(at + kAhead);
    items[count++] = {{at + 2, key_bytes}, {at + 2 + key_bytes, value_bytes}, created_};
    at += step;
    offset += step;
  }
  offset_ = offset;
  return count;
}

std::uint32_t LeafScan::take(Item* items, std::uint32_t room, std::uint64_t& out_of_line) {
  const NodeView leaf(leaf_, *geometry_);
  const std::uint32_t sorted_end = leaf.sorted_end();
  out_of_line = 0;
  std::uint32_t count = 0;
  while (count < room) {
    if (offset_ < stop_) {
      count += take_alike(items + count, room - count);
      if (count == room || offset_ >= stop_) continue;
      const SortedItem item = leaf.sorted_item(offset_, sorted_end);
      offset_ = item.end;
      if (item.key.empty()) continue;  // malformed
      out_of_line |= std::uint64_t{item.out_of_line ? 1u : 0u} << count;
      items[count++] = {item.key, {item.value, item.value_bytes}, created_};
      continue;
    }
    if (log_first_ == log_last_) {
      if (offset_ >= end_) break;
      stop_ = end_;
      continue;
    }
    const LogItem entry = next_;
    ++log_first_;
    if ((entry.flags & wire::kLogShadowsSorted) != 0 && offset_ < end_ && offset_ == entry.back) {
      offset_ = leaf.sorted_item(offset_).end;
    }
    look_at_next_entry();
    if (entry.erase() && !planted(Bug::ignore_erase_marks)) continue;
    out_of_line |= std::uint64_t{entry.out_of_line ? 1u : 0u} << count;
    items[count++] = {entry.key, {entry.value, entry.value_bytes}, entry.version};
  }
  return count;
}

// Moves the items of the last chunk that has any into gathered_, and the log entries among them.
void LeafScan::gather_last_chunk() {
  const NodeView leaf(leaf_, *geometry_);
  const std::uint32_t stop = end_;
  std::uint32_t begin = offset_;
  if (offset_ < end_) {
    std::uint32_t chunk = (end_ - 1 - geometry_->sorted_begin) >> geometry_->chunk_shift;
    while (chunk > 0 && (leaf.chunk_start(chunk) == 0 || leaf.chunk_start(chunk) >= end_)) --chunk;
    begin = std::max(offset_, leaf.chunk_start(chunk));
    if (begin >= end_) begin = offset_;  // a chunk start that lies
  }
  // Entries that belong behind the item at `begin`, or replace it; all, if nothing is left before
  // it.
  std::uint32_t first = log_last_;
  while (first > log_first_) {
    const LogItem entry = leaf.log_item(order_[first - 1], wire::kLive);
    const bool shadows = (entry.flags & wire::kLogShadowsSorted) != 0;
    if (begin != offset_ && (entry.back < begin || (entry.back == begin && !shadows))) break;
    --first;
  }
  LeafScan part;
  part.leaf_ = leaf_;
  part.geometry_ = geometry_;
  part.created_ = created_;
  part.offset_ = begin;
  part.end_ = stop;
  part.log_first_ = first;
  part.log_last_ = log_last_;
  std::copy(order_ + first, order_ + log_last_, part.order_ + first);
  part.look_at_next_entry();
  Item items[32];
  std::uint64_t out_of_line = 0;
  while (const std::uint32_t count = part.take(items, 32, out_of_line)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      gathered_.push_back({items[i], ((out_of_line >> i) & 1) != 0});
    }
  }
  end_ = begin;
  log_last_ = first;
}

std::uint32_t LeafScan::take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line) {
  out_of_line = 0;
  std::uint32_t count = 0;
  while (count < room) {
    if (gathered_.empty()) {
      if (offset_ >= end_ && log_first_ == log_last_) break;
      gather_last_chunk();
      continue;
    }
    const ScannedItem& last = gathered_.back();
    out_of_line |= std::uint64_t{last.out_of_line ? 1u : 0u} << count;
    items[count++] = last.item;
    gathered_.pop_back();
  }
  return count;
}

}  // namespace espalier::tree
