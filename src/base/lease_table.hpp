// SPDX-License-Identifier: Apache-2.0
// Leases: the epochs of remote readers, which this machine's barriers do not reach, and which
// report only now and then (DESIGN §2.2 rule 3).
//
// A lease holds back reclamation as an exposed epoch does. Its reader renews it remotely, and each
// renewal names an epoch that none of its walks is older than: that of the oldest walk in flight,
// or the last one it received, at which its next walk will begin.
//
//     reader                              this table
//     grant            ------------->     held = current epoch
//                      <-------------     epoch e
//     walks begin at e
//     renew(oldest)    ------------->     held = oldest, never backwards
//                      <-------------     epoch e', for walks that begin from here on
//
// Why held <= the epoch of every walk: a renewal names at most the epoch last received before it
// was sent, and walks that begin before its answer arrives begin at that epoch.
//
// A caller that ends a lease must fence its reader first: revoke the keys by which it reads, and
// wait for accesses that have begun. So a READ that succeeded proves that the lease was held,
// whatever the clocks say; the clocks only decide when a lease expires.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/epoch.hpp"
#include "base/lease_terms.hpp"
#include "espalier/error.hpp"

namespace espalier::base {

/// Names a lease; random enough never to be used again while the process runs. 0 names none.
using LeaseId = std::uint64_t;

class LeaseTable {
 public:
  struct Granted {
    LeaseId id = 0;
    std::uint64_t epoch = 0;  // walks begin at it
  };
  /// The state of one lease.
  struct Holder {
    LeaseId id = 0;
    std::uint64_t owner = 0;  // the argument of grant(): the lease's owner
    std::uint64_t epoch = 0;  // that it holds
    std::uint64_t renewed_ns = 0;
  };

  explicit LeaseTable(EpochTable epochs) : epochs_(epochs) {}
  /// The terms of all leases. Setting them requires that none was granted yet.
  [[nodiscard]] const LeaseTerms& terms() const { return terms_; }
  void set_terms(const LeaseTerms& terms) { terms_ = terms; }
  LeaseTable(const LeaseTable&) = delete;
  LeaseTable& operator=(const LeaseTable&) = delete;

  /// Begins a lease at the current epoch. Cost: a full fence, a mutex.
  Granted grant(std::uint64_t owner, std::uint64_t now_ns);
  /// Renews a lease; returns the epoch at which walks begin from here on. An `oldest` older than
  /// the held one changes nothing.
  /// Errors: not_found (it has ended: ask for another), invalid_argument (an epoch that is still to
  /// come).
  Result<std::uint64_t> renew(LeaseId id, std::uint64_t oldest, std::uint64_t now_ns);
  /// Ends a lease. Requires: its reader is fenced. An unknown one is none.
  void end(LeaseId id);

  /// The oldest held epoch: no lease holds back what carries a stamp below it; all ones if there is
  /// no lease.
  [[nodiscard]] std::uint64_t oldest() const;
  /// The leases that were renewed last before this moment, or hold an epoch below `epoch`.
  [[nodiscard]] std::vector<Holder> overdue(std::uint64_t renewed_before_ns,
                                            std::uint64_t epoch = 0) const;
  [[nodiscard]] std::size_t size() const;
  /// All leases, the oldest epoch first.
  [[nodiscard]] std::vector<Holder> holders() const { return overdue(~std::uint64_t{0}); }

  // Writers that are short of memory ask for a sweep of leases.
  /// Requests a sweep: leases hold memory that is needed. With `end_below`, leases that hold an
  /// epoch below it are to be ended, however little they hold.
  void ask_for_sweep(std::uint64_t end_below = 0);
  /// How often a sweep was requested.
  [[nodiscard]] std::uint64_t sweeps_asked() const {
    return sweeps_asked_.load(std::memory_order_acquire);
  }
  /// Leases that hold an epoch below this one are to be ended; 0: none.
  [[nodiscard]] std::uint64_t end_below() const {
    return end_below_.load(std::memory_order_relaxed);
  }

 private:
  EpochTable epochs_;
  LeaseTerms terms_;
  mutable std::mutex mutex_;  // guards the rest
  std::unordered_map<LeaseId, Holder> leases_;
  LeaseId next_ = 1;
  std::atomic<std::uint64_t> sweeps_asked_{0};
  std::atomic<std::uint64_t> end_below_{0};
};

}  // namespace espalier::base
