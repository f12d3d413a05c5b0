// SPDX-License-Identifier: Apache-2.0
// How a scheduler reaches the node in whose memory its objects lie, where that is not its own: the
// scheduler is then a device's (docs/design/device.md). What a device can read it serves by itself,
// and what only the host can do is posted to the host.
//
// A post never fails and never waits: whatever becomes of it is told by an answer in a later turn,
// and if the host is gone by one that says so.
//
// Thread: that of the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/executor.hpp"
#include "engine/host_answer.hpp"

namespace espalier::wire {
struct CallMessage;
}

namespace espalier::offload {

struct Request;

/// Is told what becomes of posts.
class PostedRequests {
 public:
  virtual void answered(Request& request, const HostAnswer& answer) = 0;
  /// Whether there is room for another piece of a long answer. Passes on what can be passed on.
  virtual bool wants_more(Request& request) = 0;

 protected:
  ~PostedRequests() = default;
};

/// What was read of the host's memory, and what is remembered of it. Written by the scheduler's
/// thread; any may read it.
struct HostCounts {
  std::atomic<std::uint64_t> round_trips{0};  // that walks waited for
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> descents{0};          // ways down that the cache was asked for
  std::atomic<std::uint64_t> hits{0};              // those that it knew down to the leaf
  std::atomic<std::uint64_t> remembered_bytes{0};  // that ways down took, roots left out
  std::atomic<std::uint64_t> balanced{0};   // nodes that it had, and that were read all the same
  std::atomic<std::uint64_t> forwarded{0};  // reads that the host did, for there were too many
  std::atomic<std::uint64_t> feed_reads{0};
  std::atomic<std::uint64_t> feed_changes{0};   // that were told
  std::atomic<std::uint64_t> feed_replaced{0};  // of nodes that the cache knew
  std::atomic<std::uint64_t> feed_behind{0};    // times that it forgot where nodes are
};

class HostLink {
 public:
  virtual ~HostLink() = default;
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  /// What requests for the host's object of this number work on, whether there is one or not, as
  /// the executor of this kind knows it. Requires: requests of this kind are walked over the link;
  /// over that of a device those of maps alone are.
  [[nodiscard]] virtual std::unique_ptr<WorkedOn> serve(const ExecutorKind& kind,
                                                        std::uint32_t number) = 0;
  /// Has the host do something for this request, which is told of each piece of the answer.
  virtual void post(Request& request, const wire::CallMessage& message, AnswerPace pace) = 0;
  /// The rest of the answer is not wanted; the last piece still comes.
  virtual void cancel(const Request& request) = 0;
  /// Takes what has come, and keeps the link. Returns whether anything was done or is awaited.
  virtual bool turn(PostedRequests& posted) = 0;
  /// Whether an answer is awaited: nobody wakes the thread for it.
  [[nodiscard]] virtual bool waits() const = 0;
  /// How long one may sleep before the link must be kept.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const = 0;
  /// Thread: any, while the link lives.
  [[nodiscard]] const HostCounts& counts() const { return counts_; }

 protected:
  HostLink() = default;
  HostCounts counts_;
};

}  // namespace espalier::offload
