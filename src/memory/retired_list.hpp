// SPDX-License-Identifier: Apache-2.0
// Lists of retired buffers, with elements allocated before the buffer is unlinked: neither handing
// a buffer to the reclaimer nor reclaiming it allocates memory.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/chain.hpp"

namespace espalier::memory {

class VersionedObject;

/// A buffer (and optionally an id of its object) unlinked at `version`; or an id alone, whose
/// memory the object frees itself when the id is released. Version 0: no snapshot needs it.
struct Retired {
  std::uint64_t offset = 0;  // 0: an id alone
  std::uint64_t version = 0;
  std::uint32_t size_class = 0;
  std::uint32_t id = 0;     // released with the buffer; 0: none
  std::uint64_t bytes = 0;  // of an id alone: its memory in the object
};

/// A list element: a retired buffer, its object, and the epoch of its stamp.
struct RetiredNode {
  Retired retired;
  VersionedObject* object = nullptr;
  std::uint64_t stamp = 0;
  RetiredNode* next = nullptr;
};

using RetiredList = base::Chain<RetiredNode, &RetiredNode::next>;

/// A stock of elements: a writer reserves as many as it may retire before it locks, or at the
/// latest before it takes a version.
class RetiredStock {
 public:
  RetiredStock() = default;
  RetiredStock(const RetiredStock&) = delete;
  RetiredStock& operator=(const RetiredStock&) = delete;
  ~RetiredStock() {
    while (first_ != nullptr) delete take();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Ensures that the stock has `count` elements; false: out of memory. Cost: a comparison, and an
  /// allocation for each missing one.
  [[nodiscard]] bool reserve(std::size_t count) noexcept {
    while (size_ < count) [[unlikely]] {
        auto* const node = new (std::nothrow) RetiredNode;
        if (node == nullptr) return false;
        put(node);
      }
    return true;
  }
  /// Requires: the stock is not empty.
  RetiredNode* take() {
    --size_;
    return std::exchange(first_, first_->next);
  }
  void put(RetiredNode* node) {
    node->next = std::exchange(first_, node);
    ++size_;
  }

 private:
  RetiredNode* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace espalier::memory
