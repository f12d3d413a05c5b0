// SPDX-License-Identifier: Apache-2.0
// A relational table: rows in pages of 2 MiB; append-only, dropped as a whole.
//
//   header 64 KiB   identity, row count | schema | directory --> parts of the page list --> pages
//
// kinds/table/format/table.hpp has the format, which remote readers follow too.
//
// Invariants
// 1. Rows below rows() are complete, canonical (kinds/table/row_check.hpp), and immutable: an
//    append writes after them and publishes all of its rows by one store-release of the count, once
//    their record is durable, if that is required.
// 2. A failed append leaves no page, no entry and no visible row.
// 3. Each word of a source row is read once, and checked in the copy, because its owner may write
//    it concurrently.
// 4. A page is a buffer of its own size class: its extent never holds anything but pages of rows.
//
// Thread: any. Appends are serialised; readers never wait (kinds/table/snapshot.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/durable_mark.hpp"
#include "catalog/object.hpp"
#include "espalier/error.hpp"
#include "kinds/table/append_source.hpp"
#include "kinds/table/append_turn.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/key_bytes.hpp"
#include "kinds/table/query_counts.hpp"
#include "kinds/table/reserver.hpp"
#include "kinds/table/row_check.hpp"
#include "kinds/table/schema.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::catalog {
class RedoRoom;
}

namespace espalier::table {

/// Statistics of one table. Each is right, but they are not one consistent snapshot.
struct TableStats {
  std::uint64_t rows = 0;
  std::uint64_t pages = 0;
  std::uint64_t row_bytes = 0;     ///< of one row
  std::uint64_t memory_bytes = 0;  ///< pages, page list and header
};

/// Why nothing was appended.
struct AppendError {
  /// invalid_argument: see `wrong`; out_of_memory; dropped; those of the table's sink
  Error error;
  /// Number of wrong rows; the first Table::kWrongRowsNamed of them, in order.
  std::uint64_t wrong_rows = 0;
  std::vector<WrongRow> wrong;
};

/// In words for people: the wrong rows, the first ten by their columns, or the missing reservation;
/// empty where the error itself is sufficient.
[[nodiscard]] std::string describe(const AppendError& error, const Schema& schema);

/// Options of a new table.
struct TableOptions {
  /// Rows arrive encrypted, for slots reserved for them.
  bool encrypted = false;
  /// Encrypted tables only. create_table() draws it if there is none.
  std::optional<SaltBytes> salt{};
  std::optional<Durability> durability{};  ///< empty: the store's default
};

/// Consecutive slots for rows to come; each is reserved at most once, ever.
struct Reservation {
  std::uint64_t number = 0;
  std::vector<wire::ReservedSlots> slots;
};

class Table final : public catalog::Object, private base::DurableMark::Waiter {
 public:
  static constexpr ObjectKind kKind = ObjectKind::table;
  /// An unfilled reservation of this age yields to the next one.
  static constexpr std::uint64_t kReservationNs = 10'000'000'000;
  static constexpr std::size_t kWrongRowsNamed = 100;

  /// Creates an empty table. Requires: `id` is never reused in this pool; the pool outlives the
  /// table; exactly an encrypted table has a salt. Errors: out_of_memory.
  static Result<std::unique_ptr<Table>> create(memory::BufferPool& pool, std::uint32_t id,
                                               std::string name, Schema schema,
                                               TableOptions options = {});
  /// Frees all memory.
  ~Table() override;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  [[nodiscard]] const Schema& schema() const { return schema_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }

  /// Appends contiguous rows, all or none, also from memory that others write concurrently. Returns
  /// the number of the first of them.
  /// Cost: one copy, which delays other appends; memory for new pages first. AppendRun does the
  /// same in steps.
  /// Errors: see AppendError; unsupported: the table is encrypted. Requires: whole rows, aligned to
  /// 8.
  std::expected<std::uint64_t, AppendError> append(std::span<const std::byte> rows);
  /// The same for so many rows of a source.
  std::expected<std::uint64_t, AppendError> append(const AppendSource& source, std::uint64_t rows);

  /// Whether its rows are encrypted, with a key of this salt.
  [[nodiscard]] bool encrypted() const { return encrypted_; }
  [[nodiscard]] const SaltBytes& salt() const { return salt_; }

  /// Reserves slots, so that the client can encrypt rows for them. There is one reservation at a
  /// time: it ends by an append that fills it, or by the next one once its reserver is gone or it
  /// is `kReservationNs` old. Slots that it leaves empty are never reused: the page ends there, and
  /// page numbers are issued once.
  /// Errors: busy (another reservation, or an append), dropped, out_of_memory, unsupported (not
  /// encrypted), invalid_argument (no rows), those of the table's sink.
  Result<Reservation> reserve_slots(
      std::uint64_t rows, std::uint64_t now_ns,
      const std::shared_ptr<const Reserver>& reserver = process_reserver());
  /// Fills a reservation of this process with as many rows as it has slots, which the node cannot
  /// check; another number of rows abandons it. Returns the number of the first row. AppendRun does
  /// the same for any reserver, from any source.
  /// Errors: not_found (it has ended, or has another owner), invalid_argument, dropped, those of
  /// the table's sink (the reservation has ended then: no other rows may go to its slots).
  /// Requires: as append().
  Result<std::uint64_t> append_reserved(std::uint64_t reservation, std::span<const std::byte> rows);

  /// From now on appends, and readers at their next page, get `dropped`; remote readers find a dead
  /// header.
  void set_dropped() override;
  void record_to(catalog::RedoSink* sink) override;
  /// Skips far ahead, past slots that lost records may have issued.
  Result<void> go_on_after_loss() override;
  /// Issued slots of an encrypted table, for a copy of it.
  struct GivenSlots {
    std::uint64_t next_cipher_page = 0;  ///< all below were issued
    bool tail_used = false;              ///< all of the last page with rows
  };
  /// Nullopt: an append has its turn.
  [[nodiscard]] std::optional<GivenSlots> given_slots();
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }

  /// Visible rows. Any holder of the table may read rows below.
  [[nodiscard]] std::uint64_t rows() const;
  /// Rows whose records were handed over, or are about to be: at least those of all records handed
  /// over before this call. All of them become visible, unless the log fails.
  [[nodiscard]] std::uint64_t recorded_rows() const { return recorded_rows_.load(); }
  /// Entries of the page list. May be more than rows() needed a moment ago.
  [[nodiscard]] std::uint64_t pages() const;
  /// Requires: page < pages().
  [[nodiscard]] wire::RowPageEntry page(std::uint64_t page) const;
  /// The rows of a page. Requires: `entry` belongs to this table.
  [[nodiscard]] const std::byte* rows_of(const wire::RowPageEntry& entry) const;
  /// Of an encrypted table: the page's number in counter blocks.
  [[nodiscard]] std::uint64_t cipher_page(const wire::RowPageEntry& entry) const;
  [[nodiscard]] TableStats stats() const;
  /// Counters of its queries, updated by the code that runs them.
  [[nodiscard]] QueryCounts& query_counts() const { return query_counts_; }
  /// wire::TableFacts and the schema.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

  /// Offset of the header in the region, for remote readers.
  [[nodiscard]] std::uint64_t header_offset() const { return header_offset_; }
  [[nodiscard]] memory::BufferPool& pool() const { return pool_; }

 private:
  friend class AppendRun;
  friend class RedoApplier;
  struct Growth;
  Table(memory::BufferPool& pool, std::uint32_t id, std::string name, Schema schema,
        TableOptions options);

  Result<void> open();
  Result<void> reserve(std::uint64_t rows, Growth& growth);
  std::uint64_t new_page(std::uint64_t offset, std::uint64_t page, std::uint64_t first_row,
                         std::uint64_t cipher_page) const;
  /// `sequence`: of the record of these rows; 0: none.
  void publish(std::uint64_t rows, const Growth& growth, std::uint64_t sequence = 0);
  bool release_durable() noexcept override;
  void release_rows() noexcept;
  [[nodiscard]] bool reserve_waiting() noexcept;
  void give_back(const Growth& growth);
  void end_reservation();
  void record_slots(catalog::RedoRoom& room, std::uint64_t rows_before, bool tail_used);
  [[nodiscard]] std::byte* list_part(std::uint64_t part) const;

  memory::BufferPool& pool_;
  const std::uint32_t id_;
  const std::string name_;
  const Schema schema_;
  const RowCheck check_;
  std::uint64_t header_offset_ = 0;
  std::byte* header_ = nullptr;
  std::atomic<bool> dropped_{false};
  mutable QueryCounts query_counts_;
  const bool encrypted_;
  SaltBytes salt_{};
  AppendTurn append_turn_;            // guards data after the visible rows, and the members below
  std::unique_ptr<Growth> reserved_;  // of the open reservation
  std::uint64_t reservation_ = 0;     // its number, or the last one's
  std::weak_ptr<const Reserver> reserver_;
  std::uint64_t reserved_rows_ = 0;
  std::uint64_t reserved_until_ns_ = 0;
  std::uint64_t next_cipher_page_ = 0;
  bool tail_closed_ = false;    // slots after the visible rows were issued before
  std::uint64_t all_rows_ = 0;  // including rows not yet durable
  std::atomic<std::uint64_t> recorded_rows_ = 0;

  /// So many rows become visible once the record of this sequence is durable.
  struct WaitingRows {
    std::uint64_t rows;
    std::uint64_t sequence;
  };
  base::DurableMark* mark_ = nullptr;  // null: no rows wait
  std::mutex waiting_mutex_;           // guards what follows, and what waits to be visible
  std::vector<WaitingRows> waiting_;   // ascending
};

}  // namespace espalier::table
