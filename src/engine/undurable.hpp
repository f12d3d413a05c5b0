// SPDX-License-Identifier: Apache-2.0
// The answers and requests of a scheduler that wait for durability, and its wake-up. A part of
// Scheduler, included only by scheduler_durable.cpp.
//
// Nothing is checked again before the durable mark has risen: while a disk stalls, a turn costs two
// loads. There are short exceptions, which set `look_again`: a version whose records are durable
// but which is not released, because a writer of an older one has not finished or releases are
// suspended; and a wait that began when no record was on its way to the disk.
//
// Thread: the scheduler's; wake() any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/chain.hpp"
#include "base/durable_mark.hpp"
#include "base/try_reserve.hpp"
#include "engine/connection.hpp"
#include "engine/scheduler.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

/// What an answer waits for.
struct Scheduler::AnswerWaits {
  std::uint64_t sequence = 0;  ///< the highest record that it depends on
  std::uint64_t version = 0;   ///< of its request's object; 0: none

  [[nodiscard]] bool any() const { return (sequence | version) != 0; }
};

struct Scheduler::Undurable final : base::DurableMark::Sleeper {
  /// An answer that stays in its request: it is long, or there is no memory for the queue.
  struct OfRequest {
    Request* request;
    AnswerWaits waits;
    wire::ResponseHeader header;
    std::string payload;
  };

  explicit Undurable(Scheduler& of) : scheduler(of) {}
  ~Undurable() override {
    if (mark != nullptr) mark->leave(*this);
  }

  /// Reserves for so many requests. Errors: std::bad_alloc.
  void make_room(std::size_t places) {
    const auto more = [places](auto&... lists) {
      (base::reserve_more(lists, places - lists.size()), ...);
    };
    more(kept, for_release, going_on);
  }
  void wake() noexcept override { scheduler.wake(); }

  Scheduler& scheduler;
  base::Chain<Connection, &Connection::next_waiting> connections;  // with waiting answers
  std::vector<OfRequest> kept;
  std::vector<Request*> for_release;  // they continue when more is released
  std::vector<Request*> going_on;     // in this turn
  std::uint64_t looked_at = 0;        // all up to here was durable then
  bool knew_failure = false;
  bool look_again = false;            // in the next turn, whatever the mark
  base::DurableMark* mark = nullptr;  // that wakes it; null: it never slept
};

}  // namespace espalier::offload
