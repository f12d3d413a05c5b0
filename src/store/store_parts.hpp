// SPDX-License-Identifier: Apache-2.0
// State that a kind keeps once per store, shared by all its objects there. A part is found by its
// type, and made on first use.
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

/// Outlives the objects of its kind, dropped and waiting ones included.
class StorePart {
 public:
  StorePart() = default;
  virtual ~StorePart() = default;
  StorePart(const StorePart&) = delete;
  StorePart& operator=(const StorePart&) = delete;

  /// Returns reserved memory of its objects to `cache`. Returns whether it returned any. Requires:
  /// no lock is held but the catalogue's or a map's structure lock.
  virtual bool give_back(memory::BufferCache&) noexcept { return false; }
};

class StoreParts {
 public:
  /// The part of type P, made of `arguments` if there is none. Errors: std::bad_alloc, and what P's
  /// constructor throws.
  template <std::derived_from<StorePart> P, class... Arguments>
  [[nodiscard]] P& of(Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    return parts_.template of<P>(std::forward<Arguments>(arguments)...);
  }
  /// Calls give_back() of each part. Returns whether any returned memory. Requires: as
  /// StorePart::give_back.
  bool give_back(memory::BufferCache& cache) noexcept {
    const std::lock_guard lock(mutex_);
    bool any = false;
    parts_.for_each([&](StorePart& part) { any = part.give_back(cache) || any; });
    return any;
  }

 private:
  std::mutex mutex_;  // guards the list, and is held during give_back()
  base::TypedSlots<StorePart> parts_;
};

}  // namespace espalier::store
