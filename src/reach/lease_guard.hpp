// SPDX-License-Identifier: Apache-2.0
// The guard of walks from elsewhere: a lease, as its reader sees it (base/lease_table.hpp).
//
// A walk begins at the epoch that the host told last. A renewal names the oldest of the epochs at
// which walks in flight began, or that one, and brings the next. Renewals go out only while walks
// are in flight; so the first walk after a pause waits for one, and so does an answer that is ready
// when the last one was answered too long ago: a host that died is believed for no longer.
//
// When the host answered, nobody here knows: certainly not before it was asked. So belief counts
// from the asking, and an answer that lay unread, while the client was stopped say, renews nothing
// that it should not.
//
// How renewals travel is the owner's matter: it asks what is due, sends it, and says what came.
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
  /// What is to be asked of the host: a lease (id 0), or the renewal of one.
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
  /// Holds what a walk in flight holds, which began at `tick`, beyond its end: until end() once
  /// more. Meanwhile it counts as a walk in flight.
  void hold(std::uint32_t tick);

  // --- for the access ----------------------------------------------------------------------------
  /// Whether what was read under this lease may be believed at this moment.
  [[nodiscard]] bool believed(std::uint64_t now_ns) const {
    return id_ != 0 && now_ns - as_of_ns_ <= terms_.believed_for_ns;
  }
  /// Makes the walk ready when a lease is believed that has been granted or renewed, or there will
  /// be none; and, with `or_lost`, when it is lost.
  void wait(std::coroutine_handle<> walk, base::ReadyQueue& ready, bool or_lost) {
    waiting_.push_back({walk, &ready, or_lost});
  }
  /// Changes whenever a lease is lost: what was read under another one is worth nothing.
  [[nodiscard]] std::uint64_t term() const { return term_; }
  /// No lease can be had any more: the host is gone.
  [[nodiscard]] bool ended() const { return ended_; }

  // --- for the owner -----------------------------------------------------------------------------
  /// What is to be asked now, if anything; then it counts as asked, and is answered by `granted`,
  /// `renewed`, `lost` or `end_all`.
  [[nodiscard]] std::optional<Asked> due(std::uint64_t now_ns);
  /// The same for a lease under which nothing is in flight, and that would lapse before long.
  [[nodiscard]] std::optional<Asked> idle_due(std::uint64_t now_ns);
  /// What one of these said could not be asked, and is due again.
  void not_asked() { asking_ = false; }
  /// A lease that was asked for at `asked_ns`, be it by due() or not.
  void granted(base::LeaseId id, std::uint64_t epoch, std::uint64_t asked_ns, std::uint64_t now_ns);
  void renewed(std::uint64_t epoch, std::uint64_t now_ns);
  /// The host does not know the lease (any more): another one is asked for.
  void lost();
  /// There will be no lease.
  void end_all();
  /// What gives the lease back to the host, if there is one; there will be no other. Requires:
  /// nothing is in flight.
  [[nodiscard]] std::optional<Asked> give_back();
  /// When due() may next have something to ask, if nothing else happens; all ones: not by itself.
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

  /// So many answers in a row that came too late to be believed: then there will be no lease.
  static constexpr std::uint32_t kLateMax = 8;

  base::LeaseTerms terms_;
  base::LeaseId id_ = 0;
  std::uint64_t epoch_ = 0;  // at which walks begin now
  std::uint64_t term_ = 1;
  std::uint64_t asked_ns_ = 0;  // when due() last had something to ask
  std::uint64_t as_of_ns_ = 0;  // when the last grant or renewal that came was asked for
  std::uint32_t late_ = 0;      // answers in a row that came too late
  bool asking_ = false;
  bool ended_ = false;
  std::uint64_t in_flight_ = 0;
  std::deque<Tick> ticks_;        // epochs ascend
  std::uint32_t first_tick_ = 0;  // the number of ticks_.front()
  std::vector<Waiting> waiting_;
};

}  // namespace espalier::place
