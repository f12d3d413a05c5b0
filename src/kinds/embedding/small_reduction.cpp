// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/small_reduction.hpp"

#include "base/assert.hpp"
#include "kinds/embedding/bag_folder.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/reducer.hpp"

namespace espalier::embedding {
namespace {

/// All bags, of rows that lie there.
void fold_bags(const EmbeddingTable& table, const ReductionWork& work, GatherKernel kernel,
               const std::byte* const* rows, std::span<float> results) {
  const EmbeddingBags& bags = work.bags;
  const std::uint32_t dimension = table.options().dimension;
  std::array<float, SmallReduction::kFloatsMax> folded;
  for (std::size_t bag = 0; bag < bags.offsets.size(); ++bag) {
    const std::size_t begin = bags.offsets[bag];
    const std::size_t end = bag + 1 < bags.offsets.size() ? bags.offsets[bag + 1] : bags.ids.size();
    const std::byte* const* const of = rows + begin;
    const float* const weights = bags.weights.empty() ? nullptr : bags.weights.data() + begin;
    // They were asked for already.
    if (begin != end) {
      kernel({of, weights, nullptr, folded.data(), of, of, static_cast<std::uint32_t>(end - begin),
              dimension, table.row_bytes()});
    }
    finish_bag(work, dimension, bag, begin != end ? folded.data() : nullptr, results);
  }
}

}  // namespace

// Results are at least a row's width for each bag, or a float, so bags are few as well.
bool SmallReduction::fits(const EmbeddingTable& table, const ReductionWork& work) {
  const std::uint32_t dimension = table.options().dimension;
  static_assert(kFloatsMax >= 1024);  // the most that a row has
  return work.bags.ids.size() <= kRowsMax && work.bags.grouping == 0 &&
         work.bags.offsets.size() * result_width(work.reduction, dimension) <= kFloatsMax &&
         !(table.may_have_sums() && Reducer::reads_sums(work));
}

std::expected<void, WrongId> SmallReduction::begin(const EmbeddingTable& table,
                                                   std::span<const std::uint32_t> ids) {
  ESPALIER_ASSERT(ids.size() <= kRowsMax);
  const std::uint64_t table_rows = table.rows();
  const PageList list = table.page_list();
  const PageDivider& divider = table.divider();
  count_ = 0;
  for (const std::uint32_t id : ids) {
    if (id >= table_rows) return std::unexpected(WrongId{id, count_, table_rows});
    const std::uint32_t page = divider.page_of(id);
    const std::byte* const row =
        list.rows_of(page) + std::size_t{id - page * divider.rows()} * table.row_bytes();
    prefetch_soon(row, table.row_bytes());
    rows_[count_] = row;
    pages_[count_++] = page;
  }
  return {};
}

bool SmallReduction::read_sequences(const PageList& list) {
  std::uint64_t odd = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    sequences_[i] = list.sequence_of(pages_[i]);
    odd |= sequences_[i];
  }
  return odd % 2 == 0;
}

bool SmallReduction::are_as_before(const EmbeddingTable& table, const PageList& list) const {
  if (planted(Bug::torn_row_believed)) return true;
  std::uint64_t differ = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    differ |= sequences_[i] ^ list.sequence_again(pages_[i]);
  }
  return differ == 0 && table.is_newest(list);
}

ReductionCounts SmallReduction::fold(const EmbeddingTable& table, const ReductionWork& work,
                                     std::span<float> results, const GatherKit& kit) {
  ESPALIER_ASSERT(work.bags.ids.size() == count_);
  const GatherKernel kernel = kit.kernel(table.options().type, fold_of(work));
  ReductionCounts counts{work.bags.offsets.size(), count_, count_, 0, 0};
  for (int tries = 0; tries < Reducer::kTriesMax; ++tries, ++counts.rereads) {
    const PageList list = table.page_list();
    if (!read_sequences(list)) {
      base::spin_pause();
      continue;
    }
    fold_bags(table, work, kernel, rows_.data(), results);
    acquire_rows();
    if (are_as_before(table, list)) return counts;
  }
  const auto kept_out = table.hold_replacements();
  fold_bags(table, work, kernel, rows_.data(), results);
  return counts;
}

}  // namespace espalier::embedding
