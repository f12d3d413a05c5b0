// SPDX-License-Identifier: Apache-2.0
// A thread's cached sessions: one for each store that it has used, returned to its pool when the
// thread ends.
//
// Calls may come after that: from destructors of other thread_local objects and, on the main
// thread, of static ones and from atexit() functions. So this class has no destructor: its owner
// calls end() at the end of the thread, and afterwards nothing is cached.
//
// Copies in forked processes are dropped and left untouched.
//
// Thread: its own.
#pragma once

#include <memory>
#include <utility>

namespace espalier::client {

/// `Pool` has release(Session), closed() and is_copy(). Requires: thread_local, constant
/// initialisation.
template <class Pool, class Session>
class ThreadKept {
 public:
  struct Entry {
    std::shared_ptr<Pool> pool;
    Session session;
    Entry* next = nullptr;
  };

  [[nodiscard]] Entry* find(const Pool* pool) const {
    Entry* entry = first_;
    while (entry != nullptr && entry->pool.get() != pool) entry = entry->next;
    return entry;
  }
  /// Whether sessions are cached; if not, each is for one call.
  [[nodiscard]] bool keeps() const { return !ended_; }
  /// Requires: keeps().
  void add(std::unique_ptr<Entry> entry) noexcept {
    entry->next = first_;
    first_ = entry.release();
  }
  /// Drops the sessions of pools for which `which(pool)` is true, without returning them.
  template <class Which>
  void drop(const Which& which) {
    Entry* dropped = nullptr;
    for (Entry** at = &first_; *at != nullptr;) {
      Entry* const entry = *at;
      if (which(*entry->pool)) {
        *at = entry->next;
        entry->next = std::exchange(dropped, entry);
      } else {
        at = &entry->next;
      }
    }
    while (dropped != nullptr) delete std::exchange(dropped, dropped->next);
  }
  /// Drops unusable sessions.
  void drop_unusable() {
    drop([](const Pool& pool) { return pool.is_copy() || pool.closed(); });
  }
  /// Returns all sessions to their pools, for good.
  void end() noexcept {
    ended_ = true;
    while (first_ != nullptr) {
      const std::unique_ptr<Entry> entry(std::exchange(first_, first_->next));
      if (!entry->pool->is_copy()) entry->pool->release(std::move(entry->session));
    }
  }

 private:
  Entry* first_ = nullptr;
  bool ended_ = false;
};

}  // namespace espalier::client
