// SPDX-License-Identifier: Apache-2.0
// The read guard of remote walks: a lease, from its reader's view (base/lease_table.hpp).
//
// A walk begins at the epoch that the host reported last. A renewal names the oldest epoch at which
// a walk in flight began, or that one, and returns the next. Renewals are sent only while walks are
// in flight; so the first walk after a pause waits for one, and so does a result if the last
// renewal was answered too long ago: a dead host is not trusted for longer.
//
// The client cannot know when the host answered, only that it was after the request. So validity
// counts from the request, and an answer that stayed unread, e.g. while the client was stopped,
// renews nothing that it should not.
//
// The owner transports renewals: it calls due(), sends the request, and reports the answer.
//
// Thread: one.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/lease_table.hpp"
#include "base/task.hpp"

namespace espalier::place {

class LeaseGuard {
 public:
  /// A request to the host: for a lease (id 0), or to renew one.
  struct Asked {
    base::LeaseId id = 0;
    std::uint64_t oldest = 0;
  };

  explicit LeaseGuard(const base::LeaseTerms& terms = {}) : terms_(terms) {}

  // --- for the walker (kinds/map/walk/read_guard.hpp) --------------------------------------------
  void stale() const {}
  [[nodiscard]] std::uint32_t begin();
  void end(std::uint32_t tick);
  void idle() const {}
  /// Extends the guard of a walk in flight, which began at `tick`, beyond its end, until end() is
  /// called once more. Meanwhile it counts as a walk in flight.
  void hold(std::uint32_t tick);

  // --- for the access ----------------------------------------------------------------------------
  /// Whether data read under this lease is valid at this moment.
  [[nodiscard]] bool believed(std::uint64_t now_ns) const {
    return id_ != 0 && now_ns - as_of_ns_ <= terms_.believed_for_ns;
  }
  /// Makes the walk ready when a granted or renewed lease is valid, or there will be none; and,
  /// with `or_lost`, when it is lost.
  void wait(std::coroutine_handle<> walk, base::ReadyQueue& ready, bool or_lost) {
    waiting_.push_back({walk, &ready, or_lost});
  }
  /// Changes whenever a lease is lost: data read under another one is invalid.
  [[nodiscard]] std::uint64_t term() const { return term_; }
  /// No lease can be acquired any more: the host is gone.
  [[nodiscard]] bool ended() const { return ended_; }

  // --- for the owner -----------------------------------------------------------------------------
  /// The request due now, if any; then it counts as in flight, and must be answered by `granted`,
  /// `renewed`, `lost` or `end_all`.
  [[nodiscard]] std::optional<Asked> due(std::uint64_t now_ns);
  /// The same for a lease under which nothing is in flight, and that would lapse soon.
  [[nodiscard]] std::optional<Asked> idle_due(std::uint64_t now_ns);
  /// A request returned by one of these could not be sent, and is due again.
  void not_asked() { asking_ = false; }
  /// A lease was granted for a request at `asked_ns`, returned by due() or not.
  void granted(base::LeaseId id, std::uint64_t epoch, std::uint64_t asked_ns, std::uint64_t now_ns);
  void renewed(std::uint64_t epoch, std::uint64_t now_ns);
  /// The host does not know the lease (any more): another one is requested.
  void lost();
  /// There will be no lease.
  void end_all();
  /// The request that returns the lease to the host, if there is one; there will be no other.
  /// Requires: nothing is in flight.
  [[nodiscard]] std::optional<Asked> give_back();
  /// When due() may next return a request, if nothing else happens; all ones: not by itself.
  [[nodiscard]] std::uint64_t next_due_ns() const;
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_; }

 private:
  struct Tick {
    std::uint64_t epoch = 0;
    std::uint64_t walks = 0;
  };
  struct Waiting {
    std::coroutine_handle<> walk;
    base::ReadyQueue* ready;
    bool or_lost;
  };
  void answered(std::uint64_t asked_ns, std::uint64_t now_ns);
  void wake(bool all);

  /// Limit on consecutive late answers: then there will be no lease.
  static constexpr std::uint32_t kLateMax = 8;

  base::LeaseTerms terms_;
  base::LeaseId id_ = 0;
  std::uint64_t epoch_ = 0;  // at which walks begin now
  std::uint64_t term_ = 1;
  std::uint64_t asked_ns_ = 0;  // when due() last returned a request
  std::uint64_t as_of_ns_ = 0;  // when the last successful grant or renewal was requested
  std::uint32_t late_ = 0;      // consecutive late answers
  bool asking_ = false;
  bool ended_ = false;
  std::uint64_t in_flight_ = 0;
  std::deque<Tick> ticks_;        // epochs ascend
  std::uint32_t first_tick_ = 0;  // the number of ticks_.front()
  std::vector<Waiting> waiting_;
};

}  // namespace espalier::place
