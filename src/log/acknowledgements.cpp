// SPDX-License-Identifier: Apache-2.0
#include "log/acknowledgements.hpp"

#include <algorithm>
#include <utility>

namespace espalier::log {

std::optional<LogError> Acknowledgements::error() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

void Acknowledgements::when_durable(std::uint64_t sequence, Callback callback) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(sequence, std::move(callback));
  }
  call_back();
}

LogResult<void> Acknowledgements::wait(std::uint64_t sequence) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return mark_.released() >= sequence || error_; });
  if (mark_.released() >= sequence) return {};
  return std::unexpected(*error_);
}

void Acknowledgements::reach(std::uint64_t sequence) {
  {
    const std::scoped_lock lock(mutex_);
    reached_ = std::max(reached_, sequence);
  }
  rise();
}

void Acknowledgements::await_replicas() {
  const std::scoped_lock lock(mutex_);
  replicated_ = durable();
}

void Acknowledgements::replicate(std::uint64_t sequence) {
  {
    const std::scoped_lock lock(mutex_);
    if (sequence <= replicated_) return;
    replicated_ = sequence;
  }
  rise();
}

// One thread at a time, so that the mark never falls back.
void Acknowledgements::rise() {
  {
    const std::scoped_lock rising(rising_);
    std::uint64_t sequence = 0;
    {
      const std::scoped_lock lock(mutex_);
      sequence = std::min(reached_, replicated_);
      if (error_ || sequence <= durable()) return;
    }
    mark_.rise(sequence);
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  }
  call_back();
}

void Acknowledgements::fail(LogError error) {
  {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
    mark_.fail();
    changed_.notify_all();
  }
  call_back();
}

void Acknowledgements::call_back() {
  std::unique_lock lock(mutex_);
  if (calling_) return;
  calling_ = true;
  while (!waiting_.empty() && (error_ || waiting_.begin()->first <= mark_.released())) {
    auto first = waiting_.extract(waiting_.begin());
    const LogError* const error = first.key() <= mark_.released() ? nullptr : &*error_;  // set once
    lock.unlock();
    first.mapped()(error);
    lock.lock();
  }
  calling_ = false;
}

}  // namespace espalier::log
