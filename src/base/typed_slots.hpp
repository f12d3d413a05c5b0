// SPDX-License-Identifier: Apache-2.0
// Parts that an owner (a session, an endpoint, a scheduler, a node) keeps for modules that it does
// not know, each found by its type and made when it is first asked for.
//
// Thread: that of the owner.
#pragma once

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

namespace espalier::base {

/// `Part`: what the owner knows of all of them.
template <class Part>
class TypedSlots {
 public:
  TypedSlots() = default;
  TypedSlots(const TypedSlots&) = delete;
  TypedSlots& operator=(const TypedSlots&) = delete;
  /// The last one first: a part may use those that were there before it.
  ~TypedSlots() {
    while (!slots_.empty()) slots_.pop_back();
  }

  /// Null: it was not made. Cost: a look at each part.
  template <std::derived_from<Part> P>
  [[nodiscard]] P* find() const {
    for (const Slot& slot : slots_) {
      if (slot.type == &kType<P>) return static_cast<P*>(slot.part.get());
    }
    return nullptr;
  }
  /// Requires: it was not made.
  template <std::derived_from<Part> P, class... Arguments>
  P& make(Arguments&&... arguments) {
    auto made = std::make_unique<P>(std::forward<Arguments>(arguments)...);
    P& part = *made;
    slots_.push_back({&kType<P>, std::move(made)});
    return part;
  }
  /// What is there, or made of these.
  template <std::derived_from<Part> P, class... Arguments>
  [[nodiscard]] P& of(Arguments&&... arguments) {
    P* const known = find<P>();
    return known != nullptr ? *known : make<P>(std::forward<Arguments>(arguments)...);
  }
  /// Does something with each, in the order in which they were made.
  template <class Act>
  void for_each(const Act& act) const {
    for (const Slot& slot : slots_) act(*slot.part);
  }

 private:
  struct Slot {
    const char* type;
    std::unique_ptr<Part> part;
  };
  // Its address identifies the type.
  template <class P>
  static constexpr char kType = 0;

  std::vector<Slot> slots_;
};

}  // namespace espalier::base
