// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/log_merge.hpp"

#include <algorithm>
#include <cstring>

#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

LogMerge::LogMerge(const NodeView& leaf, const WriteIntent& intent, const NewestState& state)
    : leaf_(leaf), old_end_(leaf.sorted_end()), end_(old_end_), items_(leaf.items()) {
  for (std::uint32_t i = 0; i < leaf.log_entries(leaf.lock_word()); ++i) {
    base::prefetch_line(leaf.bytes() + leaf.log_place(i));  // the item that may go, read soon
  }
  const std::string_view key = intent.key->view();
  const std::uint32_t place = state.position.offset;
  const Record record = make_record(key, intent.value, intent.out_of_line);
  const Record* const placed = intent.op == Op::erase ? nullptr : &record;
  bool waits = true;  // whether the intent is still to be placed among the entries
  for_newest_entries(leaf, [&](const LogItem& item) {
    const int side = waits && item.place >= place
                         ? (item.place > place ? 1 : compare_keys(item.key, key))
                         : -1;  // of the entry, relative to the intent
    if (side >= 0) {
      add(place, state.position.exact, placed);
      waits = false;
    }
    if (side == 0) return;
    const Record newest = make_record(item.key, {item.value, item.value_bytes}, item.out_of_line);
    add(item.place, (item.flags & wire::kLogShadowsSorted) != 0,
        item.erase() || item.key.empty() ? nullptr : &newest);
  });
  if (waits) add(place, state.position.exact, placed);
}

// Clamps a malformed log to ascending edits within the block.
void LogMerge::add(std::uint32_t at, bool replaces, const Record* record) {
  const std::uint32_t behind =
      used_ == 0 ? leaf_.geometry().sorted_begin : edits_[used_ - 1].at + edits_[used_ - 1].removed;
  Edit edit;
  edit.at = std::clamp(at, behind, old_end_);
  if (replaces && edit.at < old_end_) {
    edit.removed = leaf_.sorted_item(edit.at, old_end_).end - edit.at;
    --items_;
  }
  if (record != nullptr) {
    edit.record = *record;
    edit.placed = placed_bytes(*record, leaf_.geometry());
    ++items_;
  }
  end_ += edit.placed - edit.removed;
  edits_[used_++] = edit;
}

void LogMerge::build(std::byte* buffer, const NodeFrame& frame) const {
  copy_items(buffer);
  finish_leaf(buffer, leaf_.geometry(), frame, {end_, items_, index_chunks(buffer)});
}

// Offset of the first moved item: earlier items keep their offsets and their first keys.
std::uint32_t LogMerge::first_moved() const {
  for (const Edit& edit : edits()) {
    if (edit.placed != edit.removed) return edit.at;
  }
  return old_end_;
}

void LogMerge::copy_items(std::byte* buffer) const {
  const std::byte* const old = leaf_.bytes();
  std::uint32_t from = leaf_.geometry().sorted_begin;  // everything before it is copied
  std::uint32_t moved_by = 0;                          // modulo 2^32, like the sums below
  for (const Edit& edit : edits()) {
    if (edit.placed == edit.removed) continue;  // overwritten below, after the copy
    std::memcpy(buffer + (from + moved_by), old + from, edit.at - from);
    from = edit.at + edit.removed;
    moved_by += edit.placed - edit.removed;
  }
  std::memcpy(buffer + (from + moved_by), old + from, old_end_ - from);
  moved_by = 0;
  for (const Edit& edit : edits()) {
    if (edit.placed != 0) place_record(buffer + (edit.at + moved_by), edit.record, edit.placed);
    moved_by += edit.placed - edit.removed;
  }
}

// Fills in each chunk's start and key prefix. Returns the map of the prefixes.
KeyPrefixMap LogMerge::index_chunks(std::byte* buffer) const {
  const Geometry& g = leaf_.geometry();
  std::byte* const starts = buffer + g.starts_begin;
  std::byte* const key_prefixes = buffer + g.key_prefixes_begin;
  const std::uint32_t moved = first_moved();
  if (moved == old_end_ && end_ == old_end_) {
    std::memcpy(starts, leaf_.bytes() + g.starts_begin, g.chunks_max);
    std::memcpy(key_prefixes, leaf_.bytes() + g.key_prefixes_begin, std::size_t{2} * g.chunks_max);
    return leaf_.key_prefix_map();
  }

  // Items are visited one by one from the last chunk on that begins before the first change.
  std::uint32_t kept = std::min((moved - g.sorted_begin) >> g.chunk_shift, leaf_.chunks());
  std::uint32_t offset = g.sorted_begin;
  while (kept != 0) {
    const std::uint32_t begin = kept < leaf_.chunks() ? leaf_.chunk_start(kept, old_end_) : 0;
    if (begin != 0 && begin < moved) {
      offset = begin;
      break;
    }
    --kept;
  }
  std::memcpy(starts, leaf_.bytes() + g.starts_begin, kept);
  std::memset(starts + kept, 0xFF, g.chunks_max - kept);
  const NodeView made(buffer, g);
  std::uint32_t last = offset;  // offset of the last item
  for (std::uint32_t next = kept; offset < end_; offset = made.sorted_item(offset, end_).end) {
    last = offset;
    const std::uint32_t chunk = (offset - g.sorted_begin) >> g.chunk_shift;
    if (chunk < next) continue;
    const std::uint32_t within = offset - g.sorted_begin - (chunk << g.chunk_shift);
    starts[chunk] = static_cast<std::byte>(within >> g.unit_shift);
    next = chunk + 1;
  }

  const auto word_at = [&](std::uint32_t item) {
    const std::string_view key = made.sorted_item(item, end_).key;
    return key_prefix_of(key.substr(std::min<std::size_t>(leaf_.prefix_bytes(), key.size())));
  };
  if (end_ == g.sorted_begin) {
    std::memset(key_prefixes, 0xFF, std::size_t{2} * g.chunks_max);
    return {0, 63};
  }
  const KeyPrefixMap map = KeyPrefixMap::covering(word_at(g.sorted_begin), word_at(last));
  const KeyPrefixMap old = leaf_.key_prefix_map();
  const bool scale_stays = map.base == old.base && map.shift == old.shift;
  if (scale_stays)
    std::memcpy(key_prefixes, leaf_.bytes() + g.key_prefixes_begin, std::size_t{2} * kept);
  std::uint16_t head = 0xFFFF;
  for (std::uint32_t chunk = g.chunks_max; chunk-- > (scale_stays ? kept : 0);) {
    // A chunk in which no item begins has the key prefix of the next one.
    if (const std::uint32_t begin = made.chunk_start(chunk, end_); begin != 0) {
      head = static_cast<std::uint16_t>(map(word_at(begin)) >> 48);
    }
    base::store_plain(key_prefixes + 2 * chunk, head);
  }
  return map;
}

}  // namespace espalier::tree
