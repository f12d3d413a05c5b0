// SPDX-License-Identifier: Apache-2.0
// Common gets of one reader, in groups and in stages, so that each stage finds in the cache what
// the stage before has requested: cached copies of bins by prefetches; bins and records by one
// doorbell for the whole group.
//
//   queue -> keys -> bins -> their cached copies -> slots
//         -> [ map header | bins, buckets behind them, records, their headers again ] -> answers
//            one doorbell, whose READs are ordered
//
// A get is common if the directory is known; the bin is cached, or the one bucket that follows it;
// and the slot that had the key's tag is there still, and names a record of this key with its value
// beside it. Every other get, a miss too, moves to a lane, which handles all cases and starts over;
// so a group has no further waits and no restarts.
//
// Correctness: as of lanes (remote_view.hpp, 1 to 3 and 6), by fewer checks. The lease was valid
// when the group began; then the READ of the header was posted, before all else; each bin was read
// after it, and its header tells its segment and that it was not moved; each record was read after
// the bin that names it, and its header again after its last byte, by a READ that succeeds only
// while the key is good; and then the lease was still the same, and valid.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/task.hpp"
#include "kinds/hash/remote/hash_get_lane.hpp"

namespace espalier::place {

class HashGetGroup {
 public:
  /// Limit on gets of one doorbell.
  static constexpr std::uint32_t kMost = 32;

  /// `shared` outlives it. `most`: gets of a group. Requires: there is a cache, and READs are
  /// ordered.
  HashGetGroup(HashGetShared& shared, std::uint32_t most);
  HashGetGroup(const HashGetGroup&) = delete;
  HashGetGroup& operator=(const HashGetGroup&) = delete;

  /// Completes the group whose READs have arrived, and begins the next with the first of `queue`.
  /// Gets for lanes are moved to `others`. Returns whether anything was done. Requires: `others` is
  /// empty, and has room for kMost. Errors: exceptions of handlers, each of which was called all
  /// the same.
  bool turn(std::deque<QueuedHashGet>& queue, std::vector<QueuedHashGet>& others);
  /// Gets that wait for posted READs.
  [[nodiscard]] std::size_t pending() const { return begun_.size(); }

 private:
  /// The destination of READs of one get.
  struct Brought {
    alignas(hash::kLineBytes) std::byte bin[hash::kLineBytes];
    std::byte more[hash::kLineBytes];  // the bucket that continues the bin
    alignas(8) std::byte proof[sizeof(hash::RecordHeader)];
    alignas(hash::kLineBytes) std::byte record[hash::kRecordLengthMax];
  };
  struct Get {
    QueuedHashGet of{};
    hash::PlaceWord segment{};
    std::uint64_t tag = 0;
    std::uint64_t bin = 0;            // where it lies
    const std::byte* kept = nullptr;  // its cached copy
    std::uint32_t line = 0;           // of the bucket that continues it; 0: the bin has the slot
    std::uint32_t slot_at = 0;        // in that bucket, or in the bin
    hash::Slot named{};
    std::uint32_t record_bytes = 0;
    bool remembered = false;  // the record is cached: only its header is read
  };

  void begin(std::deque<QueuedHashGet>& queue, std::vector<QueuedHashGet>& others);
  void take(std::deque<QueuedHashGet>& queue);
  [[nodiscard]] bool find_bin(Get& get) const;
  [[nodiscard]] bool find_slot(Get& get) const;
  [[nodiscard]] bool find_slot_behind(Get& get) const;
  [[nodiscard]] bool take_slot(Get& get, const std::byte* kept, std::uint32_t found) const;
  void want_all();
  void want(Get& get, Brought& brought);
  [[nodiscard]] bool take_kept(Get& get, Brought& brought) const;
  void end(std::vector<QueuedHashGet>& others);
  [[nodiscard]] bool look(const Get& get, const Brought& brought, Completion& answer) const;
  void learn(const Get& get, const Brought& brought) const;
  /// Keeps those of the group for which `stays` returns true; the others go to lanes.
  template <class Stays>
  void sift(std::vector<QueuedHashGet>& others, const Stays& stays);

  HashGetShared& shared_;
  std::vector<Get> gets_;
  std::unique_ptr<Brought[]> brought_;
  std::vector<std::uint32_t> begun_;  // of gets_, those that are in the group
  std::uint64_t term_ = 0;            // of the lease under which it began
  std::uint32_t tick_ = 0;
  HashHeaderRead header_;
  base::ReadyQueue ready_{1};
  LaneReads reads_;
};

}  // namespace espalier::place
