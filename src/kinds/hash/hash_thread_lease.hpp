// SPDX-License-Identifier: Apache-2.0
// Borrows a HashThread for one call (hash_threads.hpp).
#pragma once

#include <memory>
#include <utility>

#include "espalier/error.hpp"

namespace espalier::hash {

class HashThread;
class HashThreads;
struct KeptHashThread;

/// The one that the calling thread caches, or another if that is in use.
class HashThreadLease {
 public:
  /// Cost: a look at the thread's cache. Errors: those of HashThread::join(); std::bad_alloc.
  static Result<HashThreadLease> take(const std::shared_ptr<HashThreads>& threads);
  HashThreadLease(HashThreadLease&& other) noexcept
      : place_(std::exchange(other.place_, nullptr)), extra_(other.extra_) {}
  HashThreadLease& operator=(HashThreadLease&&) = delete;
  ~HashThreadLease();

  [[nodiscard]] HashThread& operator*() const;

 private:
  HashThreadLease(KeptHashThread* place, HashThreads* extra);

  KeptHashThread* place_;
  HashThreads* extra_;  // takes back one that is not the thread's; null: it is
};

}  // namespace espalier::hash
