// SPDX-License-Identifier: Apache-2.0
// Who waits until a record is durable, and what they hear: in the order of sequences, and one at a
// time. After an error nothing more is acknowledged.
//
// In a chain of nodes a record is durable once it is on this disk and on those of the members
// behind (docs/design/chains.md).
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
  /// Called with null once the record is durable, else with the error for which it will not be.
  using Callback = std::function<void(const LogError* error)>;

  explicit Acknowledgements(std::uint64_t durable) : mark_(durable), reached_(durable) {}

  /// Up to which sequence all is durable, for objects that release what is; they do so before
  /// anybody is acknowledged.
  [[nodiscard]] base::DurableMark& mark() { return mark_; }
  /// The highest sequence that is durable with all before it.
  [[nodiscard]] std::uint64_t durable() const { return mark_.durable(); }
  /// The error after which nothing more is acknowledged.
  [[nodiscard]] std::optional<LogError> error() const;

  /// Has `callback` called when the record of this sequence is durable: by the thread that says so,
  /// or by this one, now, if it is already. It must not throw, and should not be long.
  void when_durable(std::uint64_t sequence, Callback callback);
  /// Waits for that. Errors: the log's.
  LogResult<void> wait(std::uint64_t sequence);

  /// All up to here are on this disk. Does nothing after fail().
  void reach(std::uint64_t sequence);
  /// Nothing more counts as durable but what is told by replicate(). Requires: before others write.
  void await_replicas();
  /// All up to here are where else they must be.
  void replicate(std::uint64_t sequence);
  /// Nothing more will be.
  void fail(LogError error);

 private:
  void call_back();
  void rise();

  std::mutex rising_;  // held by who raises the mark; before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  base::DurableMark mark_;
  std::optional<LogError> error_;
  std::uint64_t reached_;                               // on this disk
  std::uint64_t replicated_ = base::DurableMark::kAll;  // elsewhere
  std::multimap<std::uint64_t, Callback> waiting_;
  bool calling_ = false;  // a thread does that, and goes on until nothing is left
};

}  // namespace espalier::log
