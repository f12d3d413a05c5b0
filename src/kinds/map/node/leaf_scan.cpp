// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/leaf_scan.hpp"

#include <algorithm>

#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {
namespace {

// Whether some log entry, visible or not, belongs before a sorted item in [begin, end).
bool log_reaches_into(const NodeView& leaf, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  std::uint32_t inside = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    inside |= leaf.log_place(i) - begin < end - begin ? 1u : 0u;
  }
  return inside != 0;
}

}  // namespace

// Drops the log entries outside the bounds. Compares only entries with the place of a bound.
void LeafScan::bound_log(const SearchKey* low, std::uint32_t low_at, const SearchKey* high,
                         std::uint32_t high_at) {
  std::uint32_t& first = rest_.log_first;
  std::uint32_t& last = rest_.log_last;
  for (; low != nullptr && first < last && log_.place(first) == low_at; ++first) {
    const LogItem* item = log_.at(first);
    if (item != nullptr && compare_keys(item->key, low->view()) >= 0) break;
  }
  for (; high != nullptr && first < last && log_.place(last - 1) == high_at; --last) {
    const LogItem* item = log_.at(last - 1);
    if (item != nullptr && compare_keys(item->key, high->view()) < 0) break;
  }
}

void LeafScan::look_at(const NodeView& leaf) {
  leaf_ = leaf.bytes();
  geometry_ = &leaf.geometry();
  created_ = leaf.created();
  gathered_.clear();
}

namespace {

// The end of the leaf's items below `high`.
std::uint32_t end_below(const NodeView& leaf, const SearchKit& kit, const SearchKey* high) {
  if (high == nullptr) return leaf.sorted_end();
  return lower_bound(leaf, *high, probe_leaf(leaf, *high, kit)).offset;
}

}  // namespace

void LeafScan::begin(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                     const SearchKey* low, const SearchKey* high) {
  look_at(leaf);
  const std::uint32_t low_at = low == nullptr
                                   ? geometry_->sorted_begin
                                   : lower_bound(leaf, *low, probe_leaf(leaf, *low, kit)).offset;
  const std::uint32_t high_at = end_below(leaf, kit, high);
  log_.begin(leaf, read_version, low_at, high_at);
  rest_ = {low_at, std::max(low_at, high_at), 0, log_.count()};
  bound_log(low, low_at, high, high_at);
}

void LeafScan::begin_window(const NodeView& leaf, std::uint64_t read_version, const SearchKit& kit,
                            LeafWindow window, const SearchKey* low, const SearchKey* high) {
  look_at(leaf);
  // A bound is searched only if its chunks are in the window. A bound outside still divides the log
  // entries at the window's end.
  std::uint32_t low_at = window.begin;
  if (low != nullptr && chunks_of(leaf, kit, *low).end > window.begin) {
    low_at = std::max(low_at, lower_bound(leaf, *low, probe_leaf(leaf, *low, kit)).offset);
  }
  std::uint32_t high_at = window.end;
  if (high != nullptr) {
    const LeafWindow chunks = chunks_of(leaf, kit, *high);
    if (chunks.begin < window.end || chunks.end <= window.end) {
      high_at = std::min(high_at, lower_bound(leaf, *high, probe_leaf(leaf, *high, kit)).offset);
    } else {
      high = nullptr;
    }
  }
  log_.begin(leaf, read_version, low_at, high_at);
  rest_ = {low_at, std::max(low_at, high_at), 0, log_.count()};
  bound_log(low, low_at, high, high_at);
  // Entries placed at the window's end belong to the items that follow, if there are any.
  if (high == nullptr && window.end < leaf.sorted_end() &&
      !planted(Bug::window_takes_what_follows)) {
    while (rest_.log_last > rest_.log_first && log_.place(rest_.log_last - 1) >= window.end) {
      --rest_.log_last;
    }
  }
}

bool LeafScan::begin_at_floor(const NodeView& leaf, std::uint64_t read_version,
                              const SearchKit& kit, const SearchKey& key, const SearchKey* high) {
  look_at(leaf);
  const std::uint32_t at = lower_bound(leaf, key, probe_leaf(leaf, key, kit)).offset;
  const std::uint32_t high_at = end_below(leaf, kit, high);
  // Starts at the sorted item before the key; the floor cannot be a log entry below that item.
  std::uint32_t before = geometry_->sorted_begin;
  if (at > before) {
    before = last_chunk_below(at);
    for (std::uint32_t next = before; next < at; next = leaf.sorted_item(next).end) before = next;
  }
  log_.begin(leaf, read_version, before, high_at);
  rest_ = {before, std::max(before, high_at), 0, log_.count()};
  bound_log(nullptr, 0, high, high_at);
  // Advances to the last item that is not above the key.
  bool found = false;
  Rest floor;
  for (Rest here = rest_;;) {
    const Rest item_here = here;
    Item item;
    std::uint64_t out_of_line = 0;
    if (take_from(here, &item, 1, out_of_line, 0) == 0) break;
    if (compare_keys(item.key, key.view()) > 0) break;
    floor = item_here;
    found = true;
  }
  if (found) rest_ = floor;
  return found;
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

// Takes sorted items while they have the lengths of the first. The offset of the next item then
// does not depend on the bytes just read, so the reads overlap.
inline std::uint32_t LeafScan::take_alike(std::uint32_t& offset, std::uint32_t stop, Item* items,
                                          std::uint32_t room, std::ptrdiff_t ahead) const {
  const std::byte* at = leaf_ + offset;
  const auto lengths = base::load_plain<std::uint16_t>(at);
  const std::uint32_t key_bytes = lengths & 0xFFu;
  const std::uint32_t value_bytes = lengths >> 8;
  if ((lengths & 0x8080) != 0 || key_bytes == 0) return 0;
  const std::uint32_t step =
      (2 + key_bytes + value_bytes + geometry_->unit_mask) & ~geometry_->unit_mask;
  const std::byte* const end = at + std::min(room * step, stop - offset);
  const std::uint64_t created = created_;
  Item* item = items;
  while (at + step <= end && base::load_plain<std::uint16_t>(at) == lengths) {
    __builtin_prefetch(at + ahead);
    const char* const key = reinterpret_cast<const char*>(at) + 2;
    *item++ = {{key, key_bytes}, {key + key_bytes, value_bytes}, created};
    at += step;
  }
  offset = static_cast<std::uint32_t>(at - leaf_);
  return static_cast<std::uint32_t>(item - items);
}

std::uint32_t LeafScan::take_from(Rest& rest, Item* items, std::uint32_t room,
                                  std::uint64_t& out_of_line, std::ptrdiff_t ahead) {
  const NodeView leaf(leaf_, *geometry_);
  out_of_line = 0;
  std::uint32_t count = 0;
  while (count < room) {
    const bool logged = rest.log_first != rest.log_last;
    const std::uint32_t stop = logged ? std::min(rest.end, log_.place(rest.log_first)) : rest.end;
    if (rest.offset < stop) {
      count += take_alike(rest.offset, stop, items + count, room - count, ahead);
      if (count == room || rest.offset >= stop) continue;
      const SortedItem item = leaf.sorted_item(rest.offset);
      rest.offset = item.end;
      if (item.key.empty()) continue;  // malformed
      out_of_line |= std::uint64_t{item.out_of_line ? 1u : 0u} << count;
      items[count++] = {item.key, {item.value, item.value_bytes}, created_};
      continue;
    }
    if (!logged) break;
    const LogItem* const entry = log_.at(rest.log_first++);
    if (entry == nullptr) continue;
    const LogItem& item = *entry;
    if ((item.flags & wire::kLogShadowsSorted) != 0 && rest.offset < rest.end &&
        rest.offset == item.place) {
      rest.offset = leaf.sorted_item(rest.offset).end;
    }
    if (item.erase() && !planted(Bug::ignore_erase_marks)) continue;
    out_of_line |= std::uint64_t{item.out_of_line ? 1u : 0u} << count;
    items[count++] = {item.key, {item.value, item.value_bytes}, item.version};
  }
  return count;
}

// Begin of the last chunk that has items below `end`. Requires: there are some.
std::uint32_t LeafScan::last_chunk_below(std::uint32_t end) const {
  const NodeView leaf(leaf_, *geometry_);
  std::uint32_t chunk = (end - 1 - geometry_->sorted_begin) >> geometry_->chunk_shift;
  while (chunk > 0 && (leaf.chunk_start(chunk) == 0 || leaf.chunk_start(chunk) >= end)) --chunk;
  return std::max(geometry_->sorted_begin, leaf.chunk_start(chunk));
}

// Moves the items of the last non-empty chunk, and the log entries among them, into gathered_.
void LeafScan::gather_last_chunk() {
  std::uint32_t begin = rest_.offset;
  if (rest_.offset < rest_.end) {
    begin = std::max(rest_.offset, last_chunk_below(rest_.end));
    if (begin >= rest_.end) begin = rest_.offset;  // a corrupt chunk start
  }
  // Entries placed behind the item at `begin`, or that replace it; all, if nothing remains before
  // it.
  std::uint32_t first = rest_.log_last;
  while (first > rest_.log_first) {
    const std::uint32_t place = log_.place(first - 1);
    if (begin != rest_.offset && place <= begin) {
      if (place < begin) break;
      const LogItem* item = log_.at(first - 1);
      if (item != nullptr && (item->flags & wire::kLogShadowsSorted) == 0) break;
    }
    --first;
  }
  Rest last{begin, rest_.end, first, rest_.log_last};
  Item items[32];
  std::uint64_t out_of_line = 0;
  while (const std::uint32_t count = take_from(last, items, 32, out_of_line, 0)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      gathered_.push_back({items[i], ((out_of_line >> i) & 1) != 0});
    }
  }
  rest_.end = begin;
  rest_.log_last = first;
}

std::uint32_t LeafScan::take_back(Item* items, std::uint32_t room, std::uint64_t& out_of_line) {
  out_of_line = 0;
  std::uint32_t count = 0;
  while (count < room) {
    if (gathered_.empty()) {
      if (rest_.offset >= rest_.end && rest_.log_first == rest_.log_last) break;
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
