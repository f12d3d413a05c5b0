// SPDX-License-Identifier: Apache-2.0
// What threads need to use the hash maps of a store, kept for those that call one by one: of each
// store a thread keeps one, which goes back when the thread ends.
//
// Invariants
// 1. Each is used by one thread and for one call at a time: who calls from inside a call (what
//    modify() runs) gets another.
// 2. None is used once it is closed, which it is before its store goes.
//
// Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork_mark.hpp"
#include "kinds/hash/hash_store.hpp"

namespace espalier::hash {

class HashThreads {
 public:
  struct Place {
    explicit Place(HashThread own) : thread(std::move(own)) {}

    HashThread thread;
    bool busy = false;
  };

  explicit HashThreads(HashStore& store) : store_(&store) {}

  /// Errors: those of HashThread::join(); std::bad_alloc. Requires: it is not closed.
  Result<Place*> acquire();
  void release(Place* kept) noexcept;
  /// Destroys all. Requires: no thread uses one.
  void close();
  [[nodiscard]] bool closed() const;
  /// Whether another process made it, which forked this one.
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

 private:
  const base::ForkMark mark_;
  mutable std::mutex mutex_;  // guards all below
  HashStore* store_;          // null once closed
  std::vector<std::unique_ptr<Place>> all_;
  std::vector<Place*> free_;
};

/// A HashThread for one call: the one that the thread keeps, or another if that is in use.
class HashThreadLease {
 public:
  /// Cost: a look at what the thread keeps. Errors: those of HashThread::join(); std::bad_alloc.
  static Result<HashThreadLease> take(const std::shared_ptr<HashThreads>& threads);
  HashThreadLease(HashThreadLease&& other) noexcept
      : kept_(std::exchange(other.kept_, nullptr)), extra_(other.extra_) {}
  HashThreadLease& operator=(HashThreadLease&&) = delete;
  ~HashThreadLease();

  [[nodiscard]] HashThread& operator*() const { return kept_->thread; }

 private:
  HashThreadLease(HashThreads::Place* kept, HashThreads* extra) : kept_(kept), extra_(extra) {
    kept->busy = true;
  }

  HashThreads::Place* kept_;
  HashThreads* extra_;  // where it goes back that the thread does not keep; null: it does
};

}  // namespace espalier::hash
