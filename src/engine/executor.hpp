// SPDX-License-Identifier: Apache-2.0
// Carries out a kind's requests for one scheduler, in batches. An executor that has work asks for a
// turn, and gets it in the scheduler's next one; there it calls Scheduler::go_on_with for each
// request that can proceed. An executor without work costs nothing.
//
// Thread: the scheduler's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace espalier::offload {

class Connection;
class Scheduler;
struct Request;
struct Services;

/// The object of requests in flight: it lives as long as one of them does, and as long as waiting
/// answers refer to it.
struct WorkedOn {
  virtual ~WorkedOn() = default;
  /// Whether an answer that waits for this version of it may be sent.
  [[nodiscard]] virtual bool is_released(std::uint64_t /*version*/) const { return true; }
  std::uint32_t users = 0;  ///< requests in flight, and waiting answers
};

/// An executor's state within the request, of a type that the engine does not know.
class ExecutorState {
 public:
  static constexpr std::size_t kBytes = 64;

  /// Creates it anew.
  template <class S>
  S& make() {
    static_assert(sizeof(S) <= kBytes && alignof(S) <= kBytes);
    static_assert(std::is_trivially_destructible_v<S>, "it ends without a word to its executor");
    return *new (bytes_) S{};
  }
  /// Requires: it was created as an S.
  template <class S>
  [[nodiscard]] S& get() {
    return *std::launder(reinterpret_cast<S*>(bytes_));
  }

 private:
  alignas(64) std::byte bytes_[kBytes]{};
};

class Executor {
 public:
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Finds the object that a request names, and sets its `works_on`; or answers the request and
  /// returns false. Errors: std::bad_alloc.
  [[nodiscard]] virtual bool admit(Request& request) = 0;
  /// Works on what is in flight, for a bounded time, and asks for another turn if some is left.
  /// Returns whether there was any.
  virtual bool turn() = 0;
  /// Whether a turn may find work that no notification announces.
  [[nodiscard]] virtual bool has_news() const { return false; }
  /// How long the thread may sleep before the executor must have a turn.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const {
    return std::numeric_limits<std::uint64_t>::max();
  }
  /// Whether a request here waits for the release of a version.
  [[nodiscard]] virtual bool waits_for_release() const { return false; }
  /// Versions may have been released, for more is durable. Called where a log has the records;
  /// elsewhere a turn checks. Returns whether anything proceeded.
  virtual bool go_on_released() { return false; }
  /// Periodic maintenance, between turns.
  virtual void maintain() {}
  /// Reserves memory for so many requests, so that nothing fails later.
  virtual void make_room(std::size_t places) = 0;
  /// Releases the requests of an ended connection that wait here and are in no other list.
  virtual void drop(const Connection& connection) = 0;

  /// Where it asks for its turns: a bit of a word that outlives it.
  void asks_by(std::uint32_t& word, std::uint32_t bit) {
    asking_ = &word;
    asks_ = bit;
    *asking_ |= asks_;  // it may have work from the start
  }

 protected:
  Executor() = default;
  /// Asks for the scheduler's next turn, or for this one, if its own is still to come.
  void ask_for_turn() { *asking_ |= asks_; }

 private:
  std::uint32_t* asking_ = nullptr;
  std::uint32_t asks_ = 0;
};

/// The arguments of an executor's creation.
struct ExecutorContext {
  Scheduler& scheduler;
  Services& services;
  std::uint32_t shard = 0;  ///< this scheduler's number among counters
};

/// Creates a kind's executor. Its address identifies the kind.
struct ExecutorKind {
  std::unique_ptr<Executor> (*make)(const ExecutorContext& context);
};

}  // namespace espalier::offload
