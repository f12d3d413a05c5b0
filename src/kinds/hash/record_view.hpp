// SPDX-License-Identifier: Apache-2.0
// Views of records, links and long pairs in the region, by a slot that names one.
//
// A slot is valid as long as its generation is that of the record: checked before the bytes are
// read, and again after the last of them was used if nothing prevents that they are freed
// (docs/design/hash.md, readers from elsewhere).
//
// Thread: safe, no state. The target of a live bin's slot is written before the slot is stored, and
// does not change except for the version of an unpublished record, and a link's older side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/planted_hash_bugs.hpp"
#include "wire/ref.hpp"

namespace espalier::hash {

/// The version of a record that a transaction has placed and not yet published: above all read
/// versions. Only a reader of the newest state meets it, and then waits for the lock.
inline constexpr std::uint64_t kUnwritten = wire::kNoNode;

/// The locations of a record's key and value.
struct Pair {
  std::string_view key;
  std::string_view value;
};

/// Whether keys of one length are equal. Cost: of 8 to 16 bytes two comparisons, and no call.
[[nodiscard]] inline bool same_bytes(const char* a, const char* b, std::size_t size) {
  if (size - 8 > 8) return std::memcmp(a, b, size) == 0;
  using base::load_le;
  const std::size_t last = size - 8;
  return ((load_le<std::uint64_t>(a) ^ load_le<std::uint64_t>(b)) |
          (load_le<std::uint64_t>(a + last) ^ load_le<std::uint64_t>(b + last))) == 0;
}
/// Whether two keys are equal.
[[nodiscard]] inline bool same_key(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

/// The target of a slot, in an image of the region.
class RecordView {
 public:
  RecordView(const std::byte* image, Slot slot) : RecordView(image, image + slot.offset(), slot) {}
  /// Of a copy of the bytes that the slot names. `image`: of the region, if pairs of long records
  /// are accessed; readers of copies have none.
  RecordView(const std::byte* image, const std::byte* at, Slot slot)
      : image_(image), at_(at), slot_(slot) {}

  /// Whether the record still has the generation of the slot.
  [[nodiscard]] bool confirmed() const {
    if (planted(Bug::generation_not_confirmed)) return true;
    const auto generation = base::load_shared<std::uint32_t>(
        at_ + offsetof(RecordHeader, generation), std::memory_order_acquire);
    return (generation & Slot::kGenerationMask) == slot_.generation();
  }
  [[nodiscard]] std::uint64_t version() const {
    return base::load_shared<std::uint64_t>(at_ + offsetof(RecordHeader, version));
  }
  // Of a link.
  [[nodiscard]] Slot newer() const {
    return Slot{base::load_shared<std::uint64_t>(at_ + offsetof(VersionLink, newer),
                                                 std::memory_order_acquire)};
  }
  [[nodiscard]] Slot older() const {
    return Slot{base::load_shared<std::uint64_t>(at_ + offsetof(VersionLink, older),
                                                 std::memory_order_acquire)};
  }
  // Of a record.
  [[nodiscard]] bool is_long() const { return header().key_bytes == 0; }
  [[nodiscard]] Pair pair() const {
    const RecordHeader head = header();
    if (head.key_bytes != 0) [[likely]] {
      const auto* const key = reinterpret_cast<const char*>(at_) + sizeof(RecordHeader);
      return {{key, head.key_bytes}, {key + head.key_bytes, head.value_bytes}};
    }
    const auto whole = base::load_plain<LongRecord>(at_);
    const auto* const key = reinterpret_cast<const char*>(image_) + wire::Ref{whole.pair}.offset() +
                            sizeof(LongPairHeader);
    return {{key, whole.key_bytes}, {key + whole.key_bytes, whole.value_bytes}};
  }
  /// Whether it has this key, and its value beside it: false for a long record and for a link.
  /// Requires: the key is not empty.
  [[nodiscard]] bool has_beside(std::string_view key) const {
    return base::load_plain<std::uint16_t>(at_ + offsetof(RecordHeader, key_bytes)) == key.size() &&
           same_bytes(reinterpret_cast<const char*>(at_) + sizeof(RecordHeader), key.data(),
                      key.size());
  }
  /// The value, if has_beside() is true for a key of so many bytes.
  [[nodiscard]] std::string_view value_beside(std::size_t key_bytes) const {
    return {reinterpret_cast<const char*>(at_) + sizeof(RecordHeader) + key_bytes,
            base::load_plain<std::uint16_t>(at_ + offsetof(RecordHeader, value_bytes))};
  }
  /// Of a long record: its buffer.
  [[nodiscard]] wire::Ref long_pair() const {
    return wire::Ref{base::load_plain<LongRecord>(at_).pair};
  }
  /// Of a long record: its key's hash.
  [[nodiscard]] std::uint64_t long_hash() const {
    return base::load_plain<std::uint64_t>(image_ + long_pair().offset() +
                                           offsetof(LongPairHeader, hash));
  }
  [[nodiscard]] const std::byte* at() const { return at_; }
  [[nodiscard]] Slot slot() const { return slot_; }
  /// The lengths; the other fields are 0.
  [[nodiscard]] RecordHeader header() const {
    RecordHeader head{};
    head.key_bytes = base::load_plain<std::uint16_t>(at_ + offsetof(RecordHeader, key_bytes));
    head.value_bytes = base::load_plain<std::uint16_t>(at_ + offsetof(RecordHeader, value_bytes));
    return head;
  }

 private:
  const std::byte* image_;
  const std::byte* at_;
  Slot slot_;
};

/// A record of the key whose states a slot names: all records of its chain have one key.
/// `record_of(slot)`: the RecordView of a slot.
/// Requires: the slot is not empty, and names no overflow bucket.
template <class RecordOf>
[[nodiscard]] Slot any_record_by(const RecordOf& record_of, Slot slot) {
  while (slot.is_link()) {
    const RecordView link = record_of(slot);
    const Slot newer = link.newer();
    slot = newer.empty() ? link.older() : newer;
  }
  return slot;
}
/// The same in an image of the region.
[[nodiscard]] inline Slot any_record(const std::byte* image, Slot slot) {
  return any_record_by([image](Slot named) { return RecordView(image, named); }, slot);
}

/// The newest state that a slot names, released or not.
struct NewestState {
  Slot record{};              // empty: erased
  std::uint64_t version = 0;  // under which it became so
};
[[nodiscard]] inline NewestState newest_state(const std::byte* image, Slot slot) {
  const RecordView view(image, slot);
  return {slot.is_link() ? view.newer() : slot, view.version()};
}

}  // namespace espalier::hash
