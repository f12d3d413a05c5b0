// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/leaf_builder.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "kinds/map/node/log_order.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {
namespace {

std::uint16_t u16(std::size_t value) { return static_cast<std::uint16_t>(value); }

std::uint32_t length_bytes(std::uint32_t bytes) { return bytes < 0x80 ? 1 : 2; }

Record record_of(const SortedItem& item, const std::byte* at) {
  const auto* encoded = reinterpret_cast<const char*>(at);
  const char* end = item.value + item.value_bytes;
  return {item.key.data(),
          item.value,
          encoded,
          u16(item.key.size()),
          u16(item.value_bytes),
          u16(static_cast<std::size_t>(end - encoded)),
          item.out_of_line};
}

// Appends the sorted items from `offset` up to `stop`; returns the offset behind the last one.
std::uint32_t gather_sorted(const NodeView& leaf, std::uint32_t offset, std::uint32_t stop,
                            std::vector<Record>& records) {
  const std::uint32_t mask = leaf.geometry().unit_mask;
  const std::uint32_t end = leaf.sorted_end();
  while (offset < stop) {
    const auto* at = reinterpret_cast<const char*>(leaf.bytes()) + offset;
    const auto lengths = base::load_plain<std::uint16_t>(leaf.bytes() + offset);
    const std::uint32_t key_bytes = lengths & 0xFFu;
    const std::uint32_t value_bytes = lengths >> 8;
    const std::uint32_t bytes = 2 + key_bytes + value_bytes;
    if ((lengths & 0x8080) == 0 && key_bytes != 0 && offset + bytes <= end) [[likely]] {
      records.push_back(
          {at + 2, at + 2 + key_bytes, at, u16(key_bytes), u16(value_bytes), u16(bytes), false});
      offset = (offset + bytes + mask) & ~mask;
    } else {
      const SortedItem item = leaf.sorted_item(offset, end);
      if (!item.key.empty()) records.push_back(record_of(item, leaf.bytes() + offset));
      offset = item.end;
    }
  }
  return offset;
}

// Encodes a length and returns the position behind it.
char* put_length(char* at, std::uint32_t bytes) {
  if (bytes < 0x80) {
    *at++ = static_cast<char>(bytes);
  } else {
    *at++ = static_cast<char>(0x80 | (bytes >> 8));
    *at++ = static_cast<char>(bytes & 0xFF);
  }
  return at;
}

// Copies records to their places. Records adjacent in an old sorted block stay adjacent, so each
// run of them is one copy, padding included.
class Placer {
 public:
  explicit Placer(std::byte* buffer) : buffer_(buffer) {}
  ~Placer() { flush(); }
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  void place(std::uint32_t offset, const Record& record, std::uint32_t placed) {
    if (record.encoded != nullptr && record.encoded == from_ + bytes_) {
      bytes_ += placed;
      return;
    }
    flush();
    if (record.encoded != nullptr) {
      from_ = record.encoded;
      to_ = offset;
      bytes_ = placed;
      return;
    }
    place_record(buffer_ + offset, record, placed);
  }

 private:
  void flush() {
    if (bytes_ != 0) std::memcpy(buffer_ + to_, from_, bytes_);
    from_ = nullptr;
    bytes_ = 0;
  }

  std::byte* buffer_;
  const char* from_ = nullptr;
  std::uint32_t to_ = 0;
  std::uint32_t bytes_ = 0;
};

// Places the records in order and fills in the key prefixes and starts of the chunks. Returns the
// end of the sorted block.
std::uint32_t place_all(std::byte* buffer, const Geometry& g, std::span<const Record> records,
                        const KeyPrefixMap& map, std::size_t prefix_bytes) {
  std::uint32_t offset = g.sorted_begin;
  std::uint32_t next_chunk = 0;
  auto* key_prefixes = buffer + g.key_prefixes_begin;
  auto* starts = buffer + g.starts_begin;
  Placer placer(buffer);
  for (const Record& record : records) {
    const std::uint32_t chunk = (offset - g.sorted_begin) >> g.chunk_shift;
    if (chunk >= next_chunk) {  // the first item that begins in this chunk
      const std::string_view rest = record.key_view().substr(prefix_bytes);
      const auto head = static_cast<std::uint16_t>(map(key_prefix_of(rest)) >> 48);
      for (; next_chunk < chunk; ++next_chunk) {  // chunks in which no item begins
        base::store_plain(key_prefixes + 2 * next_chunk, head);
        starts[next_chunk] = std::byte{0xFF};
      }
      const std::uint32_t within = offset - g.sorted_begin - (chunk << g.chunk_shift);
      base::store_plain(key_prefixes + 2 * chunk, head);
      starts[chunk] = static_cast<std::byte>(within >> g.unit_shift);
      next_chunk = chunk + 1;
    }
    const std::uint32_t bytes = placed_bytes(record, g);
    placer.place(offset, record, bytes);
    offset += bytes;
  }
  std::memset(key_prefixes + 2 * next_chunk, 0xFF, std::size_t{2} * (g.chunks_max - next_chunk));
  std::memset(starts + next_chunk, 0xFF, g.chunks_max - next_chunk);
  return offset;
}

}  // namespace

Record make_record(std::string_view key, std::string_view value, bool out_of_line) {
  Record record;
  record.key = key.data();
  record.value = value.data();
  record.key_bytes = u16(key.size());
  record.value_bytes = u16(value.size());
  record.out_of_line = out_of_line;
  const auto coded = static_cast<std::uint32_t>(out_of_line ? wire::kOutOfLine : value.size());
  record.encoded_bytes =
      u16(length_bytes(record.key_bytes) + length_bytes(coded) + key.size() + value.size());
  return record;
}

void place_record(std::byte* to, const Record& record, std::uint32_t placed) {
  auto* at = reinterpret_cast<char*>(to);
  at = put_length(at, record.key_bytes);
  at = put_length(at, record.out_of_line ? wire::kOutOfLine : record.value_bytes);
  std::memcpy(at, record.key, record.key_bytes);
  if (record.value_bytes != 0) std::memcpy(at + record.key_bytes, record.value, record.value_bytes);
  for (std::uint32_t i = record.encoded_bytes; i < placed; ++i) to[i] = std::byte{0};
}

std::uint64_t placed_bytes(std::span<const Record> records, const Geometry& g) {
  std::uint64_t bytes = 0;
  for (const Record& record : records) bytes += placed_bytes(record, g);
  return bytes;
}

void sort_log(const NodeView& leaf, std::uint32_t entries, std::uint8_t* order) {
  const auto hint_of = [&](std::uint32_t slot) {
    const std::uint32_t offset = leaf.log_offset(slot);
    return offset == 0 ? slot : leaf.log_hint_at(offset);
  };
  sort_by_hints(entries, hint_of, order);
}

void gather_newest(const NodeView& leaf, std::vector<Record>& records) {
  const std::uint32_t end = leaf.sorted_end();
  std::uint32_t offset = leaf.geometry().sorted_begin;
  records.reserve(records.size() + leaf.items() + leaf.log_entries(leaf.lock_word()) + 1);
  const auto take_until = [&](std::uint32_t stop) {
    offset = gather_sorted(leaf, offset, std::min(stop, end), records);
  };
  for_newest_entries(leaf, [&](const LogItem& item) {
    take_until(item.place);
    if ((item.flags & wire::kLogShadowsSorted) != 0 && offset < end) {
      offset = leaf.sorted_item(offset).end;
    }
    if (!item.erase() && !item.key.empty()) {  // an entry without a key is malformed
      records.push_back(make_record(item.key, {item.value, item.value_bytes}, item.out_of_line));
    }
  });
  take_until(end);
}

std::uint32_t leaf_room(const Geometry& g, std::string_view low, std::string_view high) {
  const std::uint32_t room = g.node_bytes - g.sorted_begin - fence_room(low, high);
  return room & ~((1u << g.unit_shift) - 1);
}

void write_shared_head(std::byte* buffer, std::uint32_t map_id, const std::byte* head) {
  base::store_shared<std::uint32_t>(buffer, map_id);
  constexpr std::size_t kFirst = sizeof(wire::BufferHeader);
  base::copy_shared(buffer + kFirst, head + kFirst, sizeof(wire::NodeHeader) - kFirst);
}

void write_header(std::byte* buffer, const wire::NodeHeader& header) {
  write_shared_head(buffer, header.map_id, reinterpret_cast<const std::byte*>(&header));
}

void write_fences(std::byte* buffer, const Geometry& g, const NodeFrame& frame,
                  wire::NodeHeader& header) {
  const auto begin =
      static_cast<std::uint32_t>(g.node_bytes - frame.low.size() - frame.high.size());
  // Walkers with stale hints may still read a reused buffer; they read its fences only after they
  // have checked its generation.
  if (!frame.low.empty()) std::memcpy(buffer + begin, frame.low.data(), frame.low.size());
  if (!frame.high.empty()) {
    std::memcpy(buffer + begin + frame.low.size(), frame.high.data(), frame.high.size());
  }
  header.map_id = frame.map_id;
  header.lid = frame.lid;
  header.left = frame.left;
  header.right = frame.right;
  header.low_key_prefix = key_prefix_of(frame.low);
  header.high_key_prefix = frame.high.empty() ? ~std::uint64_t{0} : key_prefix_of(frame.high);
  header.prefix_bytes = u16(base::common_prefix_bytes(frame.low, frame.high));
  header.low_bytes = u16(frame.low.size());
  header.high_bytes = u16(frame.high.size());
  header.fence_begin = u16(std::min(begin, g.node_bytes - 1));
  header.old_ref = frame.old_ref.bits;
  header.old2_ref = frame.old2_ref.bits;
  header.old2_low_key_prefix = frame.old2_low_key_prefix;
  header.self_ref = frame.self.bits;
}

void build_leaf(std::byte* buffer, const Geometry& g, std::span<const Record> records,
                const NodeFrame& frame) {
  const std::size_t prefix = base::common_prefix_bytes(frame.low, frame.high);
  SortedBlock sorted;
  if (!records.empty()) {
    sorted.map = KeyPrefixMap::covering(key_prefix_of(records.front().key_view().substr(prefix)),
                                        key_prefix_of(records.back().key_view().substr(prefix)));
  }
  sorted.end = place_all(buffer, g, records, sorted.map, prefix);
  sorted.items = static_cast<std::uint32_t>(records.size());
  finish_leaf(buffer, g, frame, sorted);
}

void finish_leaf(std::byte* buffer, const Geometry& g, const NodeFrame& frame,
                 const SortedBlock& sorted) {
  wire::NodeHeader header{};
  write_fences(buffer, g, frame, header);
  const std::uint32_t fence_begin = g.node_bytes - fence_room(frame.low, frame.high);
  ESPALIER_ASSERT(sorted.end <= fence_begin);
  // A full leaf has no log: log_begin may lie behind log_end.
  const std::uint32_t log_begin = (sorted.end + 7) & ~7u;
  const std::uint32_t log_bytes =
      g.leaf_log_bytes(sorted.end - g.sorted_begin, sorted.items, frame.high.empty());
  const std::uint32_t log_end =
      std::max(log_begin, std::min(log_begin + log_bytes, fence_begin & ~7u));
  header.kind = wire::NodeKind::leaf;
  header.key_prefix_base = sorted.map.base;
  header.key_prefix_shift = static_cast<std::uint8_t>(sorted.map.shift);
  header.chunks = static_cast<std::uint8_t>(
      sorted.items == 0 ? 0 : ((sorted.end - 1 - g.sorted_begin) >> g.chunk_shift) + 1);
  header.sorted_end = u16(sorted.end);
  header.items = u16(sorted.items);
  header.log_begin = u16(log_begin);
  header.log_end = u16(log_end);
  write_header(buffer, header);
  if (!planted(Bug::log_not_prefilled)) {
    std::memset(buffer + log_begin, 0xFF, log_end - log_begin);
  }
  std::memset(buffer + g.slots_begin, 0xFF, std::size_t{2} * g.log_slots);
  std::memset(buffer + g.places_begin, 0xFF, std::size_t{2} * g.log_slots);
}

void go_live(std::byte* buffer, std::uint64_t created) {
  // The buffer is not live yet.
  ESPALIER_ASSERT(
      base::load_shared<std::uint64_t>(buffer + offsetof(wire::NodeHeader, superseded)) == 0);
  base::store_shared<std::uint64_t>(buffer + offsetof(wire::NodeHeader, created), created);
  base::store_shared<std::uint64_t>(buffer + offsetof(wire::NodeHeader, superseded), wire::kLive,
                                    std::memory_order_release);
}

}  // namespace espalier::tree
