// SPDX-License-Identifier: Apache-2.0
// Named counters that hand out numbers, each once [DPU §6.2]: without epochs or seals, and without
// objects. Those of a node and of an embedded store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"
#include "store/store_parts.hpp"

namespace espalier::sequencer {

/// The counters of one store. Thread: any.
class Counters final : public store::StorePart {
 public:
  static constexpr std::size_t kMost = 65536;
  static constexpr std::size_t kBucketsAtOnce = 256;
  /// Numbers that one call takes where there is a sink, so that what lost records gave is bounded.
  static constexpr std::uint32_t kMostAtOnce = std::uint32_t{1} << 24;

  /// Takes `count` numbers in a row; returns the first. A counter begins at 0, or at the floor.
  /// `sink`: where the record of it goes, which has the number that comes next; null: nowhere.
  /// Errors: invalid_argument (with a sink: more than kMostAtOnce, which is the detail),
  /// out_of_memory (there are too many counters); exhausted (there are not so many numbers left);
  /// those of the sink.
  Result<std::uint64_t> take(std::string_view name, std::uint32_t count,
                             catalog::RedoSink* sink = nullptr);
  /// Applies a record, of any bytes: from then on numbers are above those that it tells of.
  /// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory (as above).
  Result<void> apply_redo(std::string_view record);
  /// Records of numbers that were taken are lost, and that is accepted: each counter goes on far
  /// above what it has, and one that is not known, for all its records may be lost, begins there.
  /// Called before anybody takes some. Errors: those of the sink.
  Result<void> go_on_after_loss(catalog::RedoSink* sink);
  /// Where a counter begins that is new.
  [[nodiscard]] std::uint64_t floor() const {
    const std::lock_guard lock(mutex_);
    return floor_;
  }
  /// How far each_some() has come.
  struct Place {
    std::size_t bucket = 0;
    std::size_t buckets = 0;
  };
  /// Calls `with(name, next)` for some of them, from a place on, under the lock: it must not wait.
  /// Returns whether there are more. Counters that are there from the first call on come at least
  /// once; where many are made meanwhile it begins again. Cost: bounded, whatever there is.
  template <class With>
  bool each_some(Place& place, const With& with) const {
    const std::lock_guard lock(mutex_);
    if (place.buckets != next_.bucket_count()) place = {0, next_.bucket_count()};
    const std::size_t end = std::min(place.buckets, place.bucket + kBucketsAtOnce);
    for (; place.bucket < end; ++place.bucket) {
      for (auto at = next_.begin(place.bucket); at != next_.end(place.bucket); ++at) {
        with(std::string_view(at->first), at->second);
      }
    }
    return place.bucket < place.buckets;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  // Of these: requires the lock.
  void raise_floor(std::uint64_t floor);
  // The number that comes next; null: there are too many.
  std::uint64_t* next_of(std::string_view name);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> next_;
  std::uint64_t floor_ = 0;  // no counter goes on below it
};

}  // namespace espalier::sequencer
