// SPDX-License-Identifier: Apache-2.0
// Records, links and long pairs as they lie in the region, for whoever has a slot that names one.
//
// A slot is believed as long as the generation in it is that of what lies there: asked before the
// bytes are looked at, and again after the last of them was used where nothing keeps them from
// being freed (docs/design/hash.md, readers from elsewhere).
//
// Thread: safe, no state. What a slot of a live bin names is written before the slot is stored, and
// does not change but for the version of what is being published, and a link's older side.
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

/// The version of a record that a transaction has put in place and not written yet: above all that
/// readers have. Only who asks for the newest state meets it, and then waits for the lock.
inline constexpr std::uint64_t kUnwritten = wire::kNoNode;

/// A record's key and value: where they lie.
struct Pair {
  std::string_view key;
  std::string_view value;
};

/// Whether keys of one length are one. Cost: of 8 to 16 bytes two comparisons, and no call.
[[nodiscard]] inline bool same_bytes(const char* a, const char* b, std::size_t size) {
  if (size - 8 > 8) return std::memcmp(a, b, size) == 0;
  using base::load_le;
  const std::size_t last = size - 8;
  return ((load_le<std::uint64_t>(a) ^ load_le<std::uint64_t>(b)) |
          (load_le<std::uint64_t>(a + last) ^ load_le<std::uint64_t>(b + last))) == 0;
}
/// Whether two keys are one.
[[nodiscard]] inline bool same_key(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

/// What a slot names, in an image of the region.
class RecordView {
 public:
  RecordView(const std::byte* image, Slot slot) : RecordView(image, image + slot.offset(), slot) {}
  /// Of bytes that were brought from where the slot says. `image`: of the region, where pairs are
  /// asked for; those of bytes that were brought have none.
  RecordView(const std::byte* image, const std::byte* at, Slot slot)
      : image_(image), at_(at), slot_(slot) {}

  /// Whether what lies there is what the slot meant.
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
  /// Whether it has this key, and its value beside it: not of a long record, nor of a link.
  /// Requires: the key is not empty.
  [[nodiscard]] bool has_beside(std::string_view key) const {
    return base::load_plain<std::uint16_t>(at_ + offsetof(RecordHeader, key_bytes)) == key.size() &&
           same_bytes(reinterpret_cast<const char*>(at_) + sizeof(RecordHeader), key.data(),
                      key.size());
  }
  /// The value, where has_beside() says of a key of so many bytes that it has it.
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
  /// Its lengths.
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

/// A record of the key whose state a slot names: all that it leads to are of one key.
/// `record_of(slot)`: what a slot names, a RecordView.
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
