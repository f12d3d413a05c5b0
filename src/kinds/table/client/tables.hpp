// SPDX-License-Identifier: Apache-2.0
// What stands behind Table and Query: tables of this process (embedded_tables.hpp) or of a node
// (remote_tables.hpp), over rows and pipelines in bytes. What follows from these alone, whoever
// keeps the table, is done above: expressions, merging, values.
//
// Thread: any, but for a run: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/interface.hpp"
#include "espalier/table.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/key_bytes.hpp"
#include "kinds/table/schema.hpp"
#include "wire/message.hpp"

namespace espalier::channel {
class Channel;
}
namespace espalier::table {
class CtrCipher;
struct RunConstants;
}  // namespace espalier::table

namespace espalier::client {

[[nodiscard]] inline std::unexpected<TableError> refuse_table(Error error, std::string words = {}) {
  return std::unexpected(TableError{error, std::move(words)});
}

/// Of an answer that makes no sense.
[[nodiscard]] inline std::unexpected<TableError> refuse_nonsense(std::string words) {
  return refuse_table({Code::corrupt, 0, 0}, std::move(words));
}

/// Nothing: a table may have this name.
[[nodiscard]] std::optional<TableError> wrong_with_name(std::string_view name);

/// A table as it was at one moment.
struct TableInfo {
  std::string name;
  std::uint32_t number = 0;  ///< of this table alone, for as long as its store is there
  table::Schema schema;
  wire::TableFacts facts{};
  std::optional<table::SaltBytes> salt;    ///< of its key, where its rows are encrypted
  std::optional<Durability> durability{};  ///< of one that was listed, by a node that says so
};

/// Reads the description of a table, facts and a schema, from any bytes. None: it is no such.
[[nodiscard]] std::optional<TableInfo> read_info(std::string_view name, std::uint64_t number,
                                                 std::string_view description);

/// In words, where a node that refuses has none.
template <class T, class E>
TableResult<T> in_words(std::expected<T, E> reply) {
  if (reply) return reply;
  TableError refused(reply.error());
  if (refused.error.code == Code::unsupported && refused.words.empty()) {
    refused.words = "this node knows no tables: it is an older one";
  }
  return std::unexpected(std::move(refused));
}

inline constexpr std::string_view kWhatKeysNeed =
    "keys need libcrypto, and memory that may be locked (RLIMIT_MEMLOCK)";

/// Keys of users that a run takes along; they live until it has begun.
struct UserKeys {
  const table::KeyBytes* table = nullptr;   ///< where the pipeline decrypts
  const table::KeyBytes* result = nullptr;  ///< where it encrypts
};

/// What a run is told besides its pipeline.
struct RunLimits {
  std::uint64_t deadline_ns = std::numeric_limits<std::uint64_t>::max();  ///< monotonic
  std::stop_token stop{};
  /// It ends before the call that begins it returns, so it needs no connection of its own.
  bool within_call = false;
  /// Rows may be written into memory here, where the node can; else they come by chunks.
  bool into_buffers = true;
  UserKeys keys{};

  /// Why it is to end now, if it is.
  [[nodiscard]] std::optional<TableError> reached() const;
};

/// Rows of a table by number; those behind its end are none.
struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
};

/// A pipeline that runs, or a table that is read, whose rows are pulled. It ends with this.
class TableRun : public Interface {
 public:
  /// Rows of the result, whole ones, aligned to 8 and there until the next call; none: the end.
  /// Errors: as RowStream::next(). Requires: it has not ended, by error or by itself.
  virtual TableResult<std::span<const std::byte>> next() = 0;
  /// Ends it, if it has not ended. Cost: on a node, waits for its answer, a second at most.
  virtual void end() = 0;
  /// Complete once it has ended.
  [[nodiscard]] virtual wire::QueryNumbers numbers() const = 0;
  /// Whether those rows lie where a node can write: then each byte of them is to be read once, and
  /// what was found there to be used.
  [[nodiscard]] virtual bool may_change() const { return false; }
  /// Bytes of rows that came in memory which the node wrote.
  [[nodiscard]] virtual std::uint64_t buffer_bytes() const { return 0; }
};

/// A pipeline that is kept beside its table for as long as this lives.
class KeptPipeline : public Interface {};

class TableImpl : public Interface {
 public:
  /// Bytes of rows that one append may have.
  static constexpr std::size_t kAppendBytesMax = wire::kMessageBytesMax - wire::kRequestHeaderBytes;
  /// Takes rows of a result, whole ones, aligned to 8, which nobody else changes; false: no more
  /// are wanted.
  using RowSink = std::function<bool(std::span<const std::byte> rows)>;

  TableImpl(std::string name, table::Schema schema, std::optional<table::SaltBytes> salt = {});
  /// What stands behind a handle, and a handle of it.
  static const std::shared_ptr<TableImpl>& of(const Table& table) { return table.impl_; }
  static Table handle(std::shared_ptr<TableImpl> impl) { return Table(std::move(impl)); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Schema& public_schema() const { return schema_; }
  [[nodiscard]] const table::Schema& schema() const;

  /// Of its key, where its rows are encrypted.
  [[nodiscard]] const std::optional<table::SaltBytes>& salt() const { return salt_; }
  /// Takes the key of its rows, and what may be done with it, before it is shared.
  /// Errors: invalid_argument (its rows are plain).
  TableResult<void> use(const TableOptions& options);
  /// What encrypts and decrypts its rows; none, where they are plain.
  /// Errors: invalid_argument (it has no key), unsupported (no libcrypto), system.
  [[nodiscard]] TableResult<std::optional<table::CtrCipher>> cipher() const;
  /// The keys that a run takes along, that of its result beside the table's own.
  /// Errors: invalid_argument (it has no key, or keys would travel in clear).
  [[nodiscard]] TableResult<UserKeys> keys_of_run(const TableKey* result) const;
  /// Whether others on the way to its memory could read what travels.
  [[nodiscard]] virtual bool is_far() const { return false; }

  /// Errors: not_found, dropped, connection_lost; of all calls.
  virtual TableResult<wire::TableFacts> facts() = 0;
  /// Appends whole rows, all or none; returns the number of the first. Errors: out_of_memory,
  /// invalid_argument (wrong rows, named in words). Requires: they are aligned to 8.
  virtual TableResult<std::uint64_t> append(std::span<const std::byte> rows) = 0;
  /// The same for an encrypted table, whose rows it encrypts in place with the table's cipher once
  /// slots are reserved for them, which waits while another client has some.
  /// Errors: the same, busy. Requires: it has a salt. After an error the rows are anything.
  virtual TableResult<std::uint64_t> append_encrypted(std::span<std::byte> rows,
                                                      table::CtrCipher& cipher) = 0;
  /// Appends rows with that cipher, or without one.
  TableResult<std::uint64_t> append_with(std::optional<table::CtrCipher>& cipher,
                                         std::span<std::byte> rows);
  /// Begins to run a pipeline. Keys travel as they are; rows of an encrypted result are decrypted
  /// here. Errors, here or later: see TableRun; unsupported (no libcrypto), system (no memory may
  /// be locked for keys).
  /// Requires: its result has rows of this size.
  virtual TableResult<std::unique_ptr<TableRun>> begin(std::span<const std::byte> pipeline,
                                                       std::size_t result_row_bytes,
                                                       const RunLimits& limits) = 0;
  /// Keeps a pipeline, to run it again with other constants. Errors: not_found, dropped,
  /// connection_lost; invalid_argument, in words; too_many_participants (a session keeps 256).
  virtual TableResult<std::unique_ptr<KeptPipeline>> keep(std::span<const std::byte> pipeline) = 0;
  /// As begin(), of one that this table keeps, with constants of the same types.
  virtual TableResult<std::unique_ptr<TableRun>> begin_kept(KeptPipeline& kept,
                                                            const table::RunConstants& constants,
                                                            std::size_t result_row_bytes,
                                                            const RunLimits& limits) = 0;
  /// Begins to read rows as they lie, those that the table has now; of an encrypted table they are
  /// decrypted here, and no key travels. Errors, here or later: see TableRun; those of cipher().
  TableResult<std::unique_ptr<TableRun>> read(const RowRange& range, const RunLimits& limits);
  /// Runs one to its end, or until the sink wants no more.
  TableResult<wire::QueryNumbers> run(std::span<const std::byte> pipeline,
                                      std::size_t result_row_bytes, const RowSink& sink,
                                      const UserKeys& keys = {});

 protected:
  /// As read(), with what decrypts the rows.
  virtual TableResult<std::unique_ptr<TableRun>> begin_read(const RowRange& range,
                                                            std::optional<table::CtrCipher> cipher,
                                                            const RunLimits& limits) = 0;

 private:
  [[nodiscard]] std::optional<TableError> wrong_without_key() const;

  const std::string name_;
  const Schema schema_;
  const std::optional<table::SaltBytes> salt_;
  TableOptions options_;
};

/// The tables of a store. Returned tables are never null. Errors: see Store.
class TablesImpl : public Interface {
 public:
  struct MadeWith {
    bool encrypted = false;
    std::optional<Durability> durability{};
  };
  virtual TableResult<std::shared_ptr<TableImpl>> create(std::string_view name,
                                                         const table::Schema& schema,
                                                         const MadeWith& with) = 0;
  virtual TableResult<std::shared_ptr<TableImpl>> open(std::string_view name) = 0;
  TableResult<void> drop(std::string_view name);
  TableResult<std::vector<TableInfo>> list();

 protected:
  explicit TablesImpl(std::shared_ptr<channel::Channel> channel) : channel_(std::move(channel)) {}

 private:
  const std::shared_ptr<channel::Channel> channel_;
};

}  // namespace espalier::client
