// SPDX-License-Identifier: Apache-2.0
// An intrusive queue: its elements carry the links, so that pushing allocates nothing.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <utility>

namespace espalier::base {

/// First in, first out, through the member `kNext` of its elements, each of which is in one chain
/// at a time. Owns nothing.
template <class T, T* T::*kNext>
class Chain {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  /// Requires, of both: not empty.
  [[nodiscard]] T& front() const { return *first_; }
  [[nodiscard]] T& back() const { return *last_; }
  void push(T* element) {
    element->*kNext = nullptr;
    (first_ == nullptr ? first_ : last_->*kNext) = element;
    last_ = element;
  }
  /// Requires: not empty.
  T* pop() { return std::exchange(first_, first_->*kNext); }
  /// Empties the chain, and passes each element in order to `place`, which may push it here again.
  template <class Place>
  void sort_out(const Place& place) {
    T* element = std::exchange(first_, nullptr);
    while (element != nullptr) place(std::exchange(element, element->*kNext));
  }
  /// Calls `look` with each element in order, until it returns false.
  template <class Look>
  void for_each(const Look& look) const {
    for (const T* element = first_; element != nullptr; element = element->*kNext) {
      if (!look(*element)) return;
    }
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;  // of no meaning where there is no first
};

}  // namespace espalier::base
