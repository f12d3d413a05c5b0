// SPDX-License-Identifier: Apache-2.0
// What a process does for connections that none of its threads uses just now: a node asks in
// silence whether a client is there, and gives up who does not answer. One thread for all of them,
// which works for each that was not used since it last looked.
//
// Thread: any. There is a thread while there is a keepalive thread, and a keepalive thread while
// there are connections that have one; it blocks all signals. In a forked process it does nothing,
// and stays for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fork_mark.hpp"

namespace espalier::client {

/// What can be kept.
class KeepaliveTarget {
 public:
  /// Works for it, if nobody else has since the last time. Must not wait for anything.
  virtual void keep() = 0;

 protected:
  ~KeepaliveTarget() = default;
};

class KeepaliveThread {
 public:
  /// Between two looks. Peers bear 500 ms without an acknowledgement; the first look that works for
  /// somebody comes at most twice this time after he was used.
  static constexpr std::chrono::milliseconds kPause{100};

  /// That of this process. Errors: throws std::system_error where there is no thread to be had.
  static std::shared_ptr<KeepaliveThread> of_process();

  KeepaliveThread();
  ~KeepaliveThread();
  KeepaliveThread(const KeepaliveThread&) = delete;
  KeepaliveThread& operator=(const KeepaliveThread&) = delete;

  void add(KeepaliveTarget& target);
  /// Once this has returned it is not worked for any more. Not to be called from keep().
  void remove(KeepaliveTarget& target);

 private:
  void work();

  const base::ForkMark mark_;
  std::mutex mutex_;
  std::condition_variable ending_now_;
  bool ending_ = false;
  std::vector<KeepaliveTarget*> targets_;
  std::thread thread_;
};

}  // namespace espalier::client
