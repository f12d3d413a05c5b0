// SPDX-License-Identifier: Apache-2.0
// What a thread keeps of the stores that it used: of each a session, which it gives back when it
// ends.
//
// Calls may come when it has given them back: of destructors of other thread_local objects and, of
// the main thread, of static ones and of functions for atexit(). So this has no destructor: whoever
// has one calls end() at the end of its thread, and then nothing is kept any more.
//
// What a fork() made copies of is forgotten and left as it is.
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
  /// Whether a session can be kept; else each is for one call.
  [[nodiscard]] bool keeps() const { return !ended_; }
  /// Requires: keeps().
  void add(std::unique_ptr<Entry> entry) noexcept {
    entry->next = first_;
    first_ = entry.release();
  }
  /// Forgets the sessions of pools that `which(pool)` says, without giving them back.
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
  /// Forgets those that cannot be used any more.
  void drop_unusable() {
    drop([](const Pool& pool) { return pool.is_copy() || pool.closed(); });
  }
  /// Gives all back.
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
