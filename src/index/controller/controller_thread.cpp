// SPDX-License-Identifier: Apache-2.0
#include "index/controller/controller_thread.hpp"

#include <utility>

namespace espalier::client {

ControllerThread::ControllerThread(IndexController::Options options,
                                   std::chrono::nanoseconds between)
    : controller_(std::move(options)), between_(between), thread_([this] { run(); }) {}

ControllerThread::~ControllerThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ControllerThread::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    if (controller_.round()) rounds_.fetch_add(1, std::memory_order_release);
    lock.lock();
    changed_.wait_for(lock, between_, [this] { return ends_; });
  }
}

}  // namespace espalier::client
