// SPDX-License-Identifier: Apache-2.0
// From the number of a row to where it lies: one multiplication, one load of the page list.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::embedding {

/// Divides the number of a row by the rows of a page, by a multiplication.
class PageDivider {
 public:
  /// Requires: rows_per_page is not 0.
  explicit constexpr PageDivider(std::uint32_t rows_per_page)
      : rows_(rows_per_page), factor_(~std::uint64_t{0} / rows_per_page + 1) {}

  [[nodiscard]] constexpr std::uint32_t rows() const { return rows_; }
  /// Exact: the factor is too large by less than rows() / 2^64 of 1, and a row is below 2^32.
  [[nodiscard]] constexpr std::uint32_t page_of(std::uint32_t row) const {
    if (rows_ == 1) return row;
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>((Wide{factor_} * row) >> 64);
  }

 private:
  std::uint32_t rows_;
  std::uint64_t factor_;
};

/// A page list as it was when it was asked for: pages stay where they are, so what it says of them
/// stays right; sequences move in the newest list alone.
class PageList {
 public:
  PageList(const std::byte* entries, const std::byte* base) : entries_(entries), base_(base) {}

  [[nodiscard]] const std::byte* entries() const { return entries_; }
  /// The first row of a page. Requires: the page is there.
  [[nodiscard]] const std::byte* rows_of(std::uint32_t page) const {
    const auto ref = base::load_shared<std::uint64_t>(at(page));
    return base_ + wire::Ref{ref}.offset() + sizeof(PageHeader);
  }
  /// Where the sequence of the first page lies; those of others are a PageEntry apart.
  [[nodiscard]] std::uintptr_t first_sequence() const {
    return reinterpret_cast<std::uintptr_t>(at(0) + offsetof(PageEntry, sequence));
  }
  [[nodiscard]] std::uint64_t sequence_of(std::uint32_t page) const {
    return base::load_shared<std::uint64_t>(at(page) + offsetof(PageEntry, sequence),
                                            std::memory_order_acquire);
  }
  /// The same, of one that is asked once more behind acquire_rows().
  [[nodiscard]] std::uint64_t sequence_again(std::uint32_t page) const {
    return base::load_shared<std::uint64_t>(at(page) + offsetof(PageEntry, sequence));
  }

 private:
  [[nodiscard]] const std::byte* at(std::uint32_t page) const {
    return entries_ + std::size_t{page} * sizeof(PageEntry);
  }

  const std::byte* entries_;
  const std::byte* base_;
};

/// Orders the bytes of rows that were read before what is read after it.
inline void acquire_rows() {
#if defined(__SANITIZE_THREAD__)
  base::full_fence();  // g++ refuses the standard one there
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace espalier::embedding
