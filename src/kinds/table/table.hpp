// SPDX-License-Identifier: Apache-2.0
// One table: rows in pages of 2 MiB, to which rows are appended and which is dropped whole.
//
//   header 64 KiB   identity, row count | schema | directory --> parts of the page list --> pages
//
// kinds/table/format/table.hpp has the bytes, which readers from elsewhere follow too.
//
// Invariants
// 1. Rows below rows() are complete, canonical (kinds/table/row_check.hpp), and never change: an
//    append writes behind them and counts all of its rows by one store with release order, once
//    their record is durable where it has to be.
// 2. An append that fails leaves no page, no entry and no visible row.
// 3. Each word of a source row is read once, then checked where it was copied to: its owner may
//    write it meanwhile.
// 4. A page is a buffer of a class of its own: its extent never holds anything but pages of rows.
//
// Thread: any. Appends wait for each other; reading waits for nothing (kinds/table/snapshot.hpp).
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

/// Numbers of one table, each right but not all at one instant.
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
  /// How many rows are wrong; the first Table::kWrongRowsNamed of them, in order.
  std::uint64_t wrong_rows = 0;
  std::vector<WrongRow> wrong;
};

/// In words for people: which rows are wrong, the first ten by their columns, or what was not
/// reserved; empty where the error itself says it.
[[nodiscard]] std::string describe(const AppendError& error, const Schema& schema);

/// How a table is made.
struct TableOptions {
  /// Its rows come encrypted, into slots that were reserved for them.
  bool encrypted = false;
  /// Of an encrypted table alone. create_table() draws it where there is none.
  std::optional<SaltBytes> salt{};
  std::optional<Durability> durability{};  ///< nothing: what its store promises
};

/// Slots for rows to come, in order; each is reserved once for ever.
struct Reservation {
  std::uint64_t number = 0;
  std::vector<wire::ReservedSlots> slots;
};

class Table final : public catalog::Object, private base::DurableMark::Waiter {
 public:
  static constexpr ObjectKind kKind = ObjectKind::table;
  /// A reservation that is not filled for so long gives way to the next one.
  static constexpr std::uint64_t kReservationNs = 10'000'000'000;
  static constexpr std::size_t kWrongRowsNamed = 100;

  /// Makes an empty table. Requires: `id` is never used again in this pool; the pool outlives the
  /// table; an encrypted table has a salt, and no other. Errors: out_of_memory.
  static Result<std::unique_ptr<Table>> create(memory::BufferPool& pool, std::uint32_t id,
                                               std::string name, Schema schema,
                                               TableOptions options = {});
  /// Gives all memory back.
  ~Table() override;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  [[nodiscard]] const Schema& schema() const { return schema_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }

  /// Appends rows that lie one behind the other, all or none, also rows that others can write
  /// meanwhile. Returns the number of the first of them.
  /// Cost: one copy; other appends wait while it lasts; memory for new pages first. AppendRun does
  /// the same in steps.
  /// Errors: see AppendError; unsupported: the table is encrypted. Requires: whole rows, aligned
  /// to 8.
  std::expected<std::uint64_t, AppendError> append(std::span<const std::byte> rows);
  /// The same for so many rows of a source.
  std::expected<std::uint64_t, AppendError> append(const AppendSource& source, std::uint64_t rows);

  /// Whether its rows are encrypted, with a key of this salt.
  [[nodiscard]] bool encrypted() const { return encrypted_; }
  [[nodiscard]] const SaltBytes& salt() const { return salt_; }

  /// Reserves slots for rows that are encrypted for them. There is one reservation at a time: it
  /// ends by an append that fills it, or by the next one once its reserver is gone or it is
  /// `kReservationNs` old. What it leaves empty is never given again: the page ends there, and
  /// numbers of pages are given once.
  /// Errors: busy (another reservation, or an append), dropped, out_of_memory, unsupported (not
  /// encrypted), invalid_argument (no rows), those of the table's sink.
  Result<Reservation> reserve_slots(
      std::uint64_t rows, std::uint64_t now_ns,
      const std::shared_ptr<const Reserver>& reserver = process_reserver());
  /// Fills a reservation of this process with as many rows as it has slots, which nobody can check;
  /// another number of rows gives it up. Returns the number of the first row. AppendRun does the
  /// same for any reserver, from any source.
  /// Errors: not_found (it has ended, or is another's), invalid_argument, dropped, those of the
  /// table's sink (and the reservation has ended: no other rows may go to its slots). Requires: as
  /// append().
  Result<std::uint64_t> append_reserved(std::uint64_t reservation, std::span<const std::byte> rows);

  /// From now on appends, and readers at their next page, get `dropped`, and readers from elsewhere
  /// find a dead header.
  void set_dropped() override;
  void record_to(catalog::RedoSink* sink) override;
  /// Slots may have been given that no record tells of: goes on far above them.
  Result<void> go_on_after_loss() override;
  /// Of an encrypted table: which slots were given by now, for a copy of it.
  struct GivenSlots {
    std::uint64_t next_cipher_page = 0;  ///< all below it
    bool tail_used = false;              ///< all of the last page that has rows
  };
  /// Nothing: an append has its turn.
  [[nodiscard]] std::optional<GivenSlots> given_slots();
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }

  /// Visible rows. What lies below may be read by whoever holds the table.
  [[nodiscard]] std::uint64_t rows() const;
  /// Rows of which records were handed over, or are just being: at least as many as those that were
  /// handed over before this is asked tell of. All of them will be visible, unless the log fails.
  [[nodiscard]] std::uint64_t recorded_rows() const { return recorded_rows_.load(); }
  /// Entries of the page list. May be more than rows() needed a moment ago.
  [[nodiscard]] std::uint64_t pages() const;
  /// Requires: page < pages().
  [[nodiscard]] wire::RowPageEntry page(std::uint64_t page) const;
  /// The rows of a page. Requires: `entry` is of this table.
  [[nodiscard]] const std::byte* rows_of(const wire::RowPageEntry& entry) const;
  /// Of an encrypted table: the page's number in counter blocks.
  [[nodiscard]] std::uint64_t cipher_page(const wire::RowPageEntry& entry) const;
  [[nodiscard]] TableStats stats() const;
  /// The queries of it: of whoever runs them.
  [[nodiscard]] QueryCounts& query_counts() const { return query_counts_; }
  /// wire::TableFacts and the schema.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

  /// Where readers from elsewhere begin: offset in the region.
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
  /// `sequence`: of the record of these rows; 0: they have none.
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
  AppendTurn append_turn_;            // guards what is behind the visible rows, and all below
  std::unique_ptr<Growth> reserved_;  // of the reservation that is open
  std::uint64_t reservation_ = 0;     // its number, or the last one's
  std::weak_ptr<const Reserver> reserver_;
  std::uint64_t reserved_rows_ = 0;
  std::uint64_t reserved_until_ns_ = 0;
  std::uint64_t next_cipher_page_ = 0;
  bool tail_closed_ = false;    // slots behind the visible rows of the last page were given once
  std::uint64_t all_rows_ = 0;  // those that wait for their records included
  std::atomic<std::uint64_t> recorded_rows_ = 0;

  /// So many rows are visible once the record of this sequence is durable.
  struct WaitingRows {
    std::uint64_t rows;
    std::uint64_t sequence;
  };
  base::DurableMark* mark_ = nullptr;  // null: no rows wait
  std::mutex waiting_mutex_;           // guards what follows, and what waits to be visible
  std::vector<WaitingRows> waiting_;   // in order
};

}  // namespace espalier::table
