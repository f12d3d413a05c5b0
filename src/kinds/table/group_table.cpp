// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/group_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/prefetch.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kFirstSlots = 64;
constexpr std::size_t kRowsMax = 0xFFFF'FFF0;
/// A table up to this size stays in the core's own cache, where asking for lines ahead costs more
/// than it saves.
constexpr std::size_t kCachedBytes = 768 * 1024;

/// Keys of one or two words, one behind the other.
template <std::uint32_t Words>
struct WordKeys {
  const std::byte* keys;
  KeyHash hash_of;
  std::uint64_t last_mask;  // of the last word

  WordKeys(const KeyBatch& batch, const KeyLayout& layout, const KeyHash& hash)
      : keys(batch.keys), hash_of(hash) {
    last_mask = ~std::uint64_t{0} >> (64 * Words - 8 * layout.key_bytes);
    ESPALIER_ASSERT(batch.stride == 8 * Words || batch.count == 1);
  }
  [[nodiscard]] const std::byte* at(std::uint32_t i) const {
    return keys + std::size_t{i} * (8 * Words);
  }
  [[nodiscard]] std::uint64_t last_word(const std::byte* key) const {
    return load_key_word(key + 8 * (Words - 1), 8) & last_mask;
  }
  [[nodiscard]] std::uint64_t hash(std::uint32_t i) const {
    if constexpr (Words == 1) return hash_of.of(last_word(at(i)));
    return hash_of.of(load_key_word(at(i), 8), last_word(at(i)));
  }
  [[nodiscard]] bool equal(std::uint32_t i, const std::byte* row) const {
    const std::uint64_t differs = last_word(at(i)) ^ last_word(row);
    if constexpr (Words == 1) return differs == 0;
    return (differs | (load_key_word(at(i), 8) ^ load_key_word(row, 8))) == 0;
  }
};

/// Keys of any length, with null bits or without.
struct RowKeys {
  const std::byte* keys;
  std::size_t stride;
  const KeyLayout& layout;
  const KeyHash& hash_of;

  [[nodiscard]] const std::byte* at(std::uint32_t i) const { return keys + i * stride; }
  [[nodiscard]] std::uint64_t hash(std::uint32_t i) const { return layout.hash(at(i), hash_of); }
  [[nodiscard]] bool equal(std::uint32_t i, const std::byte* row) const {
    return layout.equal(at(i), row);
  }
};

std::uint32_t tag_of(std::uint64_t hash) { return KeyHash::tag_of(hash); }

}  // namespace

GroupTable::GroupTable(const KeyLayout& layout, std::size_t bytes_max, std::uint64_t seed)
    : layout_(layout), hash_(seed), memory_(bytes_max) {
  ESPALIER_ASSERT(bytes_max >= kBytesMin && layout.row_bytes <= kBytesMin / 2);
  const std::size_t chunk_bytes = std::min(kChunkBytes, bytes_max / 8);
  const std::size_t rows = std::max<std::size_t>(1, chunk_bytes / layout.row_bytes);
  chunk_shift_ = static_cast<unsigned>(std::bit_width(rows)) - 1;
  segment_slots_ = kFirstSlots;
  auto* const slots = memory_.allocate(segment_slots_ * sizeof(Slot));
  ESPALIER_ASSERT(slots != nullptr);
  std::memset(slots, 0, segment_slots_ * sizeof(Slot));
  segments_.push_back({reinterpret_cast<Slot*>(slots), 0, 0});
  directory_.push_back(segments_[0].slots);
  owners_.push_back(0);
}

namespace {

/// Where a tag that is not there belongs. Requires: one slot is free.
template <class Slot>
Slot* free_slot_of(Slot* slots, std::size_t size, std::uint32_t tag) {
  std::size_t at = tag & (size - 1);
  while (slots[at].row != 0) at = (at + 1) & (size - 1);
  return &slots[at];
}

}  // namespace

GroupTable::Slot* GroupTable::free_slot(std::uint32_t tag) const {
  return free_slot_of(directory_[entry_of(tag)], segment_slots_, tag);
}

/// The only segment becomes one of twice as many slots.
bool GroupTable::double_segment() {
  const std::size_t bytes = segment_slots_ * sizeof(Slot);
  std::byte* const piece = memory_.allocate(2 * bytes);
  if (piece == nullptr) return false;
  std::memset(piece, 0, 2 * bytes);
  auto* const slots = reinterpret_cast<Slot*>(piece);
  Slot* const old = segments_[0].slots;
  for (std::size_t i = 0; i < segment_slots_; ++i) {
    if (old[i].row != 0) *free_slot_of(slots, 2 * segment_slots_, old[i].tag) = old[i];
  }
  memory_.free(reinterpret_cast<std::byte*>(old), bytes);
  segments_[0].slots = directory_[0] = slots;
  segment_slots_ *= 2;
  count_growth();
  return true;
}

void GroupTable::double_directory() {
  const std::size_t entries = directory_.size();
  std::vector<Slot*> directory(2 * entries);
  std::vector<std::uint32_t> owners(2 * entries);
  for (std::size_t i = 0; i < 2 * entries; ++i) {
    directory[i] = directory_[i / 2];
    owners[i] = owners_[i / 2];
  }
  directory_ = std::move(directory);
  owners_ = std::move(owners);
  ++depth_;
}

/// Moves half of a segment's slots, by the next bit of their tags, to another one. Reads no row.
bool GroupTable::split_segment(std::uint32_t number) {
  constexpr std::size_t kBytes = kSegmentSlots * sizeof(Slot);
  const auto take = [this] { return reinterpret_cast<Slot*>(memory_.allocate(kBytes)); };
  if (segments_[number].depth == kDepthMax) return false;
  if (split_copy_ == nullptr && (split_copy_ = take()) == nullptr) return false;
  Slot* other = nullptr;
  if (!free_segments_.empty()) {
    other = free_segments_.back();
    free_segments_.pop_back();
  } else if ((other = take()) == nullptr) {
    return false;
  }
  if (segments_[number].depth == depth_) double_directory();
  const auto other_number = static_cast<std::uint32_t>(segments_.size());
  segments_.push_back({other, 0, segments_[number].depth + 1});
  Segment* const halves[] = {&segments_[number], &segments_.back()};
  halves[0]->depth += 1;
  halves[0]->used = 0;
  Slot* const slots[] = {halves[0]->slots, other};
  std::memcpy(split_copy_, slots[0], kBytes);
  std::memset(slots[0], 0, kBytes);
  std::memset(slots[1], 0, kBytes);
  const unsigned shift = 32 - halves[0]->depth;
  for (std::size_t i = 0; i < kSegmentSlots; ++i) {
    const Slot slot = split_copy_[i];
    if (slot.row == 0) continue;
    const unsigned half = slot.tag >> shift & 1;
    *free_slot_of(slots[half], kSegmentSlots, slot.tag) = slot;
    ++halves[half]->used;
  }
  // Entries that name one segment stand side by side: the upper half of them names the other.
  const auto begin = std::ranges::find(owners_, number) - owners_.begin();
  const std::ptrdiff_t entries = std::ptrdiff_t{1} << (depth_ - halves[0]->depth);
  for (std::ptrdiff_t i = begin + entries; i < begin + 2 * entries; ++i) {
    owners_[static_cast<std::size_t>(i)] = other_number;
    directory_[static_cast<std::size_t>(i)] = other;
  }
  count_growth();
  return true;
}

/// Whether it may grow now; else the batch is paused.
bool GroupTable::may_grow() {
  paused_ = growths_left_ == 0;
  return !paused_;
}

void GroupTable::count_growth() {
  --growths_left_;
  ++growths_;
}

/// False: it may not be taken now, or was, and with that the batch has grown enough.
bool GroupTable::has_page_for(std::size_t bytes) {
  if (!memory_.wants_page(bytes)) return true;
  if (!may_grow()) return false;
  memory_.take_page();
  count_growth();
  return may_grow();
}

bool GroupTable::has_room_for_row() {
  if (size_ >= kRowsMax) return false;
  if (size_ < chunks_.size() << chunk_shift_) return true;
  const std::size_t bytes = std::size_t{layout_.row_bytes} << chunk_shift_;
  if (!has_page_for(bytes)) return false;
  std::byte* const chunk = memory_.allocate(bytes);
  if (chunk == nullptr) return false;
  chunks_.push_back(chunk);
  return true;
}

/// Room for one more row and its slot.
bool GroupTable::make_room(std::uint32_t tag) {
  const std::uint32_t number = owners_[entry_of(tag)];
  const std::size_t used = segments_[number].used + std::size_t{1};
  if (segment_slots_ < kSegmentSlots) {
    // A small index has a lower load factor, so that most probes end at their first slot.
    const bool spares = 16 * segment_slots_ * sizeof(Slot) <= memory_.bytes_max();
    const bool is_full = used * 4 > segment_slots_ * 3;
    if (used * 4 > segment_slots_ * (spares ? 1 : 3)) {
      if (!has_page_for(2 * segment_slots_ * sizeof(Slot)) || !may_grow()) return false;
      if (!double_segment() && is_full) return false;
    }
  } else if (used * 4 > kSegmentSlots * 3) {
    const std::size_t pieces = (split_copy_ == nullptr ? 1 : 0) + (free_segments_.empty() ? 1 : 0);
    if (pieces != 0 && !has_page_for(pieces * kSegmentSlots * sizeof(Slot))) return false;
    if (!may_grow() || !split_segment(number)) return false;
  }
  return has_room_for_row();
}

template <class Keys>
std::byte* GroupTable::insert(const Keys& keys, std::uint32_t i, std::uint32_t tag,
                              const std::byte* blank) {
  if (!make_room(tag)) return nullptr;
  std::byte* const row = this->row(size_);
  if (blank == nullptr) {
    std::memcpy(row, keys.at(i), layout_.row_bytes);
  } else {
    std::memcpy(row, blank, layout_.row_bytes);
    std::memcpy(row, keys.at(i), layout_.key_bytes);
  }
  ++size_;
  *free_slot(tag) = {tag, static_cast<std::uint32_t>(size_)};
  ++segments_[owners_[entry_of(tag)]].used;
  ESPALIER_ASSERT(memory_.bytes() <= memory_.bytes_max());
  return row;
}

/// What finding needs of the table, in registers: it changes when a row is made.
struct GroupTable::View {
  explicit View(const GroupTable& table)
      : directory(table.directory_.data()),
        chunks(table.chunks_.data()),
        mask(static_cast<std::uint32_t>(table.segment_slots_ - 1)),
        entry_shift(32 - table.depth_),
        chunk_shift(table.chunk_shift_),
        chunk_mask((1u << table.chunk_shift_) - 1),
        row_bytes(table.layout_.row_bytes) {}

  [[nodiscard]] const Slot* slots(std::uint32_t tag) const {
    return directory[std::uint64_t{tag} >> entry_shift];
  }
  [[nodiscard]] std::byte* row(std::uint32_t number) const {
    return chunks[number >> chunk_shift] + std::size_t{number & chunk_mask} * row_bytes;
  }
  /// The row of the i-th key; null where it is not there.
  template <class Keys>
  [[nodiscard]] std::byte* find(const Keys& keys, std::uint32_t i, std::uint32_t tag) const {
    const Slot* const from = slots(tag);
    for (std::uint32_t at = tag & mask;; at = (at + 1) & mask) {
      const Slot slot = from[at];
      if (slot.row == 0) [[unlikely]]
        return nullptr;
      if (slot.tag != tag) continue;
      std::byte* const row = this->row(slot.row - 1);
      if (keys.equal(i, row)) [[likely]]
        return row;
    }
  }

  Slot* const* directory;
  std::byte* const* chunks;
  std::uint32_t mask;
  unsigned entry_shift;
  unsigned chunk_shift;
  std::uint32_t chunk_mask;
  std::size_t row_bytes;
};

template <class Keys>
std::uint32_t GroupTable::find_in_cache(const Keys& by, const KeyBatch& batch, std::byte** rows) {
  const Keys keys = by;
  const std::uint32_t count = batch.count;
  View view(*this);
  const std::byte* const ahead = batch.ahead;
  const std::size_t ahead_stride = batch.ahead_stride;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (ahead != nullptr) __builtin_prefetch(ahead + i * ahead_stride);
    const std::uint32_t tag = tag_of(keys.hash(i));
    std::byte* row = view.find(keys, i, tag);
    if (row == nullptr) [[unlikely]] {
      row = insert(keys, i, tag, batch.blank);
      if (row == nullptr && stops(batch)) return i;
      view = View(*this);
    }
    rows[i] = row;
  }
  return count;
}

/// First all slots are asked for, then all rows that they name, then these are compared.
template <class Keys>
std::uint32_t GroupTable::find_in_memory(const Keys& by, const KeyBatch& batch, std::byte** rows) {
  const Keys keys = by;
  const std::uint32_t count = batch.count;
  std::uint32_t tags[kBatchKeys];
  View view(*this);
  for (std::uint32_t i = 0; i < count; ++i) {
    tags[i] = tag_of(keys.hash(i));
    __builtin_prefetch(view.slots(tags[i]) + (tags[i] & view.mask));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Slot* const slots = view.slots(tags[i]);
    std::uint32_t at = tags[i] & view.mask;
    while (slots[at].row != 0 && slots[at].tag != tags[i]) at = (at + 1) & view.mask;
    rows[i] = slots[at].row == 0 ? nullptr : view.row(slots[at].row - 1);
    base::prefetch_to_write(rows[i]);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (rows[i] != nullptr && keys.equal(i, rows[i])) [[likely]]
      continue;
    // Another key of the same tag, or none when it was looked for.
    rows[i] = view.find(keys, i, tags[i]);
    if (rows[i] != nullptr) continue;
    rows[i] = insert(keys, i, tags[i], batch.blank);
    if (rows[i] == nullptr && stops(batch)) return i;
    view = View(*this);
  }
  return count;
}

template <class Keys>
std::uint32_t GroupTable::find_all(const Keys& keys, const KeyBatch& batch, std::byte** rows) {
  return memory_bytes() > kCachedBytes ? find_in_memory(keys, batch, rows)
                                       : find_in_cache(keys, batch, rows);
}

/// Looks at the first keys that come: do they lie near each other? False: the batch has grown
/// enough with that.
bool GroupTable::choose_direct(const KeyBatch& batch) {
  chose_direct_ = true;
  const WordKeys<1> keys(batch, layout_, hash_);
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    low = std::min(low, keys.last_word(keys.at(i)));
    high = std::max(high, keys.last_word(keys.at(i)));
  }
  // Others that come will lie around these: some room on both sides.
  const std::uint64_t base = low - std::min(low, (high - low) / 4);
  if (high - base >= kDirectMax) return true;
  const std::uint64_t size =
      std::min(kDirectMax, std::bit_ceil((high - base + 1) + (high - low) / 4));
  const std::size_t bytes = size * sizeof(std::byte*);
  if (8 * bytes > memory_.bytes_max()) return true;
  std::byte* const piece = memory_.allocate(bytes);
  if (piece == nullptr) return true;
  std::memset(piece, 0, bytes);
  direct_ = reinterpret_cast<std::byte**>(piece);
  direct_base_ = base;
  direct_size_ = size;
  count_growth();
  return may_grow();
}

std::uint32_t GroupTable::find_direct(const KeyBatch& batch, std::byte** rows) {
  const WordKeys<1> keys(batch, layout_, hash_);
  std::byte** const direct = direct_;
  const std::uint64_t base = direct_base_;
  const std::uint64_t size = direct_size_;
  const bool far = memory_bytes() > kCachedBytes;
  std::uint32_t outside = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if (batch.ahead != nullptr) {
      __builtin_prefetch(batch.ahead + std::size_t{i} * batch.ahead_stride);
    }
    const std::uint64_t at = keys.last_word(keys.at(i)) - base;
    std::byte* row = at < size ? direct[at] : nullptr;
    if (row == nullptr) [[unlikely]] {
      const std::uint32_t tag = tag_of(keys.hash(i));
      row = View(*this).find(keys, i, tag);
      if (row == nullptr) row = insert(keys, i, tag, batch.blank);
      if (row == nullptr && stops(batch)) return i;
      if (at < size) {
        direct[at] = row;
      } else {
        ++outside;
      }
    }
    rows[i] = row;
    if (far) base::prefetch_to_write(row);
  }
  // The first keys were not like those that come now, as where rows are sorted by them.
  give_up_direct(outside, batch.count);
  return batch.count;
}

bool GroupTable::is_direct() const { return direct_ != nullptr && memory_bytes() <= kCachedBytes; }

/// The row of one key that the array may not know yet. Null: there is no room, or it is paused.
std::byte* GroupTable::row_of_word(std::uint64_t word, const std::byte* blank) {
  const KeyBatch batch{reinterpret_cast<const std::byte*>(&word), sizeof word, 1, blank};
  std::byte* row = nullptr;
  find_in_cache(WordKeys<1>(batch, layout_, hash_), batch, &row);
  const std::uint64_t at = word - direct_base_;
  if (at < direct_size_) direct_[at] = row;
  return row;
}

std::uint32_t GroupTable::find_or_insert(const KeyBatch& batch, std::byte** rows) {
  ESPALIER_ASSERT(batch.count <= kBatchKeys);
  paused_ = false;
  if (!chose_direct_ && layout_.words() == 1 && (!may_grow() || !choose_direct(batch))) return 0;
  if (direct_ != nullptr) return find_direct(batch, rows);
  switch (layout_.words()) {
    case 1: return find_all(WordKeys<1>(batch, layout_, hash_), batch, rows);
    case 2: return find_all(WordKeys<2>(batch, layout_, hash_), batch, rows);
    default: return find_all(RowKeys{batch.keys, batch.stride, layout_, hash_}, batch, rows);
  }
}

std::uint64_t GroupTable::displacement() const {
  std::uint64_t sum = 0;
  const std::size_t mask = segment_slots_ - 1;
  for (const Segment& segment : segments_) {
    for (std::size_t at = 0; at < segment_slots_; ++at) {
      const Slot& slot = segment.slots[at];
      if (slot.row != 0) sum += (at - slot.tag) & mask;
    }
  }
  return sum;
}

GroupTable::Found GroupTable::find_or_insert(const std::byte* row) {
  const std::size_t before = size_;
  std::byte* found = nullptr;
  const KeyBatch batch{row, layout_.row_bytes, 1, nullptr, true};
  if (layout_.words() == 1) {
    find_in_cache(WordKeys<1>(batch, layout_, hash_), batch, &found);
  } else {
    find_in_cache(RowKeys{batch.keys, batch.stride, layout_, hash_}, batch, &found);
  }
  return {found, size_ != before};
}

void GroupTable::clear() {
  // Segments wait to be used again, and are filled with zeros only then.
  for (std::size_t i = 1; i < segments_.size(); ++i) free_segments_.push_back(segments_[i].slots);
  segments_.resize(1, {nullptr, 0, 0});
  segments_[0].used = 0;
  segments_[0].depth = 0;
  std::memset(segments_[0].slots, 0, segment_slots_ * sizeof(Slot));
  depth_ = 0;
  directory_.assign(1, segments_[0].slots);
  owners_.assign(1, 0);
  if (direct_ != nullptr) std::memset(direct_, 0, direct_size_ * sizeof(std::byte*));
  size_ = 0;
}

}  // namespace espalier::table
