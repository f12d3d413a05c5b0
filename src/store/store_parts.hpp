// SPDX-License-Identifier: Apache-2.0
// What kinds keep once for all their objects of a store: each is found by its type, and made when
// it is first asked for.
//
// Thread: any.
#pragma once

#include <concepts>
#include <mutex>
#include <utility>

#include "base/typed_slots.hpp"

namespace espalier::memory {
class BufferCache;
}

namespace espalier::store {

/// It outlives the objects of its kind, those that were dropped and wait included.
class StorePart {
 public:
  StorePart() = default;
  virtual ~StorePart() = default;
  StorePart(const StorePart&) = delete;
  StorePart& operator=(const StorePart&) = delete;

  /// Gives back memory that its objects have in reserve. Returns whether they have less now.
  /// Requires: no lock is held but the catalogue's or a map's structure lock.
  virtual bool give_back(memory::BufferCache&) noexcept { return false; }
};

class StoreParts {
 public:
  /// What is there, or made of these. Errors: std::bad_alloc, and what making it throws.
  template <std::derived_from<StorePart> P, class... Arguments>
  [[nodiscard]] P& of(Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    return parts_.template of<P>(std::forward<Arguments>(arguments)...);
  }
  /// Has all give back what they can. Returns whether any did. Requires: as StorePart::give_back.
  bool give_back(memory::BufferCache& cache) noexcept {
    const std::lock_guard lock(mutex_);
    bool any = false;
    parts_.for_each([&](StorePart& part) { any = part.give_back(cache) || any; });
    return any;
  }

 private:
  std::mutex mutex_;  // guards the list, and is held while parts give back
  base::TypedSlots<StorePart> parts_;
};

}  // namespace espalier::store
