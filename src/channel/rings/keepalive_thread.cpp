// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/keepalive_thread.hpp"

#include <signal.h>

#include "base/until_fork.hpp"

namespace espalier::client {

std::shared_ptr<KeepaliveThread> KeepaliveThread::of_process() {
  struct Newest {
    std::mutex mutex;
    std::weak_ptr<KeepaliveThread> thread;
  };
  static constinit base::PerProcess<Newest> newest;
  Newest& now = newest.get();
  const std::lock_guard lock(now.mutex);
  auto keepalive = now.thread.lock();
  if (keepalive) return keepalive;
  // A forked copy has no thread that could be joined.
  keepalive = base::make_shared_until_fork<KeepaliveThread>();
  now.thread = keepalive;
  return keepalive;
}

// Blocks signals: they are for the program's threads, which may wait for them.
KeepaliveThread::KeepaliveThread() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

KeepaliveThread::~KeepaliveThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_now_.notify_one();
  thread_.join();
}

void KeepaliveThread::add(KeepaliveTarget& target) {
  const std::lock_guard lock(mutex_);
  targets_.push_back(&target);
}

void KeepaliveThread::remove(KeepaliveTarget& target) {
  if (mark_.is_copy()) return;
  const std::lock_guard lock(mutex_);
  std::erase(targets_, &target);
}

void KeepaliveThread::work() {
  std::unique_lock lock(mutex_);
  while (!ending_now_.wait_for(lock, kPause, [this] { return ending_; })) {
    for (KeepaliveTarget* const target : targets_) target->keep();
  }
}

}  // namespace espalier::client
