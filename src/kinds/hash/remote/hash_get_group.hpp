// SPDX-License-Identifier: Apache-2.0
// Gets of one reader that go the usual way, many at a time and in stages, so that what each stage
// looks at has been asked for by the stage before: what is remembered of bins, by prefetches; bins
// and records, by one doorbell for the whole group.
//
//   queue -> keys -> bins -> what is remembered of them -> slots
//         -> [ map header | bins, buckets behind them, records, their headers again ] -> answers
//            one doorbell, whose READs keep their order
//
// The usual way: the directory is known, the bin is remembered, or the one bucket in which it goes
// on; the slot that had the key's tag is there still, and names a record of this key that lies
// beside its value. Whatever else there is, a miss too, goes to a lane, which knows all of it, and
// begins anew; so a group needs no waits and no turns back.
//
// Why its answers may be believed: as those of lanes (remote_view.hpp, 1 to 3 and 6), by fewer
// looks. The lease was believed when the group began; then the READ of the header was posted,
// before all else; each bin came after it and says itself whose it is and that it has not been
// moved; each record came after the bin that names it, and its header once more behind its last
// byte, by a READ that succeeds only while the key is good; and then the lease was still the same,
// and believed.
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
  /// Gets of one doorbell, at most.
  static constexpr std::uint32_t kMost = 32;

  /// `shared` outlives it. `most`: gets of a group. Requires: something is remembered, and READs
  /// keep their order.
  HashGetGroup(HashGetShared& shared, std::uint32_t most);
  HashGetGroup(const HashGetGroup&) = delete;
  HashGetGroup& operator=(const HashGetGroup&) = delete;

  /// Takes what has come, and begins the next group with the first of `queue`. What goes another
  /// way is moved to `others`. Returns whether anything was done. Requires: `others` is empty, and
  /// has room for kMost. Errors: what handlers throw, each of whom has been told all the same.
  bool turn(std::deque<QueuedHashGet>& queue, std::vector<QueuedHashGet>& others);
  /// Gets that wait for what was posted.
  [[nodiscard]] std::size_t pending() const { return begun_.size(); }

 private:
  /// What READs bring of one get.
  struct Brought {
    alignas(hash::kLineBytes) std::byte bin[hash::kLineBytes];
    std::byte more[hash::kLineBytes];  // the bucket in which the bin goes on
    alignas(8) std::byte proof[sizeof(hash::RecordHeader)];
    alignas(hash::kLineBytes) std::byte record[hash::kRecordLengthMax];
  };
  struct Get {
    QueuedHashGet of{};
    hash::PlaceWord segment{};
    std::uint64_t tag = 0;
    std::uint64_t bin = 0;            // where it lies
    const std::byte* kept = nullptr;  // as it was
    std::uint32_t line = 0;           // of the bucket in which it goes on; 0: the bin has the slot
    std::uint32_t slot_at = 0;        // in that bucket, or in the bin
    hash::Slot named{};
    std::uint32_t record_bytes = 0;
    bool remembered = false;  // the record: its header alone is read
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
  /// Keeps those of the group that `stays` says of; the others go another way.
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
