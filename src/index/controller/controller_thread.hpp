// SPDX-License-Identifier: Apache-2.0
// Runs the rounds of a switch controller on a thread of its own, for as long as the object lives; a
// failed round does not end it.
//
// Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "index/controller/index_controller.hpp"

namespace espalier::client {

class ControllerThread {
 public:
  ControllerThread(IndexController::Options options, std::chrono::nanoseconds between);
  ~ControllerThread();
  ControllerThread(const ControllerThread&) = delete;
  ControllerThread& operator=(const ControllerThread&) = delete;

  /// Rounds that succeeded.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_.load(std::memory_order_acquire); }

 private:
  void run();

  IndexController controller_;
  const std::chrono::nanoseconds between_;
  std::atomic<std::uint64_t> rounds_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace espalier::client
