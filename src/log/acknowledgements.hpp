// SPDX-License-Identifier: Apache-2.0
// Completes waiters for durability, in order of sequence and one at a time. After an error it
// acknowledges nothing more.
//
// In a chain of nodes a record is durable once it is on this disk and on those of its successors
// (docs/design/chains.md).
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/durable_mark.hpp"
#include "log/log_error.hpp"

namespace espalier::log {

class Acknowledgements {
 public:
  /// Called with nullptr once the record is durable, else with the error that prevents it.
  using Callback = std::function<void(const LogError* error)>;

  explicit Acknowledgements(std::uint64_t durable) : mark_(durable), reached_(durable) {}

  /// The durable mark, by which objects release durable versions; they do so before any waiter is
  /// completed.
  [[nodiscard]] base::DurableMark& mark() { return mark_; }
  /// The highest sequence that is durable together with all before it.
  [[nodiscard]] std::uint64_t durable() const { return mark_.durable(); }
  /// The error after which it acknowledges nothing more.
  [[nodiscard]] std::optional<LogError> error() const;

  /// Calls `callback` once the record of this sequence is durable: on the thread that raises the
  /// mark, or inline if it is durable already. It must not throw, and should be short.
  void when_durable(std::uint64_t sequence, Callback callback);
  /// Waits until the record of this sequence is durable. Errors: the log's.
  LogResult<void> wait(std::uint64_t sequence);

  /// All up to here are on this disk. Does nothing after fail().
  void reach(std::uint64_t sequence);
  /// From now on a record is durable only once replicate() has covered it, too. Requires: called
  /// before other threads write.
  void await_replicas();
  /// All up to here are on the other members' disks.
  void replicate(std::uint64_t sequence);
  /// Completes all waiters, present and future, with this error.
  void fail(LogError error);

 private:
  void call_back();
  void rise();

  std::mutex rising_;  // held by the thread that raises the mark; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  base::DurableMark mark_;
  std::optional<LogError> error_;
  std::uint64_t reached_;                               // on this disk
  std::uint64_t replicated_ = base::DurableMark::kAll;  // elsewhere
  std::multimap<std::uint64_t, Callback> waiting_;
  bool calling_ = false;  // a thread runs callbacks, until none is left
};

}  // namespace espalier::log
