// SPDX-License-Identifier: Apache-2.0
#include "offload/services.hpp"

#include <utility>

namespace espalier::offload {

Helper::Helper() : thread_([this] { work(); }) {}

Helper::~Helper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_one();
  thread_.join();
}

void Helper::run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  more_.notify_one();
}

void Helper::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // what it holds may take long to free
    lock.lock();
  }
}

Result<std::uint64_t> Sequencers::take(std::string_view name, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  auto at = next_.find(name);
  if (at == next_.end()) {
    if (next_.size() >= kMost) return fail(Code::out_of_memory, kMost);
    at = next_.emplace(name, 0).first;
  }
  const std::uint64_t first = at->second;
  at->second += count;
  return first;
}

}  // namespace espalier::offload
