// SPDX-License-Identifier: Apache-2.0
// Reads a table's rows in chunks, by table_read, over transports without READs. Rows of an
// encrypted table arrive as cipher text, and are decrypted here.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kinds/table/client/remote_run.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/ctr_cipher.hpp"

namespace espalier::client {

/// The rows to read from a node's table.
struct RemoteRead {
  std::uint32_t table = 0;
  std::uint32_t row_bytes = 0;
  RowRange range{};
  std::optional<table::CtrCipher> cipher{};
  RunLimits limits{};
};

class RemoteRows final : public TableRun {
 public:
  /// Sends the request. Errors: connection_lost; others come with the rows.
  static TableResult<std::unique_ptr<TableRun>> begin(HeldSession session, RemoteRead read);

  TableResult<std::span<const std::byte>> next() override;
  void end() override { chunks_->end(); }
  [[nodiscard]] wire::QueryNumbers numbers() const override { return chunks_->numbers(); }

 private:
  RemoteRows(std::unique_ptr<TableRun> chunks, RemoteRead read)
      : chunks_(std::move(chunks)), read_(std::move(read)), next_row_(read_.range.first) {}

  std::unique_ptr<TableRun> chunks_;
  RemoteRead read_;
  std::uint64_t next_row_;
  std::vector<std::byte> plain_;  // of a chunk that came encrypted
};

}  // namespace espalier::client
