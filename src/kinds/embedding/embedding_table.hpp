// SPDX-License-Identifier: Apache-2.0
// An embedding table: rows of numbers of one size, found by their number, of which bags are reduced
// to one row each (reducer.hpp) [RAMBDA §IV-C].
//
//   header 32 KiB   identity, row count | page list --> pages of 2 MiB
//
// format.hpp has the bytes.
//
// Invariants
// 1. Rows below rows() are there, whole, whatever bytes they have: an append writes behind them and
//    counts all of its rows by one store with release order.
// 2. An append that fails leaves no page, no entry and no visible row.
// 3. A row that is counted changes only under the lock of replacements, between two steps of its
//    page's sequence: who finds that even and unchanged has read whole rows.
// 4. A page is a buffer of a class of its own, and stays where it is until the table goes. So does
//    a page list that another one has replaced.
// 5. The page list moves under both locks. What a reader has of the old one is right but for the
//    sequences, so whoever believes these asks which list it is once more.
// 6. Before a row of a group is replaced the sums of its group may no longer be read, and only when
//    they were computed again may they be (memo.hpp). That holds for groups that are being made,
//    too.
// 7. Records are handed over under the lock that orders them: that of appends before rows are
//    counted, that of replacements before a sequence is even again. Where they have to be durable
//    first, what they tell waits in their order, and is counted or stored where readers see it by
//    who raises the mark of what is durable (embedding_waiting.cpp). The sums of a row's group are
//    not read from then on until another thread has computed them.
// 8. Records of groups are handed over one behind the other, the last one before the groups are
//    those of the table.
//
// Thread: any. Appends wait for each other, and replacements for each other; reading waits for
// nothing, unless replacements of the same page come too often (reducer.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durable_mark.hpp"
#include "catalog/object.hpp"
#include "espalier/error.hpp"
#include "kinds/embedding/format.hpp"
#include "kinds/embedding/row_place.hpp"
#include "store/stored_object.hpp"

namespace espalier::store {
class DroppedObjects;
}
namespace espalier::catalog {
class Catalog;
class RedoRoom;
struct CreatedObject;
}  // namespace espalier::catalog
namespace espalier::memory {
class BufferPool;
}

namespace espalier::embedding {

class Grouping;
class Memo;
class MemoNumbering;
struct GroupLists;
struct RowsAtRest;

/// What one reduction adds to the numbers of its table.
struct ReductionCounts {
  std::uint64_t bags = 0;
  std::uint64_t ids = 0;
  std::uint64_t rows = 0;  // that were read for them, sums among them
  std::uint64_t sums = 0;
  std::uint64_t rereads = 0;
};

class EmbeddingTable final : public catalog::Object,
                             public store::StoredObject,
                             private base::DurableMark::Waiter {
 public:
  static constexpr ObjectKind kKind = ObjectKind::embedding;

  /// Makes an empty table. Requires: the options are of a shape (is_shape()); `id` is never used
  /// again in this pool; the pool outlives the table. Errors: out_of_memory.
  /// `first_list_entries`: with more pages the list moves into a buffer of its own; fewer in tests.
  static Result<std::unique_ptr<EmbeddingTable>> create(
      memory::BufferPool& pool, std::uint32_t id, std::string name, const EmbeddingOptions& options,
      std::uint64_t first_list_entries = kFirstListEntries);
  /// Gives all memory back.
  ~EmbeddingTable() override;
  EmbeddingTable(const EmbeddingTable&) = delete;
  EmbeddingTable& operator=(const EmbeddingTable&) = delete;

  [[nodiscard]] std::uint32_t id() const { return id_; }
  /// Cost: a lock of its own, and a copy.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] const EmbeddingOptions& options() const { return options_; }
  [[nodiscard]] EmbeddingShape shape() const;
  [[nodiscard]] std::uint32_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] const PageDivider& divider() const { return divider_; }

  /// Appends rows as they lie in the table, all or none; returns the number of the first.
  /// Cost: memory for new pages; then a copy, for which other appends wait.
  /// Errors: not_found (it was dropped, or has another name than the one it is `named` by),
  /// invalid_argument (no row, or part of one), out_of_memory (the pool's; or the table has as many
  /// rows as can be), those of the table's sink.
  Result<std::uint64_t> append(std::span<const std::byte> rows, std::uint32_t named = 0);

  /// Replaces one row. Cost: a copy, and the sums of its group, up to 247 of them; other
  /// replacements wait meanwhile.
  /// Errors: not_found (as append()), invalid_argument (there is no such row; or not a row's
  /// bytes), those of the table's sink.
  Result<void> replace(std::uint64_t row, std::span<const std::byte> bytes,
                       std::uint32_t named = 0);

  /// Sums of groups that it has no more wait there until no reader elsewhere can be reading them,
  /// and go back in steps if others do that; null: they go back with their last reader.
  void give_back_through(store::DroppedObjects* waiting) { waiting_ = waiting; }
  /// The sums that may be read now, of which each page says itself when; null: there are no groups.
  /// grouping.hpp makes groups. Appended rows have none.
  [[nodiscard]] std::shared_ptr<const Memo> memo() const;

  /// Whether a replacement may have sums to compute: of groups that there are, or are being made.
  [[nodiscard]] bool may_have_sums() const {
    return grouping_.load(std::memory_order_acquire) || has_groups_.load(std::memory_order_acquire);
  }

  /// Rows that may be read by who holds the table.
  [[nodiscard]] std::uint64_t rows() const;
  /// The same, and those whose records are not durable yet.
  [[nodiscard]] std::uint64_t all_rows() const { return all_rows_.load(); }
  [[nodiscard]] std::uint64_t pages() const;
  /// The newest one.
  [[nodiscard]] PageList page_list() const {
    return {list_.load(std::memory_order_acquire), memory_};
  }
  /// Whether a page list is the newest still.
  [[nodiscard]] bool is_newest(const PageList& list) const {
    return list_.load(std::memory_order_relaxed) == list.entries();
  }
  using HeldRows = std::pair<std::unique_lock<std::mutex>, std::unique_lock<std::mutex>>;
  /// Keeps replacements out. For readers that meet one again and again.
  [[nodiscard]] HeldRows hold_replacements() const;
  /// Has no row stored meanwhile; replacements may wait for their records. Not for long.
  [[nodiscard]] std::unique_lock<std::mutex> hold_stores() const {
    return std::unique_lock(stores_mutex_);
  }
  /// Computes some sums of groups of which rows were stored when their records were durable, if
  /// nobody else does. For who reads by groups. Cost: a load; then 16 KiB of sums.
  void help_with_sums() const;
  /// What is wrong with the sums of groups. Requires: replacements are kept out by the first of
  /// their locks. Cost: all sums, those first that were not computed again yet.
  [[nodiscard]] std::vector<std::string> faults_of_groups() const;
  /// Keeps appends out, too. For an audit.
  [[nodiscard]] std::scoped_lock<std::mutex, std::mutex> hold_writes() const {
    return std::scoped_lock(appends_mutex_, replacements_mutex_);
  }
  void count(const ReductionCounts& counts) const;

  // For copies (docs/design/checkpoints.md).
  /// Of rows that were appended and replaced, those whose records were handed over, or are just
  /// being: at least as many as those that were handed over before this is asked.
  struct Recorded {
    std::uint64_t rows = 0;
    std::uint64_t replacements = 0;
    std::uint64_t groupings = 0;
  };
  [[nodiscard]] Recorded recorded() const {
    return {recorded_rows_.load(), recorded_replacements_.load(), recorded_groupings_.load()};
  }
  /// Whether readers see what these tell of, or the table was dropped.
  [[nodiscard]] bool shows(const Recorded& recorded) const {
    return dropped() ||
           (rows() >= recorded.rows && rows_replaced_.load() >= recorded.replacements &&
            shown_groupings_.load() >= recorded.groupings);
  }
  /// Groups of which records have told so far, while a store is made again (apply_redo.hpp).
  [[nodiscard]] std::unique_ptr<GroupLists>& told_groups() { return told_groups_; }
  /// Copies rows, from this one on, word by word; one that is being replaced may come by half.
  /// Requires: whole rows, which are there.
  void copy_rows(std::uint64_t first, std::span<std::byte> to) const;
  /// Whether what it tells readers must be durable.
  [[nodiscard]] bool waits_for_records() const { return mark_ != nullptr; }
  void record_to(catalog::RedoSink* sink) override;

  [[nodiscard]] EmbeddingNumbers all_numbers() const;
  /// From now on who asks gets not_found, and readers from elsewhere find a dead header.
  void set_dropped() override;
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_dropped() const override { return dropped(); }
  [[nodiscard]] bool may_be_renamed() const override { return true; }
  /// From now on who asks by a name that it had before gets not_found, readers elsewhere too.
  /// Cost: an append and a replacement that are under way end first.
  void set_renamed(std::string& name, std::uint32_t rename) noexcept override;
  /// The number of the rename by which it has its name; 0: of its making.
  [[nodiscard]] std::uint32_t rename() const { return rename_.load(std::memory_order_acquire); }
  /// Whether it has the name still by which it was found; `named`: 0, or 1 more than the renames
  /// that there were before. Writers must ask under their lock, which a rename takes.
  [[nodiscard]] bool has_name(std::uint32_t named) const { return named == 0 || rename() < named; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return all_numbers().memory_bytes; }
  void repack_spares() override {}
  /// A page a step.
  bool free_some(std::uint32_t steps) override;
  [[nodiscard]] std::uint64_t freed_bytes() const override;
  /// EmbeddingShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

  [[nodiscard]] memory::BufferPool& pool() const { return pool_; }
  [[nodiscard]] std::uint64_t header_offset() const { return header_offset_; }
  /// Where readers elsewhere find it.
  [[nodiscard]] EmbeddingPlace place() const;

 private:
  friend class Grouping;
  struct Need;
  struct Growth;
  EmbeddingTable(memory::BufferPool& pool, std::uint32_t id, std::string name,
                 const EmbeddingOptions& options, std::uint64_t first_list_entries);

  Result<void> open();
  [[nodiscard]] Result<Need> need_of(std::uint64_t rows, std::uint32_t named) const;
  Result<void> reserve(const Need& need, Growth& growth);
  /// Holds the lock of appends when it has gone well.
  Result<Need> reserve_and_lock(std::uint64_t rows, std::uint32_t named, Growth& growth,
                                std::unique_lock<std::mutex>& lock);
  void use(Growth& growth, const Need& need);
  void move_list(std::uint64_t offset);
  [[nodiscard]] std::uint64_t new_page(std::uint64_t offset, std::uint64_t page) const;
  void fill(std::uint64_t first_row, std::span<const std::byte> rows);
  [[nodiscard]] std::byte* place_of(std::uint64_t row) const;
  void store_row(std::uint64_t row, std::span<const std::byte> bytes);
  [[nodiscard]] std::unique_lock<std::mutex> lock_replacements() const;

  // What waits for its record (embedding_waiting.cpp).
  [[nodiscard]] bool reserve_waiting_rows() noexcept;
  void show_rows(std::uint64_t rows, std::uint64_t sequence) noexcept;
  Result<void> replace_when_durable(catalog::RedoRoom& room, std::uint64_t row,
                                    std::span<const std::byte> bytes);
  void forget_waiting() noexcept;
  void release_waiting() noexcept;
  bool release_durable() noexcept override;
  /// Requires: replacements are kept out, or come from this thread.
  [[nodiscard]] RowsAtRest rows_at_rest() const;

  // Of the grouping that is being made (grouping.hpp), which calls these.
  bool begin_grouping();  // false: there is one
  void end_grouping();
  [[nodiscard]] std::shared_ptr<Memo> new_memo(std::uint64_t rows, const MemoNumbering& numbering);
  [[nodiscard]] std::uint64_t free_bytes() const;
  void count_grouping(std::uint64_t bytes);
  Result<void> begin_sums(std::shared_ptr<Memo> memo);
  /// Replacements wait meanwhile; returns whether there are others to do.
  Result<bool> compute_sums();
  void begin_group_records();
  /// What was made, or nothing, in place of the groups that there are; hands over its last record.
  Result<void> show_groups(catalog::RedoRoom& room);
  [[nodiscard]] std::shared_ptr<Memo> exchange_memo(std::shared_ptr<Memo> memo);
  void let_replacements_go_on() const;

  // Of a row that is replaced: before; when it is there; and when its sums are. The first and the
  // last require the lock of stores, the others that of replacements.
  template <class Do>
  void for_groups_of(std::uint32_t row, const Do& act) const;
  /// Whether there are sums with this row.
  bool unmemoise(std::uint32_t row) const noexcept;
  bool compute_sums_of(std::uint32_t row, std::uint64_t& sums) const;
  void memoise(std::uint32_t row) const;
  void compute_sums_of_stores(std::uint64_t sums) const;
  [[nodiscard]] std::vector<std::string> faults_of_sums() const;

  memory::BufferPool& pool_;
  std::byte* const memory_;  // of its region
  const std::uint32_t id_;
  const EmbeddingOptions options_;
  const std::uint32_t row_bytes_;
  const PageDivider divider_;
  const std::uint64_t first_list_entries_;
  std::uint64_t header_offset_ = 0;
  std::byte* header_ = nullptr;
  std::atomic<const std::byte*> list_{nullptr};
  std::atomic<bool> dropped_{false};
  std::atomic<std::uint32_t> rename_{0};
  mutable std::mutex name_mutex_;  // taken last; guards the name
  std::string name_;

  mutable std::mutex appends_mutex_;       // taken before the other
  mutable std::mutex replacements_mutex_;  // guards sequences, and that the list stays
  mutable std::atomic<std::uint32_t> replacements_waiting_{0};
  mutable std::mutex stores_mutex_;  // taken last; guards that rows are stored, and what waits
  struct WaitingRows {
    std::uint64_t sequence;
    std::uint64_t rows;
  };
  struct WaitingReplacement {
    std::uint64_t sequence;
    std::uint64_t row;
    std::vector<std::byte> bytes;
  };
  base::DurableMark* mark_ = nullptr;      // null: nothing waits
  std::vector<WaitingRows> waiting_rows_;  // that are counted once a record is durable
  // Likewise; of the first ones the row is stored, and the sums of its groups are not.
  mutable std::deque<WaitingReplacement> waiting_stores_;
  mutable std::atomic<std::uint32_t> stores_without_sums_{0};  // changes under the lock of stores
  std::atomic<std::uint64_t> all_rows_{0};                     // counted or not
  std::atomic<std::uint64_t> recorded_rows_{0};
  std::atomic<std::uint64_t> recorded_replacements_{0};
  std::atomic<std::uint64_t> recorded_groupings_{0};
  std::atomic<std::uint64_t> shown_groupings_{0};  // or left
  std::atomic<std::uint64_t> own_list_{0};         // offset of a page list of its own; 0: none

  // The number of the last grouping that was begun. The first is a random one, so that ids which
  // were numbered for another table, or before a restart, are not taken for those of this one.
  std::atomic<std::uint32_t> groupings_;
  store::DroppedObjects* waiting_ = nullptr;
  mutable std::mutex memo_mutex_;  // the last one; guards that memo_ changes, under those of
  std::shared_ptr<Memo> memo_;     // replacements and stores, too
  std::atomic<bool> has_groups_{false};
  std::shared_ptr<Memo> pending_;      // whose sums are being computed; under these two
  std::atomic<bool> grouping_{false};  // one is being made: so many groups, and of these so many
  std::atomic<std::uint64_t> grouping_groups_{0};  // whose sums are there
  std::atomic<std::uint64_t> grouping_computed_{0};
  std::atomic<std::uint64_t> grouping_bytes_{0};

  std::unique_ptr<GroupLists> told_groups_;

  std::uint64_t freed_pages_ = 0;  // by who frees it
  std::uint64_t freed_bytes_ = 0;
  mutable std::atomic<std::uint64_t> reductions_{0};
  mutable std::atomic<std::uint64_t> rows_gathered_{0};
  mutable std::atomic<std::uint64_t> sums_gathered_{0};
  mutable std::atomic<std::uint64_t> rows_saved_{0};
  mutable std::atomic<std::uint64_t> rereads_{0};
  std::atomic<std::uint64_t> rows_replaced_{0};
};

/// Makes a table with a name, in the catalogue of a store or one without. In a store its memory
/// waits for readers elsewhere when it was dropped and its last holder has let go. Errors: those of
/// Catalog::create; invalid_argument (no such shape), out_of_memory; those of
/// tree::agreed_durability().
Result<std::shared_ptr<EmbeddingTable>> create_embedding_table(
    catalog::Catalog& catalog, memory::BufferPool& pool, std::string_view name,
    const EmbeddingShape& shape, std::optional<Durability> asked = {});
/// Makes one again that a record tells of; null: there is nothing to make (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<EmbeddingTable>> restore_embedding_table(
    catalog::Catalog& catalog, memory::BufferPool& pool, const catalog::CreatedObject& created);

}  // namespace espalier::embedding
