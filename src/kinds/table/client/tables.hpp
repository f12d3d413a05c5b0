// SPDX-License-Identifier: Apache-2.0
// Interface behind Table and Query: tables of this process (embedded_tables.hpp) or of a node
// (remote_tables.hpp), over rows and pipelines in bytes. Expressions, merging and values are
// implemented above it, independently of where the table lies.
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

/// For a malformed answer.
[[nodiscard]] inline std::unexpected<TableError> refuse_nonsense(std::string words) {
  return refuse_table({Code::corrupt, 0, 0}, std::move(words));
}

/// Nullopt: a valid name of a table.
[[nodiscard]] std::optional<TableError> wrong_with_name(std::string_view name);

/// A table at one moment.
struct TableInfo {
  std::string name;
  std::uint32_t number = 0;  ///< unique while its store lives
  table::Schema schema;
  wire::TableFacts facts{};
  std::optional<table::SaltBytes> salt;    ///< of its key, where its rows are encrypted
  std::optional<Durability> durability{};  ///< only in lists, from nodes that report it
};

/// Parses the description of a table, facts and a schema, from any bytes. Nullopt: malformed.
[[nodiscard]] std::optional<TableInfo> read_info(std::string_view name, std::uint64_t number,
                                                 std::string_view description);

/// The error in words, also if the node's refusal has none.
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

/// Keys of users for a run; they live until it has begun.
struct UserKeys {
  const table::KeyBytes* table = nullptr;   ///< where the pipeline decrypts
  const table::KeyBytes* result = nullptr;  ///< where it encrypts
};

/// Limits and options of a run.
struct RunLimits {
  std::uint64_t deadline_ns = std::numeric_limits<std::uint64_t>::max();  ///< monotonic
  std::stop_token stop{};
  /// The run ends before the call that begins it returns, so it needs no connection of its own.
  bool within_call = false;
  /// The node may write rows into memory here, if supported; otherwise they come in chunks.
  bool into_buffers = true;
  UserKeys keys{};

  /// The limit that was reached, if any.
  [[nodiscard]] std::optional<TableError> reached() const;
};

/// Rows of a table by number; numbers beyond its end yield none.
struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
};

/// A running pipeline, or a table being read, whose rows are pulled. Destroying it ends it.
class TableRun : public Interface {
 public:
  /// Whole rows of the result, aligned to 8 and valid until the next call; empty: the end. Errors:
  /// as RowStream::next(). Requires: it has not ended, by error or by itself.
  virtual TableResult<std::span<const std::byte>> next() = 0;
  /// Ends it, if it has not ended. Cost: on a node, waits for its answer, a second at most.
  virtual void end() = 0;
  /// Complete once it has ended.
  [[nodiscard]] virtual wire::QueryNumbers numbers() const = 0;
  /// Whether those rows lie where a node can write: then read each byte once, and use that copy.
  [[nodiscard]] virtual bool may_change() const { return false; }
  /// Bytes of rows that the node wrote into memory here.
  [[nodiscard]] virtual std::uint64_t buffer_bytes() const { return 0; }
};

/// A pipeline kept beside its table while this lives.
class KeptPipeline : public Interface {};

class TableImpl : public Interface {
 public:
  /// Maximum bytes of rows of one append.
  static constexpr std::size_t kAppendBytesMax = wire::kMessageBytesMax - wire::kRequestHeaderBytes;
  /// Takes whole rows of a result, aligned to 8, which no other thread changes; false: no more are
  /// wanted.
  using RowSink = std::function<bool(std::span<const std::byte> rows)>;

  TableImpl(std::string name, table::Schema schema, std::optional<table::SaltBytes> salt = {});
  /// The implementation of a handle, and a handle of an implementation.
  static const std::shared_ptr<TableImpl>& of(const Table& table) { return table.impl_; }
  static Table handle(std::shared_ptr<TableImpl> impl) { return Table(std::move(impl)); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Schema& public_schema() const { return schema_; }
  [[nodiscard]] const table::Schema& schema() const;

  /// The salt of its key, if its rows are encrypted.
  [[nodiscard]] const std::optional<table::SaltBytes>& salt() const { return salt_; }
  /// Sets the key of its rows, and its permissions, before it is shared. Errors: invalid_argument
  /// (its rows are plain).
  TableResult<void> use(const TableOptions& options);
  /// The cipher of its rows; nullopt if they are plain. Errors: invalid_argument (it has no key),
  /// unsupported (no libcrypto), system.
  [[nodiscard]] TableResult<std::optional<table::CtrCipher>> cipher() const;
  /// The keys to send with a run: the result's and the table's own. Errors: invalid_argument (it
  /// has no key, or keys would travel in clear).
  [[nodiscard]] TableResult<UserKeys> keys_of_run(const TableKey* result) const;
  /// Whether its transport could be read by others.
  [[nodiscard]] virtual bool is_far() const { return false; }

  /// Errors: not_found, dropped, connection_lost; of all calls.
  virtual TableResult<wire::TableFacts> facts() = 0;
  /// Appends whole rows, all or none; returns the number of the first. Errors: out_of_memory,
  /// invalid_argument (wrong rows, named in words). Requires: they are aligned to 8.
  virtual TableResult<std::uint64_t> append(std::span<const std::byte> rows) = 0;
  /// The same for an encrypted table: reserves slots, which waits while another client has some,
  /// and encrypts the rows in place with the table's cipher. Errors: the same, busy. Requires: it
  /// has a salt. After an error the rows are unspecified.
  virtual TableResult<std::uint64_t> append_encrypted(std::span<std::byte> rows,
                                                      table::CtrCipher& cipher) = 0;
  /// Appends rows with that cipher, or without one.
  TableResult<std::uint64_t> append_with(std::optional<table::CtrCipher>& cipher,
                                         std::span<std::byte> rows);
  /// Starts a pipeline. Keys travel unencrypted; rows of an encrypted result are decrypted here.
  /// Errors, here or later: see TableRun; unsupported (no libcrypto), system (no memory may be
  /// locked for keys). Requires: its result has rows of this size.
  virtual TableResult<std::unique_ptr<TableRun>> begin(std::span<const std::byte> pipeline,
                                                       std::size_t result_row_bytes,
                                                       const RunLimits& limits) = 0;
  /// Keeps a pipeline, to run it again with other constants. Errors: not_found, dropped,
  /// connection_lost; invalid_argument, in words; too_many_participants (a session keeps 256).
  virtual TableResult<std::unique_ptr<KeptPipeline>> keep(std::span<const std::byte> pipeline) = 0;
  /// As begin(), for a pipeline kept by this table, with constants of the same types.
  virtual TableResult<std::unique_ptr<TableRun>> begin_kept(KeptPipeline& kept,
                                                            const table::RunConstants& constants,
                                                            std::size_t result_row_bytes,
                                                            const RunLimits& limits) = 0;
  /// Starts to read the current rows, unprocessed; those of an encrypted table are decrypted here,
  /// and no key travels. Errors, here or later: see TableRun; those of cipher().
  TableResult<std::unique_ptr<TableRun>> read(const RowRange& range, const RunLimits& limits);
  /// Runs a pipeline to its end, or until the sink wants no more.
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
