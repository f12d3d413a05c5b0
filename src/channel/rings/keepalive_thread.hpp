// SPDX-License-Identifier: Apache-2.0
// Keepalive of idle connections: a node sends probes to silent clients, and gives up a client that
// does not answer. One thread of the process does the work of all connections that no other thread
// has used since its last round.
//
// Thread: any. The thread exists while connections hold it, and blocks all signals. In a forked
// process it does nothing, and is never destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fork_mark.hpp"

namespace espalier::client {

/// A connection to keep alive.
class KeepaliveTarget {
 public:
  /// Does its work, if no thread has done that since the last call. Must not wait.
  virtual void keep() = 0;

 protected:
  ~KeepaliveTarget() = default;
};

class KeepaliveThread {
 public:
  /// Interval between two rounds. Peers tolerate 500 ms without an acknowledgement; an idle
  /// connection is served at most two intervals after its last use.
  static constexpr std::chrono::milliseconds kPause{100};

  /// The thread of this process. Errors: throws std::system_error if no thread can be created.
  static std::shared_ptr<KeepaliveThread> of_process();

  KeepaliveThread();
  ~KeepaliveThread();
  KeepaliveThread(const KeepaliveThread&) = delete;
  KeepaliveThread& operator=(const KeepaliveThread&) = delete;

  void add(KeepaliveTarget& target);
  /// When it returns, keep() of the target is not running and is not called any more. Must not be
  /// called from keep().
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
