// SPDX-License-Identifier: Apache-2.0
// Queue of pending requests: batches, dequeued one request at a time, and single requests.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "base/assert.hpp"
#include "espalier/types.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::tree {

/// Single requests, FIFO. A caller of hand_over(), which may not fail, has reserved room.
class WalkQueue {
 public:
  /// Reserves room for `count` requests of hand_over(). Errors: std::bad_alloc.
  void keep_free(std::size_t count) {
    kept_ = count;
    grow_to(size_ + kept_);
  }
  /// Errors: std::bad_alloc, with nothing added.
  void add(const WalkRequest& request) {
    grow_to(size_ + 1 + kept_);
    push(request);
  }
  /// Adds a request without allocating. Requires: reserved room.
  void hand_over(const WalkRequest& request) noexcept {
    ESPALIER_ASSERT(size_ < capacity_);
    push(request);
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Number of requests that fit without allocating.
  [[nodiscard]] std::size_t room() const { return capacity_ - size_; }
  [[nodiscard]] const WalkRequest& front() const { return places_[first_]; }
  void pop() {
    first_ = first_ + 1 == capacity_ ? 0 : first_ + 1;
    --size_;
  }

 private:
  void push(const WalkRequest& request) {
    const std::size_t at = first_ + size_++;
    places_[at < capacity_ ? at : at - capacity_] = request;
  }
  void grow_to(std::size_t count) {
    if (count <= capacity_) [[likely]]
      return;
    const std::size_t capacity = count + capacity_;
    auto places = std::make_unique<WalkRequest[]>(capacity);
    for (std::size_t i = 0; i < size_; ++i) {
      const std::size_t at = first_ + i;
      places[i] = places_[at < capacity_ ? at : at - capacity_];
    }
    places_ = std::move(places);
    capacity_ = capacity;
    first_ = 0;
  }

  std::unique_ptr<WalkRequest[]> places_;
  std::size_t capacity_ = 0;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t kept_ = 0;
};

/// Queue of batches. What the requests point to must live until their completion.
class RequestQueue {
 public:
  /// `hint`: an untrusted node at which the walks may enter. Errors: std::bad_alloc, with nothing
  /// added.
  void add(std::span<const Request> requests, Handler& handler, wire::Ref hint = {}) {
    if (!requests.empty()) batches_.push_back({requests, &handler, hint});
  }
  /// Whether a request is queued; it is then front(), for handler().
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
  [[nodiscard]] wire::Ref hint() const { return current_.hint; }
  void pop() { current_.requests = current_.requests.subspan(1); }

 private:
  struct Batch {
    std::span<const Request> requests;
    Handler* handler = nullptr;
    wire::Ref hint{};
  };
  Batch current_{};
  std::deque<Batch> batches_;
};

}  // namespace espalier::tree
