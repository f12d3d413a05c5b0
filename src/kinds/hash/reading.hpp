// SPDX-License-Identifier: Apache-2.0
// The read algorithm of hash maps: from a key to its state at a version, concurrently with writers.
//
//   directory -> bin. Pending? the bin of the segment that is being split. Moved? restart
//   slots of the tag -> links by version -> record: its key, its version
//   miss: has the bin changed meanwhile? restart
//   miss, or an older state: was a state taken out since the version? restart with a newer one
//
// A view brings the bytes: in place (HashView), or by READs (remote/remote_view.hpp). The latter
// returns zeros for bytes that have not arrived, and reports that; then the result is void.
//
// Requires: nothing that the reader reaches is freed meanwhile: an exposed epoch, or a lease, since
// before the version was loaded.
// Thread: any. No locks; a reader restarts only if another thread has made progress, and after
// kLooksMax looks takes the lock of the partition for the next one.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "kinds/hash/hash_view.hpp"
#include "kinds/hash/planted_hash_bugs.hpp"
#include "kinds/hash/record_view.hpp"
#include "kinds/hash/slot_search.hpp"

namespace espalier::hash {

enum class Look : std::uint8_t {
  found,
  absent,
  changed,   ///< the bin has moved or changed: restart
  too_late,  ///< the state at the version may be gone: restart with a newer one
};

[[nodiscard]] constexpr bool begins_again(Look look) {
  return look == Look::changed || look == Look::too_late;
}
/// Limit on looks without the lock of the partition.
inline constexpr std::uint32_t kLooksMax = 16;

/// The result of a look at the map.
struct Looked {
  Look look = Look::absent;
  bool older = false;  // by the older side of a link
  Slot record{};       // where found
};

/// A bin that was located, with the header read then.
struct BinPlace {
  Look look = Look::found;  // absent: the partition is empty; changed
  PlaceWord segment{};
  const std::byte* bin = nullptr;
  BucketWord header{};
};

/// The version at which the newest state is read, released or not, if versions are off.
inline constexpr std::uint64_t kAnyVersion = std::numeric_limits<std::uint64_t>::max();

/// The current state of a bin that the directory led to earlier.
[[nodiscard]] inline BinPlace revisit(PlaceWord segment, const std::byte* bin) {
  BinPlace place{Look::found, segment, bin, load_bucket_word(bin)};
  if (place.header.pending() || place.header.depth() > segment.depth()) {
    place.look = Look::changed;
  }
  return place;
}

[[nodiscard]] inline Slot load_slot(const std::byte* at) {
  return Slot{base::load_shared<std::uint64_t>(at, std::memory_order_acquire)};
}

/// The result of a look-ahead for a key: a hint, which is checked again before use.
struct KeyHint {
  PlaceWord segment{};
  const std::byte* bin = nullptr;  // null: its partition was empty, or nothing was looked for
  /// The address of the slot, in the bin or its next bucket; if no slot had the tag, the next
  /// bucket; null: there is none.
  const std::byte* slot_at = nullptr;
  Slot slot{};  // that had the key's tag; empty: none had
};

/// Returns the hint's slot if it is still valid: its record has the key beside its value, is the
/// newest, and has at most this version. Empty: it is not, or that is unsure, and the bin must be
/// searched.
/// Requires: the key is not empty.
[[nodiscard]] inline Slot confirm(const HashView& view, const KeyHint& hint, std::string_view key,
                                  std::uint64_t version) {
  if (hint.slot.empty() || hint.slot.is_link()) return {};
  if (revisit(hint.segment, hint.bin).look == Look::changed) return {};
  reached(Moment::bin_read);
  if (load_slot(hint.slot_at) != hint.slot && !planted(Bug::hint_believed)) return {};
  const RecordView record(view.image, hint.slot);
  if (!record.confirmed() || !record.has_beside(key)) return {};
  return record.version() <= version || planted(Bug::answer_unreleased) ? hint.slot : Slot{};
}

/// Finds the bin of a number in the segment that the partition's directory has for the hash now.
template <class View>
[[nodiscard]] inline BinPlace locate_bin(const View& view, std::uint32_t partition,
                                         const KeyHash& hash, std::uint32_t bin) {
  const PlaceWord directory = view.directory(partition);
  if (directory.none()) return {.look = Look::absent};
  BinPlace place;
  place.segment = view.segment(directory, hash.prefix(directory.depth()));
  reached(Moment::entry_read);
  place.bin = view.bucket(place.segment, bin);
  place.header = load_bucket_word(place.bin);
  if (place.header.pending()) [[unlikely]] {
    // Its slots are still in the other half, if the depth of that one confirms it.
    const std::uint32_t depth = place.header.depth();
    if (depth > directory.depth()) return {.look = Look::changed};
    const std::uint32_t other = (hash.prefix(depth) & ~1u) << (directory.depth() - depth);
    place.segment = view.segment(directory, other);
    place.bin = view.bucket(place.segment, bin);
    place.header = load_bucket_word(place.bin);
    if (place.header.depth() + 1 != depth && !planted(Bug::moved_bin_answered)) {
      place.look = Look::changed;
    }
  } else if (place.header.depth() > place.segment.depth() && !planted(Bug::moved_bin_answered)) {
    place.look = Look::changed;
  }
  return place;
}

/// Finds the bin that the hash selects now.
template <class View>
[[nodiscard]] inline BinPlace locate(const View& view, const KeyHash& hash) {
  return locate_bin(view, hash.partition(), hash, hash.bin());
}

/// The state of the key at a version by a slot of the right tag. `other`: it is another key's.
template <class View>
[[nodiscard]] inline Looked resolve(const View& view, Slot slot, std::string_view key,
                                    std::uint64_t version, bool& other) {
  Looked result{Look::absent, false, slot};
  const auto visible = [&](std::uint64_t of) {
    return of <= version || planted(Bug::answer_unreleased);
  };
  while (result.record.is_link()) [[unlikely]] {
    const RecordView link = view.record(result.record);
    if (!link.confirmed()) return {.look = Look::changed};
    if (visible(link.version())) {
      result.record = link.newer();
      break;
    }
    result.older = true;
    result.record = link.older();
  }
  const auto any = [&] { return any_record_by([&](Slot at) { return view.record(at); }, slot); };
  const Slot named = result.record.empty() ? any() : result.record;
  if (named.empty()) return {.look = Look::changed};
  const RecordView record = view.record(named);
  if (!record.confirmed()) return {.look = Look::changed};
  other = !same_key(view.pair(record).key, key);
  if (!other && !result.record.empty() && visible(record.version())) result.look = Look::found;
  return result;
}

/// Searches a bin. A miss is valid if the bin did not change; Look::changed reports a change.
template <class View>
[[nodiscard]] inline Looked search(const View& view, const BinPlace& place, const KeyHash& hash,
                                   std::string_view key, std::uint64_t version) {
  reached(Moment::bin_read);
  Looked result;
  const std::byte* bucket = place.bin;
  for (std::uint32_t steps = 0; steps < 2 * kSlotsPerBucket; ++steps) {
    for (std::uint32_t found = matching_slots(bucket, hash.tag()); found != 0; found &= found - 1) {
      const Slot slot =
          load_slot(bucket + offsetof(Bucket, slots) + first_match(found) * sizeof(Slot));
      if (slot.is_overflow() || slot.tag() != hash.tag()) continue;  // it has changed: see below
      bool other = false;
      const Looked looked = resolve(view, slot, key, version, other);
      if (looked.look == Look::found) return looked;
      if (looked.look == Look::changed || !other) {
        result = looked;
        break;
      }
    }
    const Slot last =
        load_slot(bucket + offsetof(Bucket, slots) + (kSlotsPerBucket - 1) * sizeof(Slot));
    if (result.look == Look::changed || !last.is_overflow()) break;
    reached(Moment::bucket_read);
    bucket = view.bucket(place.segment, last.line());
  }
  const bool same = view.bucket_word_now(place.bin) == place.header;
  if (!same && !planted(Bug::changes_ignored)) return {.look = Look::changed};
  return result;
}

/// The state of the key at a version, in a bin that was located for it. `held`: a snapshot holds
/// the version, so that no state that it needs is gone.
template <class View>
[[nodiscard]] inline Looked look_in(const View& view, const BinPlace& place, const KeyHash& hash,
                                    std::string_view key, std::uint64_t version, bool held) {
  if (place.look == Look::changed) return {.look = Look::changed};
  Looked looked;
  if (place.look == Look::found) looked = search(view, place, hash, key, version);
  const bool exact = looked.look == Look::found && !looked.older;
  if (exact || looked.look == Look::changed || held) return looked;
  const bool late = view.purged(hash.partition()) > version;
  return late && !planted(Bug::purged_ignored) ? Looked{.look = Look::too_late} : looked;
}

/// The same in the bin that the directory leads to now.
template <class View>
[[nodiscard]] inline Looked look_up(const View& view, const KeyHash& hash, std::string_view key,
                                    std::uint64_t version, bool held) {
  return look_in(view, locate(view, hash), hash, key, version, held);
}

}  // namespace espalier::hash
