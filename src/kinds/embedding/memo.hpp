// SPDX-License-Identifier: Apache-2.0
// Memoised sums of an embedding table: of each group of its rows the sums of any two or more, as
// rows of fp32 [MERCI; RAMBDA §VI-D]. memo_numbering.hpp says how they are numbered.
//
//   place_of   for each row its place, or that it has no group    4 bytes each
//   members    rows of all groups, one behind the other           4 bytes each
//   sums       rows of fp32, in pages of 2 MiB, with a sequence for each page
//
// All of it lies in pages of the store's pool, and is counted as the table's memory. A Grouping
// (grouping.hpp) takes the pages and fills them, in pieces.
//
// Invariants
// 1. The sequence of a page of sums is odd while its sums must not be read: until they are there,
//    while a row of one of its groups is replaced, and for good once the table has other groups.
//    A table has only memos whose sums are all there.
//    It is another even number afterwards. So who finds it even before and after it has read a
//    sum, and the same, has read the sum of rows that were in the table together.
// 2. Sums change under the lock of replacements of the table alone, sequences under that of stores.
// 3. A row may be stored by a thread that has no time for sums: the pages of its group are not read
//    until another one has computed these, for each store.
// 4. Groups and their numbering never change: other groups are another Memo, of another number.
//
// Thread: reading any; what changes something one at a time, under one of these locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/embedding/memo_numbering.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/row_place.hpp"
#include "memory/buffer_pool.hpp"
#include "store/stored_object.hpp"

namespace espalier::embedding {

/// Where the rows of a table lie, for who keeps replacements out.
struct RowsAtRest {
  PageList list;
  PageDivider divider;
  EmbeddingType type;
  std::uint32_t row_bytes;
};

/// As an object of its store it is one that was dropped: then it gives its pages back in steps.
class Memo final : public store::StoredObject {
 public:
  /// Without any page yet. `rows`: of the table, those that may have groups.
  /// Requires: `number` is not 0; the pool outlives it.
  Memo(memory::BufferPool& pool, std::uint32_t table_id, std::uint32_t dimension,
       std::uint64_t rows, const MemoNumbering& numbering, std::uint32_t number);
  /// Gives its memory back.
  ~Memo() override;

  // --- as it is made, before anybody else has it -------------------------------------------------

  /// Pages that it is to have.
  [[nodiscard]] std::uint64_t pages_wanted() const;
  /// Takes some more of its pages; returns whether there are others to take. Errors: out_of_memory.
  Result<bool> take_pages(std::uint32_t some);
  /// Writes down of the rows of some page of places that they have no group; returns whether there
  /// are others to do. Cost: 2 MiB are written. Requires: it has its pages.
  bool empty_places();
  /// Numbers the rows of a group. Returns which of them no row is, or has a group already; nothing:
  /// all are numbered. Cost: a line or two for each. Requires: all places were emptied.
  [[nodiscard]] std::optional<std::uint32_t> number_group(std::uint32_t group,
                                                          std::span<const std::uint32_t> rows);

  // --- read by any thread ------------------------------------------------------------------------

  /// Which grouping of its table it is: never 0.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] const MemoNumbering& numbering() const { return numbering_; }
  [[nodiscard]] std::uint32_t sum_bytes() const { return sum_bytes_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

  /// The place of a row, or kNoPlace.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t row) const {
    return row < rows_ ? word_in(places_, row) : kNoPlace;
  }
  /// Asks for that place. The row may be none.
  void prefetch_place(std::uint32_t row) const {
    if (row < rows_) __builtin_prefetch(word_at(places_, row));
  }
  [[nodiscard]] std::uint32_t row_of(const NumberedGroup& group, std::uint32_t member) const {
    return word_in(members_, group.members + member);
  }
  /// Requires: numbering().is_place().
  [[nodiscard]] std::uint32_t row_of_place(std::uint32_t place) const {
    return row_of(numbering_.group(group_of_place(place)), place & 7);
  }
  /// Where the sum of some rows of a group lies, and on which page.
  struct Sum {
    const std::byte* at;
    std::uint32_t page;
  };
  /// Which of all sums that of some rows of a group is.
  [[nodiscard]] std::uint32_t number_of_sum(const NumberedGroup& group, std::uint32_t mask) const {
    std::uint32_t rank = rank_of_mask(mask);
    if (planted(Bug::group_border_off_by_one) && rank + 1 == group_sums(group.rows)) ++rank;
    return group.sums + rank;
  }
  [[nodiscard]] Sum sum_at(std::uint32_t number) const {
    const std::uint32_t page = divider_.page_of(number);
    const std::uint32_t in_page = number - page * divider_.rows();
    return {pool_.at(sums_[page]) + sizeof(PageHeader) + std::size_t{in_page} * sum_bytes_, page};
  }

  /// The sequence of a page of sums. See PageList.
  [[nodiscard]] std::uint64_t sequence_of(std::uint32_t page) const {
    return sequences_[page].load(std::memory_order_acquire);
  }
  /// Where that of the first page lies; the others follow it.
  [[nodiscard]] std::uintptr_t first_sequence() const {
    static_assert(sizeof sequences_[0] == sizeof(std::uint64_t));
    return reinterpret_cast<std::uintptr_t>(sequences_.get());
  }

  // --- under the lock of replacements -----------------------------------------------------------
  // Rows may be stored meanwhile: of a row that changes while its sums are computed, these are
  // computed again before anybody reads them.

  [[nodiscard]] std::uint32_t groups_computed() const { return computed_; }
  [[nodiscard]] bool is_computed() const { return computed_ == numbering_.groups(); }
  /// Computes the sums of one group or some more; returns whether there are others to do.
  /// Cost: `sums` sums, or those of one group. Requires: not is_computed().
  bool compute_some(const RowsAtRest& rows, std::uint64_t sums);
  /// Computes sums of a group again, or goes on with that, until there are no others or `sums`,
  /// which it counts down, are computed. Returns whether all are there, for memoise().
  bool compute_again(const RowsAtRest& rows, std::uint32_t group, std::uint64_t& sums);

  // --- under the lock of stores ------------------------------------------------------------------

  /// Of the table's rows so many were stored whose sums others compute later: they are nothing to
  /// this one. Requires: it is called before the table has it.
  void pass_over_stores(std::uint32_t stores) { stores_before_ = stores; }
  /// Whether the store whose sums are to be computed now is one of those.
  [[nodiscard]] bool passes_over() const { return stores_before_ != 0; }
  /// Sums of pages that all are computed may be read.
  void open_pages();
  /// Nobody reads the sums of this group from now on.
  void unmemoise(std::uint32_t group) noexcept;
  /// For one unmemoise(): they may be read, when there was one for each. Requires: their sums were
  /// computed after that.
  void memoise(std::uint32_t group) noexcept;
  /// The same of a store that passes_over(): one less.
  void pass_over_store() { --stores_before_; }
  /// Nobody reads any sum from now on. Requires: both locks.
  void close();

  /// What is wrong with the numbering and the sums, in words. Cost: all sums once more. Requires:
  /// both locks, and no sums are to be computed again.
  [[nodiscard]] std::vector<std::string> faults(const RowsAtRest& rows) const;

  // --- once no thread reads it any more ----------------------------------------------------------

  [[nodiscard]] bool is_dropped() const override { return true; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return buffers_.size() * kPageBytes; }
  void repack_spares() override {}
  /// A page a step.
  bool free_some(std::uint32_t steps) override { return give_back(steps); }
  /// The same; takes the steps from those of a table.
  bool give_back(std::uint32_t& steps);
  [[nodiscard]] std::uint64_t freed_bytes() const override { return freed_bytes_; }

 private:
  using Words = std::vector<std::uint64_t>;  // offsets of pages
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };

  /// Pages of one use, so many of them in all.
  struct PageSet {
    Words& pages;
    std::uint64_t count;
    std::uint32_t row_bytes;
  };
  [[nodiscard]] std::array<PageSet, 3> page_sets();
  Result<void> take_page(const PageSet& set);
  // Here, for bags ask for the place of each id.
  static constexpr std::uint32_t kWordsPerPage = rows_per_page(sizeof(std::uint32_t));
  [[nodiscard]] const std::byte* word_at(const Words& pages, std::uint32_t index) const {
    return pool_.at(pages[index / kWordsPerPage]) + sizeof(PageHeader) +
           std::size_t{index % kWordsPerPage} * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::uint32_t word_in(const Words& pages, std::uint32_t index) const {
    return base::load_shared<std::uint32_t>(word_at(pages, index));
  }
  void store_word(const Words& pages, std::uint32_t index, std::uint32_t word);
  [[nodiscard]] Range pages_of(const NumberedGroup& group) const;
  void load_rows(const RowsAtRest& rows, const NumberedGroup& group) const;
  void add_sum(const NumberedGroup& group, std::uint32_t mask) const;
  std::uint32_t compute(const RowsAtRest& rows, const NumberedGroup& group, std::uint32_t mask,
                        std::uint64_t& sums);
  void add_faults(const RowsAtRest& rows, std::uint32_t number,
                  std::vector<std::string>& wrong) const;

  memory::BufferPool& pool_;
  const std::uint32_t table_id_;
  const std::uint32_t dimension_;
  const std::uint64_t rows_;
  const std::uint32_t number_;
  const std::uint32_t sum_bytes_;
  const PageDivider divider_;
  const MemoNumbering numbering_;
  Words places_;
  Words members_;
  Words sums_;
  Words buffers_;              // all of them
  std::uint64_t emptied_ = 0;  // rows of which is written down that they have no group
  std::uint64_t freed_bytes_ = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[]> sequences_;
  // Under the lock of stores.
  std::uint32_t pages_open_ = 0;                // pages whose sums all are there
  std::unique_ptr<std::uint32_t[]> stores_to_;  // a page: of its groups' rows, without their sums
  std::uint32_t stores_before_ = 0;
  bool closed_ = false;  // under both
  // Under that of replacements.
  static constexpr std::uint32_t kFirstMask = 3;
  std::uint32_t computed_ = 0;             // groups whose sums are there
  std::uint32_t again_mask_ = kFirstMask;  // of the group that is computed again, the next sum
  mutable std::vector<std::byte> row_;
  mutable std::vector<float> base_rows_;  // of one group
  mutable std::vector<float> sum_;
};

}  // namespace espalier::embedding
