// SPDX-License-Identifier: Apache-2.0
// What of a scheduler waits until more is durable, and how it is woken then. Part of Scheduler,
// which alone includes it (scheduler_durable.cpp).
//
// Nothing is looked at again before the mark has risen: while a disk stalls, a turn costs two
// loads. The exceptions are short, and then `look_again` is set: a version whose records are
// durable, and which is not released, for a writer of an older one has not said yet that it is
// done, or releases are held for a moment; what began to wait when no record was on its way to the
// disk.
//
// Thread: that of the scheduler; wake() any.
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
  std::uint64_t sequence = 0;  ///< no record that it tells of has a higher one
  std::uint64_t version = 0;   ///< of what its request works on; 0: none

  [[nodiscard]] bool any() const { return (sequence | version) != 0; }
};

struct Scheduler::Undurable final : base::DurableMark::Sleeper {
  /// An answer that its request keeps: it is long, or there is no memory for the queue.
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

  /// For so many requests. Errors: std::bad_alloc.
  void make_room(std::size_t places) {
    const auto more = [places](auto&... lists) {
      (base::reserve_more(lists, places - lists.size()), ...);
    };
    more(kept, for_release, going_on);
  }
  void wake() noexcept override { scheduler.wake(); }

  Scheduler& scheduler;
  base::Chain<Connection, &Connection::next_waiting> connections;  // that have answers waiting
  std::vector<OfRequest> kept;
  std::vector<Request*> for_release;  // they go on when more is released
  std::vector<Request*> going_on;     // of them, in this turn
  std::uint64_t looked_at = 0;        // up to where all was durable
  bool knew_failure = false;
  bool look_again = false;            // in the next turn, whatever the mark says
  base::DurableMark* mark = nullptr;  // that wakes it; null: it never slept
};

}  // namespace espalier::offload
