// SPDX-License-Identifier: Apache-2.0
// The tables of a node, for a client: each call is a message through rings that the thread keeps.
//
// Thread: any. A sink must not call the same RemoteTables.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/remote.hpp"
#include "table/ctr_cipher.hpp"
#include "table/schema.hpp"
#include "wire/table_calls.hpp"

namespace espalier::client {

/// A table as a node told of it.
struct TableInfo {
  std::string name;
  std::uint32_t number = 0;  ///< of this table alone, for as long as its node runs
  table::Schema schema;
  wire::TableFacts facts{};
  std::optional<table::SaltBytes> salt;  ///< of its key, where its rows are encrypted
};

/// Keys of users that a query takes along; they live until it ends.
struct UserKeys {
  const table::KeyBytes* table = nullptr;   ///< where the pipeline decrypts
  const table::KeyBytes* result = nullptr;  ///< where it encrypts
};

template <class T>
using TableResult = std::expected<T, Refusal>;

/// A refusal as one sentence for people.
[[nodiscard]] std::string message(const Refusal& refusal);

class RemoteTables {
 public:
  /// Rows that one append should carry: large enough to be quick, small enough for any node.
  static constexpr std::size_t kAppendBytes = std::size_t{1} << 20;
  /// Takes rows of a query's result, whole ones; false: no more are wanted. The bytes are aligned
  /// to 8 and there until it returns.
  using RowSink = std::function<bool(std::span<const std::byte> rows)>;

  /// The tables of the node to which a store's sessions lead.
  explicit RemoteTables(std::shared_ptr<RemoteSessions> sessions)
      : sessions_(std::move(sessions)) {}

  /// Errors, of all calls: connection_lost. Of this: already_exists, invalid_argument,
  /// out_of_memory.
  TableResult<TableInfo> create(std::string_view name, const table::Schema& schema,
                                bool encrypted = false);
  /// Errors: not_found.
  TableResult<TableInfo> open(std::string_view name);
  /// Errors: not_found.
  TableResult<void> drop(std::string_view name);
  TableResult<std::vector<TableInfo>> list();
  /// Appends whole rows, all or none. Returns the number of the first.
  /// Errors: not_found, dropped, out_of_memory, invalid_argument (wrong rows, named in words).
  TableResult<std::uint64_t> append(std::uint32_t number, std::span<const std::byte> rows);
  /// The same for an encrypted table, whose rows it encrypts in place with the table's cipher once
  /// the node has reserved slots for them, which waits while another client has some.
  /// Errors: the same, busy.
  TableResult<std::uint64_t> append_encrypted(const TableInfo& table, std::span<std::byte> rows,
                                              table::CtrCipher& cipher);
  /// Runs a pipeline beside the memory. The keys travel as they are. Rows of an encrypted result
  /// are decrypted here. Errors: not_found, dropped, invalid_argument (the pipeline, or a value
  /// that cannot be worked out; in words), unsupported (no libcrypto), system (no memory may be
  /// locked).
  TableResult<wire::QueryNumbers> query(const TableInfo& table, std::size_t result_row_bytes,
                                        std::span<const std::byte> pipeline, const RowSink& sink,
                                        const UserKeys& keys = {});

 private:
  class RunSecrets;

  TableResult<Reply> ask(const Outgoing& request, const ChunkSink& sink = {});
  TableResult<TableInfo> ask_for_table(std::string_view name, const Outgoing& request);

  std::shared_ptr<RemoteSessions> sessions_;
};

}  // namespace espalier::client
