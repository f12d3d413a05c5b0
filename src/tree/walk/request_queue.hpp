// SPDX-License-Identifier: Apache-2.0
// Batches of requests that wait for their turn, taken one request at a time.
#pragma once

#include <deque>
#include <span>

#include "espalier/types.hpp"

namespace espalier::tree {

/// Thread: one. What the requests point to must live until their completion.
class RequestQueue {
 public:
  void add(std::span<const Request> requests, Handler& handler) {
    if (!requests.empty()) batches_.push_back({requests, &handler});
  }
  /// Whether there is a request; it is front() then, for handler().
  [[nodiscard]] bool next() {
    if (!current_.requests.empty()) [[likely]]
      return true;
    if (batches_.empty()) return false;
    current_ = batches_.front();
    batches_.pop_front();
    return true;
  }
  [[nodiscard]] const Request& front() const { return current_.requests.front(); }
  [[nodiscard]] Handler& handler() const { return *current_.handler; }
  void pop() { current_.requests = current_.requests.subspan(1); }

 private:
  struct Batch {
    std::span<const Request> requests;
    Handler* handler = nullptr;
  };
  Batch current_{};
  std::deque<Batch> batches_;
};

}  // namespace espalier::tree
