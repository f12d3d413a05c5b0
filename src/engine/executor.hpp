// SPDX-License-Identifier: Apache-2.0
// What carries out a kind's requests by turns, for one scheduler: a batch of them together, in
// whatever way the kind has. It asks for a turn when it is given something, and has that in the
// scheduler's next one; there it calls the scheduler back (Scheduler::go_on_with) for each request
// that can go on. One that has nothing to do is not called.
//
// Thread: that of the scheduler.
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

/// What requests in flight work on: it stays as long as any does, and as long as answers wait that
/// tell of it.
struct WorkedOn {
  virtual ~WorkedOn() = default;
  /// Whether an answer that waits for this version of it may be given.
  [[nodiscard]] virtual bool is_released(std::uint64_t /*version*/) const { return true; }
  std::uint32_t users = 0;  ///< requests in flight that name it, and answers that wait
};

/// What a request's executor keeps in the request itself: of a type of its own, which the engine
/// does not know.
class ExecutorState {
 public:
  static constexpr std::size_t kBytes = 64;

  /// Makes it anew.
  template <class S>
  S& make() {
    static_assert(sizeof(S) <= kBytes && alignof(S) <= kBytes);
    static_assert(std::is_trivially_destructible_v<S>, "it ends without a word to its executor");
    return *new (bytes_) S{};
  }
  /// Requires: it was made as an S.
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

  /// Finds what a request names, and sets its `works_on`; or answers the request, and returns
  /// false. Errors: std::bad_alloc.
  [[nodiscard]] virtual bool admit(Request& request) = 0;
  /// Goes on with what is in flight, for a bounded time, and asks for another turn if something is
  /// left. Returns whether there was anything.
  virtual bool turn() = 0;
  /// Whether a turn may find something of which nobody tells.
  [[nodiscard]] virtual bool has_news() const { return false; }
  /// How long one may sleep before it must have a turn.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const {
    return std::numeric_limits<std::uint64_t>::max();
  }
  /// Whether something waits here that goes on once a version is released.
  [[nodiscard]] virtual bool waits_for_release() const { return false; }
  /// Versions may have been released, for more is durable. Is asked where a log has the records;
  /// else a turn looks. Returns whether anything went on.
  virtual bool go_on_released() { return false; }
  /// Now and then, between turns.
  virtual void maintain() {}
  /// There will be so many places for requests: room for all of them, so that none fails later.
  virtual void make_room(std::size_t places) = 0;
  /// What waits here of a connection that has ended, and is in no other hands, is to be released.
  virtual void drop(const Connection& connection) = 0;

  /// Where it asks for its turns: a bit of a word that lives as long as it.
  void asks_by(std::uint32_t& word, std::uint32_t bit) {
    asking_ = &word;
    asks_ = bit;
    *asking_ |= asks_;  // it may have something from its beginning
  }

 protected:
  Executor() = default;
  /// It has something to do in the scheduler's next turn, or in this one, if its own is still to
  /// come.
  void ask_for_turn() { *asking_ |= asks_; }

 private:
  std::uint32_t* asking_ = nullptr;
  std::uint32_t asks_ = 0;
};

/// What an executor is made for.
struct ExecutorContext {
  Scheduler& scheduler;
  Services& services;
  std::uint32_t shard = 0;  ///< of counters: a number for each scheduler
};

/// Makes a kind's executor. Its address tells kinds apart.
struct ExecutorKind {
  std::unique_ptr<Executor> (*make)(const ExecutorContext& context);
};

}  // namespace espalier::offload
