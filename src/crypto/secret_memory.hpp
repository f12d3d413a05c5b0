// SPDX-License-Identifier: Apache-2.0
// Memory for keys: a page of its own that is never swapped, is in no core dump and in no child
// process, and is overwritten before it goes back.
//
// Thread: as what lies in it.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "base/fork_mark.hpp"
#include "espalier/error.hpp"

namespace espalier::crypto {

inline constexpr std::size_t kSecretPageBytes = 4096;

/// Errors: system (no page may be locked: RLIMIT_MEMLOCK is too low).
[[nodiscard]] Result<void*> take_secret_page();
void give_secret_page_back(void* page) noexcept;
/// How many are taken at this moment, by all threads.
[[nodiscard]] std::size_t secret_pages_taken();
/// Overwrites bytes, even if nothing reads them any more.
void cleanse(void* bytes, std::size_t count) noexcept;

/// Cryptographically random bytes. Errors: system. Cost: a system call.
Result<void> draw_bytes(std::span<std::byte> bytes);

/// One T in a secret page, all zeros at first. A forked process has a copy of this object without
/// the page, and may only ask whether it has one.
template <class T>
class Secret {
  static_assert(sizeof(T) <= kSecretPageBytes && std::is_trivially_copyable_v<T> &&
                std::is_trivially_default_constructible_v<T>);

 public:
  /// Errors: those of take_secret_page().
  static Result<Secret> make() {
    const Result<void*> page = take_secret_page();
    if (!page) return std::unexpected(page.error());
    return Secret(new (*page) T());
  }
  Secret(Secret&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)), mark_(other.mark_) {}
  Secret& operator=(Secret&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~Secret() {
    if (value_ != nullptr && !is_copy()) give_secret_page_back(value_);
  }
  [[nodiscard]] bool is_copy() const { return mark_.is_copy(); }

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  explicit Secret(T* value) : value_(value) {}
  T* value_;
  base::ForkMark mark_;
};

}  // namespace espalier::crypto
