// SPDX-License-Identifier: Apache-2.0
// Posts of one pair, few of which are signalled [RAMBDA §III-C]: all that is added between two
// doorbells leaves together, and one completion tells of many.
//
//   add() -> waiting -> ring() -> in flight -> completed() -> ends()
//
// Signalled are the last of each doorbell and each k-th. A pair tells its requests in order, so a
// completion is also that of all before it, the failed one too: what failed is told whether it was
// signalled or not. What came behind a failure may have left, and may still take effect, until the
// peer has revoked the key by which it was to; nothing here is posted again.
//
// What posts answers of rings goes through here for each of them, so what is added is built in the
// place from which it is posted (fabric/types.hpp).
//
// Invariants
// P1. Each post that was added ends once, in the order in which they were added.
// P2. What a post names of this process is the fabric's own until its end is told.
// P3. What is not signalled has something signalled behind it, or waits for the next doorbell.
//
// Thread: that of the pair's endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/post_end.hpp"
#include "fabric/queue_pair.hpp"

namespace espalier::fabric {

class PostQueue {
 public:
  /// One post that has ended.
  struct Ended {
    std::uint64_t owner = 0;
    PostEnd how = PostEnd::done;
    Status status = Status::success;  ///< of not_sent: flushed

    friend bool operator==(const Ended&, const Ended&) = default;
  };
  struct Counts {
    std::uint64_t posts = 0;        ///< that the pair took
    std::uint64_t doorbells = 0;    ///< by which it took them
    std::uint64_t completions = 0;  ///< by which it told of them
    std::uint64_t failures = 0;     ///< posts that did not end as `done`
  };

  /// `depth`: posts that have not ended, at most. `signal_every`: k. Requires: 1 <= signal_every,
  /// and it is at most half of the depth, or both are 1, so that half of the queue is free again
  /// while the rest is in flight.
  PostQueue(std::uint32_t depth, std::uint32_t signal_every);
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;

  /// Posts by this pair from the next doorbell on; it lives until detach(). What waited for one
  /// leaves too. Requires: no pair is attached; this one can have `depth` requests in flight.
  void attach(QueuePair& pair);
  [[nodiscard]] bool attached() const { return pair_ != nullptr; }
  /// What is in flight ends as unknown, and what waits as not sent. Requires: the pair has ended,
  /// so that it no longer reads or writes what its posts name.
  void detach();

  /// Ends that were not asked for take room too.
  [[nodiscard]] bool has_room() const {
    return end_ - begin_ + (taken_ ? 0 : ended_.size()) < depth_;
  }
  /// When the end of a post is asked for.
  enum class Signal : std::uint8_t { with_others, by_itself };
  /// Takes a post, which leaves with the next doorbell; `owner` comes back with its end. Returns
  /// false if there is no room: something must end first. Requires: the pair can carry it.
  [[nodiscard]] bool add(const WorkRequest& request, std::uint64_t owner,
                         Signal signal = Signal::with_others) {
    if (!has_room()) return false;
    owners_[end_ & mask_] = owner;
    WorkRequest& added = waiting_.emplace_back(request);
    added.work_id = end_++;
    added.signalled = signal == Signal::by_itself;
    return true;
  }
  /// Hands what was added to the pair, with one doorbell. Of a pair that is being connected nothing
  /// leaves yet, of one that has ended nothing ever; and where its completion queue has no room for
  /// more, the rest waits for the next doorbell. Returns whether anything left. Errors:
  /// std::bad_alloc; the pair is of no more use then, and all that waited ends as unknown.
  bool ring();
  /// Whether something waits for a doorbell.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  /// Takes a completion of a request that this queue posted. One of an earlier pair changes
  /// nothing: its posts have ended.
  void completed(const Completion& completion);
  /// Those that have ended since it was last asked, in order. Valid until the next call but
  /// has_room().
  [[nodiscard]] std::span<const Ended> ends();

  /// Posts that have not ended.
  [[nodiscard]] std::uint64_t pending() const { return end_ - begin_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  void finish(PostEnd how, Status status);
  void mark_signalled();
  Posted post_waiting();

  const std::uint32_t depth_;
  const std::uint32_t signal_every_;
  const std::uint32_t mask_;
  QueuePair* pair_ = nullptr;
  std::unique_ptr<std::uint64_t[]> owners_;  // by number of the post
  std::vector<WorkRequest> waiting_;         // the last ones, which no pair has taken
  std::vector<Ended> ended_;
  bool taken_ = false;           // the caller has seen all of ended_
  std::uint64_t begin_ = 0;      // the oldest that has not ended
  std::uint64_t end_ = 0;        // behind the last that was added
  std::uint64_t signalled_ = 0;  // behind the last that was signalled
  Counts counts_;
};

}  // namespace espalier::fabric
