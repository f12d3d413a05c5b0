// SPDX-License-Identifier: Apache-2.0
// What each resource that principals share stores per principal: parts, found by type and created
// on first use.
//
// Thread: any. find() takes no lock: a new part is pushed in front of a list, and none is removed.
#pragma once

#include <atomic>
#include <concepts>
#include <memory>
#include <mutex>
#include <utility>

namespace espalier::offload {

/// A subclass states which threads may use it.
class AccountPart {
 public:
  AccountPart() = default;
  AccountPart(const AccountPart&) = delete;
  AccountPart& operator=(const AccountPart&) = delete;
  virtual ~AccountPart() = default;

 private:
  friend class AccountParts;
  const char* type_ = nullptr;
  std::unique_ptr<AccountPart> next_;
};

class AccountParts {
 public:
  AccountParts() = default;
  AccountParts(const AccountParts&) = delete;
  AccountParts& operator=(const AccountParts&) = delete;

  /// Null: there is none. Cost: linear in the number of parts.
  template <std::derived_from<AccountPart> P>
  [[nodiscard]] P* find() const {
    AccountPart* at = first_.load(std::memory_order_acquire);
    while (at != nullptr && at->type_ != &kType<P>) at = at->next_.get();
    return static_cast<P*>(at);
  }
  /// Creates it if there is none. Cost: as find(); the first time also a lock. Errors: the first
  /// time std::bad_alloc.
  template <std::derived_from<AccountPart> P>
  [[nodiscard]] P& of() {
    if (P* const known = find<P>()) return *known;
    const std::lock_guard lock(mutex_);
    if (P* const known = find<P>()) return *known;
    auto made = std::make_unique<P>();
    P& part = *made;
    part.type_ = &kType<P>;
    part.next_ = std::move(owner_);
    owner_ = std::move(made);
    first_.store(owner_.get(), std::memory_order_release);
    return part;
  }

 private:
  // Its address identifies the type.
  template <class P>
  static constexpr char kType = 0;

  std::mutex mutex_;                    // guards owner_
  std::unique_ptr<AccountPart> owner_;  // the first part
  std::atomic<AccountPart*> first_{nullptr};
};

}  // namespace espalier::offload
