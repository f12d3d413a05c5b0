// SPDX-License-Identifier: Apache-2.0
// Selective signalling: posts of one pair, few of which are signalled [RAMBDA §III-C]. All that is
// added between two doorbells leaves together, and one completion covers many posts.
//
//   add() -> waiting -> ring() -> in flight -> completed() -> ends()
//
// The last post of each doorbell and each k-th are signalled. A pair completes its requests in
// order, so a completion also completes all posts before it; a failed post always completes,
// signalled or not. Posts behind a failure may have left, and may still take effect, until the peer
// has revoked the key that they use; nothing here is posted again.
//
// Cost: each post that answers rings goes through here, so it is built in the place from which it
// is posted (fabric/types.hpp).
//
// Invariants
// P1. Each post that was added ends once, in the order in which they were added.
// P2. The fabric owns the memory that a post names until the post is among ends().
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
    std::uint64_t completions = 0;  ///< by which it completed them
    std::uint64_t failures = 0;     ///< posts that did not end as `done`
  };

  /// `depth`: posts that have not ended, at most. `signal_every`: k. Requires: 1 <= signal_every,
  /// and it is at most half of the depth, or both are 1, so that half of the queue is free again
  /// while the rest is in flight.
  PostQueue(std::uint32_t depth, std::uint32_t signal_every);
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;

  /// Uses this pair from the next doorbell on; it lives until detach(). Waiting posts leave by it
  /// too. Requires: no pair is attached; this one can have `depth` requests in flight.
  void attach(QueuePair& pair);
  [[nodiscard]] bool attached() const { return pair_ != nullptr; }
  /// Posts in flight end as unknown, and waiting ones as not sent. Requires: the pair is in the
  /// error state, so that it no longer reads or writes what its posts name.
  void detach();

  /// Ends that ends() has not returned take room too.
  [[nodiscard]] bool has_room() const {
    return end_ - begin_ + (taken_ ? 0 : ended_.size()) < depth_;
  }
  /// Whether a post is signalled by itself.
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
  /// Hands what was added to the pair, with one doorbell. A pair that is connecting sends nothing
  /// yet, one in the error state nothing ever; if its completion queue is full, the rest waits for
  /// the next doorbell. Returns whether anything left. Errors: std::bad_alloc; the pair is unusable
  /// then, and all that waited ends as unknown.
  bool ring();
  /// Whether something waits for a doorbell.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  /// Handles a completion of a request that this queue posted. One of an earlier pair changes
  /// nothing: its posts have ended.
  void completed(const Completion& completion);
  /// Posts that have ended since the last call, in order. Valid until the next call but has_room().
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
