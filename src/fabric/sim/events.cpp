// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/events.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace espalier::fabric::sim {
namespace {

bool later(const Event& a, const Event& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
}

}  // namespace

void EventQueue::push(Event event) {
  event.order = order_++;
  heap_.push_back(std::move(event));
  std::push_heap(heap_.begin(), heap_.end(), later);
}

Event EventQueue::pop() {
  ESPALIER_ASSERT(!heap_.empty());
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Event event = std::move(heap_.back());
  heap_.pop_back();
  return event;
}

}  // namespace espalier::fabric::sim
