// SPDX-License-Identifier: Apache-2.0
// Caches HashThreads for threads that make single calls on the hash maps of a store: a thread keeps
// one of each store, which it returns when it ends.
//
// Invariants
// 1. Each is used by one thread and for one call at a time: a nested call (of what modify() runs)
//    gets another.
// 2. None is used after close(), which precedes the end of its store.
//
// Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork_mark.hpp"
#include "kinds/hash/hash_store.hpp"
#include "kinds/hash/hash_thread_lease.hpp"

namespace espalier::hash {

/// A cached HashThread.
struct KeptHashThread {
  explicit KeptHashThread(HashThread own) : thread(std::move(own)) {}

  HashThread thread;
  bool busy = false;
};

class HashThreads {
 public:
  using Place = KeptHashThread;

  explicit HashThreads(HashStore& store) : store_(&store) {}

  /// Errors: those of HashThread::join(); std::bad_alloc. Requires: it is not closed.
  Result<Place*> acquire();
  void release(Place* kept) noexcept;
  /// Destroys all. Requires: no thread uses one.
  void close();
  [[nodiscard]] bool closed() const;
  /// Whether it was made by another process, which forked this one.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  const base::ForkMark mark_;
  mutable std::mutex mutex_;  // guards all below
  HashStore* store_;          // null once closed
  std::vector<std::unique_ptr<Place>> all_;
  std::vector<Place*> free_;
};

inline HashThread& HashThreadLease::operator*() const { return place_->thread; }

}  // namespace espalier::hash
