// SPDX-License-Identifier: Apache-2.0
// The node's audit records: each refusal, and each action of an administrator.
//
// An attacker can provoke refusals at packet rate, so a token bucket for each principal
// (principal_accounts.hpp) limits their records. Records beyond the rate are dropped and counted,
// and the next record reports the count. So no principal suppresses the refusals of another.
// Addresses can be forged and are plentiful: at most kPlacesMax of them have a bucket at a time,
// and all others share one. Actions have no rate limit; a full queue drops them, and counts them
// too. A queue holds the records for the thread that writes them, so no worker waits for a log.
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
                               ///< (its name's secrets changed); empty: no action,
                               ///< the record only reports dropped records
  std::string name;            ///< the client's: authenticated, or as it claims
  Right role = Right::none;    ///< none: not authenticated
  std::string via;             ///< the device that relays; empty: none
  std::string address;         ///< the client's, or that device's
  std::string object;          ///< a name, any bytes; "#7": an id; empty: none
  std::string to;              ///< the name of the second object; or empty
  Error outcome;               ///< Code::invalid: success
  std::uint64_t left_out = 0;  ///< records dropped before this one
};

class AuditLog {
 public:
  static constexpr std::uint64_t kBurst = 64;                ///< refusals of one principal
  static constexpr std::uint64_t kRefillNs = 1'000'000'000;  ///< for each further token
  static constexpr std::size_t kWaitingMax = 4096;           ///< records in the queue
  static constexpr std::size_t kPlacesMax = 256;             ///< addresses with their own bucket
  static constexpr std::size_t kKnownMax = 4096;             ///< users and secrets with one

  explicit AuditLog(std::function<std::uint64_t()> now_ns = base::monotonic_ns)
      : now_ns_(std::move(now_ns)), rest_(now_ns_()) {}

  /// Keeps records from now on; before, all are dropped.
  void open() { open_.store(true, std::memory_order_relaxed); }
  /// Keeps a refusal, if its principal's rate permits. Calls `make` for the record only then.
  /// Without memory the record is dropped and counted.
  template <class Make>
  void refused(std::string_view principal, const Make& make) noexcept {
    if (take_token(principal)) keep(make, true);
  }
  /// Keeps an action of an administrator, without a rate limit.
  template <class Make>
  void acted(const Make& make) noexcept {
    if (is_open()) keep(make, false);
  }

  /// The next record; nothing: there is none. Reports dropped records when the rate permits, in a
  /// record of its own if there is no other.
  [[nodiscard]] std::optional<AuditRecord> take();
  /// Waits until take() may return a record, or stop() was called. Returns false after stop().
  bool wait();
  /// Ends wait() for good; take() still returns the queued records.
  void stop();
  /// Records dropped since the start.
  [[nodiscard]] std::uint64_t left_out() const;

 private:
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_relaxed); }
  /// Of one principal.
  struct Bucket {
    explicit Bucket(std::uint64_t now_ns) : filled_ns(now_ns) {}
    [[nodiscard]] bool take(std::uint64_t now_ns);
    void refill(std::uint64_t now_ns);

    std::uint64_t tokens = kBurst;
    std::uint64_t filled_ns;  // up to when tokens were added
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
  Buckets known_;               // users and secrets
  Buckets places_;              // addresses
  Bucket rest_;                 // all others
  std::uint64_t swept_ns_ = 0;  // when full buckets were last removed
  std::uint64_t told_ns_ = 0;   // when dropped records were last reported
  std::uint64_t untold_ = 0;    // dropped, and not yet reported
  std::uint64_t left_out_ = 0;  // dropped since the start
  bool stopped_ = false;
};

}  // namespace espalier::offload
