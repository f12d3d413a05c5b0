// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/group_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/assert.hpp"
#include "base/prefetch.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kPageBytes = std::size_t{2} << 20;
/// Smaller tables lie in the caches, and there are many of them.
constexpr std::size_t kSmallBytes = std::size_t{1} << 20;

/// Of the lines that so many bytes lie in.
std::size_t bytes_of_lines(std::size_t bytes) {
  return (bytes + base::kLineBytes - 1) / base::kLineBytes * base::kLineBytes;
}

}  // namespace

void GroupMemory::Free::operator()(std::byte* piece) const { std::free(piece); }

GroupMemory::~GroupMemory() {
  for (std::byte* const page : pages_) ::munmap(page, kPageBytes);
}

void GroupMemory::add_page() {
  // So much that a page at a multiple of its size lies in it; what is beside it goes back.
  void* const raw = ::mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(raw);
  const std::size_t before =
      (kPageBytes - reinterpret_cast<std::uintptr_t>(begin) % kPageBytes) % kPageBytes;
  std::byte* const page = begin + before;
  if (before != 0) ::munmap(begin, before);
  ::munmap(page + kPageBytes, kPageBytes - before);
  // Without huge pages it is slower, and as right.
  static_cast<void>(::madvise(page, kPageBytes, MADV_HUGEPAGE));
  pages_.push_back(page);
  page_used_ = 0;
  bytes_ += kPageBytes;
}

bool GroupMemory::fits_page(std::size_t bytes) const {
  return !pages_.empty() && bytes <= kPageBytes - page_used_;
}

bool GroupMemory::wants_page(std::size_t bytes) const {
  return !fits_page(bytes_of_lines(bytes)) && bytes_ >= kSmallBytes && has_room(kPageBytes);
}

void GroupMemory::take_page() {
  add_page();
  *static_cast<volatile std::byte*>(pages_.back()) = std::byte{0};
}

std::byte* GroupMemory::allocate(std::size_t bytes) {
  ESPALIER_ASSERT(bytes <= kPageBytes);
  bytes = bytes_of_lines(bytes);
  if (wants_page(bytes)) add_page();
  if (fits_page(bytes)) {
    std::byte* const piece = pages_.back() + page_used_;
    page_used_ += bytes;
    return piece;
  }
  if (!has_room(bytes)) return nullptr;
  auto* const piece = static_cast<std::byte*>(std::aligned_alloc(base::kLineBytes, bytes));
  if (piece == nullptr) throw std::bad_alloc();
  pieces_.emplace_back(piece);
  bytes_ += bytes;
  return piece;
}

void GroupMemory::free(std::byte* piece, std::size_t bytes) {
  const auto at = std::ranges::find(pieces_, piece, [](const Piece& one) { return one.get(); });
  if (at == pieces_.end()) return;
  pieces_.erase(at);
  bytes_ -= bytes_of_lines(bytes);
}

}  // namespace espalier::table
