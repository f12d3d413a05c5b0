// SPDX-License-Identifier: Apache-2.0
#include "tests/heap/failing_heap.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace espalier::test {
namespace {

struct Plan {
  std::int64_t left = -1;  // allocations that succeed; -1: all
  bool for_good = false;
  bool failed = false;
};
thread_local constinit Plan plan;

bool fails_now() {
  if (plan.left < 0) [[likely]]
    return false;
  if (plan.left > 0) {
    --plan.left;
    return false;
  }
  plan.failed = true;
  if (!plan.for_good) plan.left = -1;
  return true;
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const at = take(bytes, alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

}  // namespace

FailingHeap::FailingHeap(std::int64_t n, Failure failure) {
  plan = {n, failure == Failure::for_good, false};
}

void FailingHeap::stop() {
  failed_ = failed_ || plan.failed;
  plan = {};
}

}  // namespace espalier::test

// Each form of its own: the forms of a sanitizer's runtime do not come back to the first.
using espalier::test::take;
using espalier::test::take_or_throw;

void* operator new(std::size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<std::size_t>(alignment));
}

// g++ holds std::free() for a mismatch once it has these inlined; they are each other's match.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete[](void* at, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete[](void* at, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(at);
}
