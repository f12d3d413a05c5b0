// SPDX-License-Identifier: Apache-2.0
#include "client/connection_keeper.hpp"

#include <signal.h>

namespace espalier::client {

std::shared_ptr<ConnectionKeeper> ConnectionKeeper::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<ConnectionKeeper> now;
  const std::lock_guard lock(mutex);
  auto keeper = now.lock();
  if (keeper && keeper->is_of_this_process()) return keeper;
  // The copy of another process has no thread that could be joined, and may be locked for ever.
  const auto end = [](ConnectionKeeper* ended) {
    if (ended->is_of_this_process()) delete ended;
  };
  keeper = std::shared_ptr<ConnectionKeeper>(new ConnectionKeeper, end);
  now = keeper;
  return keeper;
}

// Signals are for the threads of the program, which may wait for them.
ConnectionKeeper::ConnectionKeeper() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ConnectionKeeper::~ConnectionKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_now_.notify_one();
  thread_.join();
}

void ConnectionKeeper::add(Kept& kept) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(&kept);
}

void ConnectionKeeper::remove(Kept& kept) {
  if (!is_of_this_process()) return;
  const std::lock_guard lock(mutex_);
  std::erase(kept_, &kept);
}

void ConnectionKeeper::work() {
  std::unique_lock lock(mutex_);
  while (!ending_now_.wait_for(lock, kPause, [this] { return ending_; })) {
    for (Kept* const kept : kept_) kept->keep();
  }
}

}  // namespace espalier::client
