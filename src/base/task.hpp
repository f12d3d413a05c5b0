// SPDX-License-Identifier: Apache-2.0
// Coroutines that walk indexes, and their scheduler: a fixed set of coroutines per core, each of
// which takes the next request when it has finished one.
//
// A walk that waits for bytes puts itself into the ready queue (while the bytes are being
// prefetched), or the completion of a READ puts it there (when a network brings them). The
// scheduler resumes from a loop, never by symmetric transfer: g++ 12 grows the stack on that in
// unoptimised and sanitizer builds. Coroutines live as long as their engine, because making one per
// request costs a third of the throughput.
//
// Thread: one at a time.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace espalier::base {

/// A coroutine that is started by resume() and destroyed with its owner.
class WalkTask {
 public:
  struct promise_type {
    WalkTask get_return_object() {
      return WalkTask(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  WalkTask() = default;
  explicit WalkTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  WalkTask(WalkTask&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  WalkTask& operator=(WalkTask&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~WalkTask() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] std::coroutine_handle<> handle() const { return handle_; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

/// First in, first out: the walk that has waited longest is resumed next, so that what it asked for
/// has had the time of all others to arrive. Holds at most as many walks as it was made for.
class ReadyQueue {
 public:
  explicit ReadyQueue(std::size_t walks) {
    std::size_t capacity = 1;
    while (capacity < walks) capacity *= 2;
    mask_ = capacity - 1;
    slots_ = std::make_unique<std::coroutine_handle<>[]>(capacity);
  }
  void push(std::coroutine_handle<> walk) { slots_[tail_++ & mask_] = walk; }
  std::coroutine_handle<> pop() { return slots_[head_++ & mask_]; }
  [[nodiscard]] bool empty() const { return head_ == tail_; }

 private:
  std::unique_ptr<std::coroutine_handle<>[]> slots_;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

/// Suspends a walk into a ready queue, unless `ready`.
struct Pause {
  ReadyQueue* queue;
  bool ready;
  [[nodiscard]] bool await_ready() const noexcept { return ready; }
  void await_suspend(std::coroutine_handle<> walk) const { queue->push(walk); }
  void await_resume() const noexcept {}
};

}  // namespace espalier::base
