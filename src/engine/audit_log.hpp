// SPDX-License-Identifier: Apache-2.0
// What a node keeps for those who audit it: each refusal, and each act of an administrator.
//
// Refusals can be had by anybody as fast as packets come, so their records are limited by a token
// bucket for each principal (principal_accounts.hpp), and what is left out is counted and told
// with the next record. So no principal has the refusals of others left out. Addresses can be
// forged, and there are as many as one likes: of those, kPlacesMax at a time have a bucket of their
// own, and all others share one. Acts are recorded all, but for what a full queue leaves out, which
// is counted with them. Records wait here for the thread that writes them, so no worker waits for a
// log.
//
// Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "engine/registry.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

struct AuditRecord {
  bool refusal = false;
  std::string act;             ///< an offload's name, "authenticate", "connect", "end_session"
                               ///< (for its name's secrets changed); empty: no act,
                               ///< the record only tells what was left out
  std::string name;            ///< of the client: as it is authenticated, or as it says
  Right role = Right::none;    ///< none: it was not authenticated
  std::string via;             ///< the device that relays; empty: none does
  std::string address;         ///< where it, or that device, comes from
  std::string object;          ///< a name, any bytes; "#7": a number; empty: it concerns none
  std::string to;              ///< the name of the second object that it concerns; or empty
  Error outcome;               ///< Code::invalid: done
  std::uint64_t left_out = 0;  ///< records before this one that were not kept
};

class AuditLog {
 public:
  static constexpr std::uint64_t kBurst = 64;                ///< refusals of one principal at once
  static constexpr std::uint64_t kRefillNs = 1'000'000'000;  ///< for each further one
  static constexpr std::size_t kWaitingMax = 4096;           ///< records that nobody has taken
  static constexpr std::size_t kPlacesMax = 256;             ///< addresses with their own bucket
  static constexpr std::size_t kKnownMax = 4096;             ///< the same of users and secrets

  explicit AuditLog(std::function<std::uint64_t()> now_ns = base::monotonic_ns)
      : now_ns_(std::move(now_ns)), rest_(now_ns_()) {}

  /// Keeps records from now on; without this all are dropped.
  void open() { open_.store(true, std::memory_order_relaxed); }
  /// Keeps a refusal, if the rate of its principal allows it. `make` makes the record, and is
  /// called only then. Where there is no memory for it, it is left out.
  template <class Make>
  void refused(std::string_view principal, const Make& make) noexcept {
    if (take_token(principal)) keep(make, true);
  }
  /// The same of what an administrator did, whatever the rate.
  template <class Make>
  void acted(const Make& make) noexcept {
    if (is_open()) keep(make, false);
  }

  /// The next record. Nothing: there is none. Of what was left out it tells when the rate allows
  /// it, in a record of its own if no other comes.
  [[nodiscard]] std::optional<AuditRecord> take();
  /// Waits until take() may have something, or stop() was called. Returns false after stop().
  bool wait();
  /// Ends wait(), for good; what was kept can still be taken.
  void stop();
  /// Records that were left out, ever.
  [[nodiscard]] std::uint64_t left_out() const;

 private:
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_relaxed); }
  /// Of one principal.
  struct Bucket {
    explicit Bucket(std::uint64_t now_ns) : filled_ns(now_ns) {}
    [[nodiscard]] bool take(std::uint64_t now_ns);
    void refill(std::uint64_t now_ns);

    std::uint64_t tokens = kBurst;
    std::uint64_t filled_ns;  // up to when tokens were given
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  using Buckets = std::unordered_map<std::string, Bucket, Hash, std::equal_to<>>;

  [[nodiscard]] bool take_token(std::string_view principal) noexcept;
  [[nodiscard]] Bucket& bucket_of(std::string_view principal, std::uint64_t now_ns);
  template <class Make>
  void keep(const Make& make, bool refusal) noexcept {
    try {
      AuditRecord record = make();
      record.refusal = refusal;
      add(std::move(record));
    } catch (const std::bad_alloc&) {
      leave_out();
    }
  }
  void add(AuditRecord record);
  void leave_out() noexcept;

  const std::function<std::uint64_t()> now_ns_;
  std::atomic<bool> open_{false};
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<AuditRecord> waiting_;
  Buckets known_;               // of users and secrets
  Buckets places_;              // of addresses
  Bucket rest_;                 // of all others
  std::uint64_t swept_ns_ = 0;  // when full buckets were last looked for
  std::uint64_t told_ns_ = 0;   // when it was last told what was left out
  std::uint64_t untold_ = 0;    // left out, and not told yet
  std::uint64_t left_out_ = 0;  // ever
  bool stopped_ = false;
};

}  // namespace espalier::offload
