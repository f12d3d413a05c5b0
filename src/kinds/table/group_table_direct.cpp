// SPDX-License-Identifier: Apache-2.0
// Groups whose keys lie near each other, found by an array, straight from the rows of a table.
#include <span>

#include "base/atomic_bytes.hpp"
#include "kinds/table/direct_rows.hpp"
#include "kinds/table/group_table.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {
namespace {

using base::load_plain;
using base::store_plain;

void add(const DirectSums::Sum& sum, std::byte* group, const std::byte* row) {
  const Wide result = wide_of(load_plain<std::int64_t>(group + sum.low),
                              load_plain<std::int64_t>(group + sum.high)) +
                      load_plain<std::int64_t>(row + sum.from);
  store_plain(group + sum.low, low_half(result));
  store_plain(group + sum.high, high_half(result));
}

void count_row(std::uint32_t offset, std::byte* group) {
  store_plain(group + offset, load_plain<std::uint64_t>(group + offset) + 1);
}

/// So many sums and counts, which the compiler unrolls.
template <unsigned Sums, unsigned Counts>
struct FewSums {
  DirectSums::Sum sums[Sums + 1];
  std::uint32_t counts[Counts + 1];

  explicit FewSums(const DirectSums& of) {
    for (unsigned i = 0; i < Sums; ++i) sums[i] = of.sums[i];
    for (unsigned i = 0; i < Counts; ++i) counts[i] = of.counts[i];
  }
  void operator()(std::byte* group, const std::byte* row) const {
    for (unsigned i = 0; i < Sums; ++i) add(sums[i], group, row);
    for (unsigned i = 0; i < Counts; ++i) count_row(counts[i], group);
  }
};

struct ManySums {
  std::span<const DirectSums::Sum> sums;
  std::span<const std::uint32_t> counts;

  explicit ManySums(const DirectSums& of) : sums(of.sums), counts(of.counts) {}
  void operator()(std::byte* group, const std::byte* row) const {
    for (const DirectSums::Sum& sum : sums) add(sum, group, row);
    for (const std::uint32_t offset : counts) count_row(offset, group);
  }
};

}  // namespace

template <bool All, class Add>
std::uint32_t GroupTable::add_direct_as(const DirectRows& rows, std::uint32_t key_from,
                                        const std::byte* blank, const Add& add) {
  std::byte** const direct = direct_;
  const std::uint64_t base = direct_base_;
  const std::uint64_t size = direct_size_;
  const std::uint32_t count = rows.count;
  std::uint32_t outside = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (rows.ahead != nullptr) __builtin_prefetch(rows.ahead + i * rows.row_bytes);
    const std::byte* const row = rows.rows + (All ? i : rows.selected[i]) * rows.row_bytes;
    const auto word = load_plain<std::uint64_t>(row + key_from);
    const std::uint64_t at = word - base;
    std::byte* group = at < size ? direct[at] : nullptr;
    if (group == nullptr) [[unlikely]] {
      group = row_of_word(word, blank);
      if (group == nullptr) return i;
      outside += at < size ? 0 : 1;
    }
    add(group, row);
  }
  give_up_direct(outside, count);
  return count;
}

template <class Add>
std::uint32_t GroupTable::add_direct_by(const DirectRows& rows, const DirectSums& sums,
                                        const std::byte* blank) {
  const Add add(sums);
  return rows.selected == nullptr ? add_direct_as<true>(rows, sums.key_from, blank, add)
                                  : add_direct_as<false>(rows, sums.key_from, blank, add);
}

std::uint32_t GroupTable::add_direct(const DirectRows& rows, const DirectSums& sums,
                                     const std::byte* blank) {
  paused_ = false;
  switch (sums.sums.size() << 8 | sums.counts.size()) {
    case 0x001: return add_direct_by<FewSums<0, 1>>(rows, sums, blank);
    case 0x100: return add_direct_by<FewSums<1, 0>>(rows, sums, blank);
    case 0x101: return add_direct_by<FewSums<1, 1>>(rows, sums, blank);
    case 0x200: return add_direct_by<FewSums<2, 0>>(rows, sums, blank);
    case 0x201: return add_direct_by<FewSums<2, 1>>(rows, sums, blank);
    default: return add_direct_by<ManySums>(rows, sums, blank);
  }
}

std::uint32_t GroupTable::count_known(const DirectRows& rows, std::uint32_t key_from) const {
  std::byte* const* const direct = direct_;
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    if (rows.ahead != nullptr) __builtin_prefetch(rows.ahead + i * rows.row_bytes);
    const std::uint32_t number = rows.selected == nullptr ? i : rows.selected[i];
    const std::byte* const row = rows.rows + number * rows.row_bytes;
    const std::uint64_t at = load_plain<std::uint64_t>(row + key_from) - direct_base_;
    if (at >= direct_size_ || direct[at] == nullptr) return i;
  }
  return rows.count;
}

}  // namespace espalier::table
