// SPDX-License-Identifier: Apache-2.0
// The event queue of a simulated world, by time; events of one time are first in, first out.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace espalier::fabric::sim {

using Action = std::move_only_function<void()>;

/// A future event.
struct Event {
  std::uint64_t time_ns = 0;
  std::uint64_t order = 0;  // given by the queue
  std::uint32_t owner = 0;  // the endpoint to which it happens, or 0: none
  bool message = false;     // it comes from another endpoint
  std::uint64_t tag = 0;    // what it is, for the trace
  Action run;
};

class EventQueue {
 public:
  void push(Event event);
  /// Takes the next one. Requires: there is one.
  Event pop();
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// Requires: there is one.
  [[nodiscard]] std::uint64_t next_ns() const { return heap_.front().time_ns; }

 private:
  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace espalier::fabric::sim
