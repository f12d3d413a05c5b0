// SPDX-License-Identifier: Apache-2.0
// Named counters that issue numbers, each once [DPU §6.2]: without epochs, seals or objects. Used
// in nodes and embedded stores.
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
  /// Maximum of one call if there is a sink, so that the numbers issued by lost records are
  /// bounded.
  static constexpr std::uint32_t kMostAtOnce = std::uint32_t{1} << 24;

  /// Takes `count` consecutive numbers; returns the first. A counter begins at 0, or at the floor.
  /// `sink`: takes the record, which has the next number; null: none.
  /// Errors: invalid_argument (with a sink: more than kMostAtOnce, which is the detail),
  /// out_of_memory (too many counters); exhausted (fewer numbers are left); those of the sink.
  Result<std::uint64_t> take(std::string_view name, std::uint32_t count,
                             catalog::RedoSink* sink = nullptr);
  /// Applies a record, of any bytes: later numbers are above those in the record. Errors: corrupt
  /// (detail: a catalog::RedoFault), out_of_memory (as above).
  Result<void> apply_redo(std::string_view record);
  /// Continues after an accepted loss of records: each counter skips far ahead, and unknown
  /// counters, all of whose records may be lost, begin there. Called before any number is taken.
  /// Errors: those of the sink.
  Result<void> go_on_after_loss(catalog::RedoSink* sink);
  /// First number of a new counter.
  [[nodiscard]] std::uint64_t floor() const {
    const std::lock_guard lock(mutex_);
    return floor_;
  }
  /// Position of each_some().
  struct Place {
    std::size_t bucket = 0;
    std::size_t buckets = 0;
  };
  /// Calls `with(name, next)` for some counters from a position on, under the lock: it must not
  /// wait. Returns whether there are more. Visits counters that exist from the first call on at
  /// least once; starts over if many are created meanwhile. Cost: bounded.
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
  // Require the lock.
  void raise_floor(std::uint64_t floor);
  // The next number; null: too many counters.
  std::uint64_t* next_of(std::string_view name);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> next_;
  std::uint64_t floor_ = 0;  // no counter continues below it
};

}  // namespace espalier::sequencer
