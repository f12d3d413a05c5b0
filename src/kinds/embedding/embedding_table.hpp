// SPDX-License-Identifier: Apache-2.0
// An embedding table: rows of numbers of one size, addressed by their number. Reductions fold bags
// of rows to one row each (reducer.hpp) [RAMBDA §IV-C].
//
//   header 32 KiB   identity, row count | page list --> pages of 2 MiB
//
// format.hpp has the bytes.
//
// Invariants
// 1. Rows below rows() are there, whole, whatever bytes they have: an append writes behind them and
//    publishes all of its rows by one store with release order.
// 2. An append that fails leaves no page, no entry and no visible row.
// 3. A counted row changes only under the lock of replacements, between two steps of its page's
//    sequence (a seqlock): a reader that finds it even and unchanged has read whole rows.
// 4. A page is a buffer of a class of its own, and stays in place until the table is destroyed. So
//    does a page list that was replaced.
// 5. The page list moves under both locks. An old list stays valid except for the sequences, so a
//    reader that relies on sequences checks once more which list is the newest.
// 6. Before a row of a group is replaced, the sums of its group become unreadable, until they were
//    computed again (memo.hpp). That holds for groups that are being made, too.
// 7. Records are handed over under the lock that orders them: that of appends before rows are
//    counted, that of replacements before a sequence is even again. Where they have to be durable
//    first, what they tell waits, and is counted or stored where readers see it by who raises the
//    mark of what is durable: appends and replacements in the order of their records
//    (embedding_waiting.cpp). The sums of a row's group are not read from then on until another
//    thread has computed them.
// 8. Records of groups are handed over one behind the other, the last one before the groups are
//    those of the table.
//
// Thread: any. Appends wait for each other, and replacements for each other; reads do not wait,
// unless replacements of the same page come too often (reducer.hpp).
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

/// The statistics of one reduction.
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
  /// Frees all memory.
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

  /// Appends rows in the table's format, all or none; returns the number of the first. Cost: memory
  /// for new pages; then a copy, for which other appends wait.
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

  /// Obsolete sums of groups wait there until no remote reader can be reading them, and are freed
  /// in steps if other threads do that; null: they are freed with their last reader.
  void give_back_through(store::DroppedObjects* waiting) { waiting_ = waiting; }
  /// The sums that may be read now, each subject to its page's sequence; null: there are no groups.
  /// grouping.hpp makes groups. Appended rows have none.
  [[nodiscard]] std::shared_ptr<const Memo> memo() const;

  /// Whether a replacement may have sums to compute: of present groups, or of those being made.
  [[nodiscard]] bool may_have_sums() const {
    return grouping_.load(std::memory_order_acquire) || has_groups_.load(std::memory_order_acquire);
  }

  /// Rows that a holder of the table may read.
  [[nodiscard]] std::uint64_t rows() const;
  /// The same, and those whose records are not durable yet.
  [[nodiscard]] std::uint64_t all_rows() const { return all_rows_.load(); }
  [[nodiscard]] std::uint64_t pages() const;
  /// The newest page list.
  [[nodiscard]] PageList page_list() const {
    return {list_.load(std::memory_order_acquire), memory_};
  }
  /// Whether a page list is still the newest.
  [[nodiscard]] bool is_newest(const PageList& list) const {
    return list_.load(std::memory_order_relaxed) == list.entries();
  }
  using HeldRows = std::pair<std::unique_lock<std::mutex>, std::unique_lock<std::mutex>>;
  /// Blocks replacements. For readers that meet too many of them.
  [[nodiscard]] HeldRows hold_replacements() const;
  /// Blocks stores of rows; replacements may still wait for their records. For a short time.
  [[nodiscard]] std::unique_lock<std::mutex> hold_stores() const {
    return std::unique_lock(stores_mutex_);
  }
  /// Computes some sums of groups whose rows were stored when their records were durable, unless
  /// another thread does. For readers of groups. Cost: a load; then 16 KiB of sums.
  void help_with_sums() const;
  /// The violations in the sums of groups. Requires: replacements are blocked by the first of their
  /// locks. Cost: all sums, those first that were not computed again yet.
  [[nodiscard]] std::vector<std::string> faults_of_groups() const;
  /// Blocks appends, too. For an audit.
  [[nodiscard]] std::scoped_lock<std::mutex, std::mutex> hold_writes() const {
    return std::scoped_lock(appends_mutex_, replacements_mutex_);
  }
  void count(const ReductionCounts& counts) const;

  // For copies (docs/design/checkpoints.md).
  /// Counts of appended and replaced rows whose records were handed over, or are just being: at
  /// least as many as were handed over before the call.
  struct Recorded {
    std::uint64_t rows = 0;
    std::uint64_t replacements = 0;
    std::uint64_t groupings = 0;
  };
  [[nodiscard]] Recorded recorded() const {
    return {recorded_rows_.load(), recorded_replacements_.load(), recorded_groupings_.load()};
  }
  /// Whether readers see the changes of these records, or the table was dropped.
  [[nodiscard]] bool shows(const Recorded& recorded) const {
    return dropped() ||
           (rows() >= recorded.rows && rows_replaced_.load() >= recorded.replacements &&
            shown_groupings_.load() >= recorded.groupings);
  }
  /// Groups of the records so far, during recovery (apply_redo.hpp).
  [[nodiscard]] std::unique_ptr<GroupLists>& told_groups() { return told_groups_; }
  /// Copies rows, from this one on, word by word; one that is being replaced may be torn. Requires:
  /// whole rows, which are there.
  void copy_rows(std::uint64_t first, std::span<std::byte> to) const;
  /// Whether its changes must be durable before readers see them.
  [[nodiscard]] bool waits_for_records() const { return mark_ != nullptr; }
  void record_to(catalog::RedoSink* sink) override;

  [[nodiscard]] EmbeddingNumbers all_numbers() const;
  /// From now on calls fail with not_found, and remote readers find a dead header.
  void set_dropped() override;
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_dropped() const override { return dropped(); }
  [[nodiscard]] bool may_be_renamed() const override { return true; }
  /// From now on calls by a former name fail with not_found, those of remote readers too. Cost:
  /// waits for an append and a replacement in flight.
  void set_renamed(std::string& name, std::uint32_t rename) noexcept override;
  /// The number of the rename by which it has its name; 0: its creation.
  [[nodiscard]] std::uint32_t rename() const { return rename_.load(std::memory_order_acquire); }
  /// Whether it still has the name by which it was found; `named`: 0, or 1 more than the renames
  /// that there were before. Writers must check under their lock, which a rename takes.
  [[nodiscard]] bool has_name(std::uint32_t named) const { return named == 0 || rename() < named; }
  [[nodiscard]] std::uint64_t memory_bytes() const override { return all_numbers().memory_bytes; }
  void repack_spares() override {}
  /// A step frees a page.
  bool free_some(std::uint32_t steps) override;
  [[nodiscard]] std::uint64_t freed_bytes() const override;
  /// EmbeddingShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

  [[nodiscard]] memory::BufferPool& pool() const { return pool_; }
  [[nodiscard]] std::uint64_t header_offset() const { return header_offset_; }
  /// Its location for remote readers.
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
  /// Returns with the lock of appends held if there is no error.
  Result<Need> reserve_and_lock(std::uint64_t rows, std::uint32_t named, Growth& growth,
                                std::unique_lock<std::mutex>& lock);
  void use(Growth& growth, const Need& need);
  void move_list(std::uint64_t offset);
  [[nodiscard]] std::uint64_t new_page(std::uint64_t offset, std::uint64_t page) const;
  void fill(std::uint64_t first_row, std::span<const std::byte> rows);
  [[nodiscard]] std::byte* place_of(std::uint64_t row) const;
  void store_row(std::uint64_t row, std::span<const std::byte> bytes);
  [[nodiscard]] std::unique_lock<std::mutex> lock_replacements() const;

  // Changes that wait for their records (embedding_waiting.cpp).
  [[nodiscard]] bool reserve_waiting_rows() noexcept;
  void show_rows(std::uint64_t rows, catalog::RedoRoom& room) noexcept;
  Result<void> replace_when_durable(catalog::RedoRoom& room, std::uint64_t row,
                                    std::span<const std::byte> bytes);
  void forget_waiting() noexcept;
  void release_waiting() noexcept;
  void store_waiting(std::uint32_t stored) noexcept;
  bool release_durable() noexcept override;
  /// Requires: replacements are blocked, or come from this thread.
  [[nodiscard]] RowsAtRest rows_at_rest() const;

  // For the grouping in progress (grouping.hpp), which calls these.
  bool begin_grouping();  // false: there is one
  void end_grouping();
  [[nodiscard]] std::shared_ptr<Memo> new_memo(std::uint64_t rows, const MemoNumbering& numbering);
  [[nodiscard]] std::uint64_t free_bytes() const;
  void count_grouping(std::uint64_t bytes);
  Result<void> begin_sums(std::shared_ptr<Memo> memo);
  /// Replacements wait meanwhile; returns whether there is more to do.
  Result<bool> compute_sums();
  void begin_group_records();
  /// Replaces the present groups by the new ones, or none; hands over its last record.
  Result<void> show_groups(catalog::RedoRoom& room);
  [[nodiscard]] std::shared_ptr<Memo> exchange_memo(std::shared_ptr<Memo> memo);
  void let_replacements_go_on() const;

  // Steps of a row's replacement: before it; after it is stored; after its sums are computed. The
  // first and the last require the lock of stores, the others that of replacements.
  template <class Do>
  void for_groups_of(std::uint32_t row, const Do& act) const;
  /// Returns whether there are sums with this row.
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
  mutable std::mutex stores_mutex_;  // taken last; guards stores of rows, and waiting changes
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
  std::vector<WaitingRows> waiting_rows_;  // counted once a record is durable
  // Likewise; the first ones were stored, and the sums of their groups not yet.
  mutable std::deque<WaitingReplacement> waiting_stores_;
  mutable std::atomic<std::uint32_t> stores_without_sums_{0};  // changes under the lock of stores
  std::atomic<std::uint64_t> all_rows_{0};                     // counted or not
  std::atomic<std::uint64_t> recorded_rows_{0};
  std::atomic<std::uint64_t> recorded_replacements_{0};
  std::atomic<std::uint64_t> recorded_groupings_{0};
  std::atomic<std::uint64_t> shown_groupings_{0};  // or given up
  std::atomic<std::uint64_t> own_list_{0};         // offset of a page list of its own; 0: none

  // The number of the last grouping that was begun. It starts at random, so that ids renumbered for
  // another table, or before a restart, are not taken for those of this one.
  std::atomic<std::uint32_t> groupings_;
  store::DroppedObjects* waiting_ = nullptr;
  mutable std::mutex memo_mutex_;  // the last one; guards that memo_ changes, under those of
  std::shared_ptr<Memo> memo_;     // replacements and stores, too
  std::atomic<bool> has_groups_{false};
  std::shared_ptr<Memo> pending_;      // its sums are being computed; guarded by these two
  std::atomic<bool> grouping_{false};  // one is in progress: with so many groups, of which so many
  std::atomic<std::uint64_t> grouping_groups_{0};  // have their sums
  std::atomic<std::uint64_t> grouping_computed_{0};
  std::atomic<std::uint64_t> grouping_bytes_{0};

  std::unique_ptr<GroupLists> told_groups_;

  std::uint64_t freed_pages_ = 0;  // by the thread that frees it
  std::uint64_t freed_bytes_ = 0;
  mutable std::atomic<std::uint64_t> reductions_{0};
  mutable std::atomic<std::uint64_t> rows_gathered_{0};
  mutable std::atomic<std::uint64_t> sums_gathered_{0};
  mutable std::atomic<std::uint64_t> rows_saved_{0};
  mutable std::atomic<std::uint64_t> rereads_{0};
  std::atomic<std::uint64_t> rows_replaced_{0};
};

/// Makes a table with a name, in the catalogue of a store or one without. In a store, after the
/// table was dropped and its last holder has released it, its memory waits for remote readers.
/// Errors: those of Catalog::create; invalid_argument (no such shape), out_of_memory; those of
/// tree::agreed_durability().
Result<std::shared_ptr<EmbeddingTable>> create_embedding_table(
    catalog::Catalog& catalog, memory::BufferPool& pool, std::string_view name,
    const EmbeddingShape& shape, std::optional<Durability> asked = {});
/// Recreates a table from the record of its creation; null: there is nothing to create
/// (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<EmbeddingTable>> restore_embedding_table(
    catalog::Catalog& catalog, memory::BufferPool& pool, const catalog::CreatedObject& created);

}  // namespace espalier::embedding
