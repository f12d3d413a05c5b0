// SPDX-License-Identifier: Apache-2.0
// Rows of a table that a client reads by READs of the node's memory, under a lease (place/
// table_reader.hpp).
//
// The lease is kept while rows are waited for, and believed as those of maps are: what came is
// given out only if the node answered not long ago. Between calls it may lapse, for a caller takes
// what time it likes; then another one is asked for, and reading goes on at the same row under the
// same count. What READs cannot bring comes by the rings.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/table/client/remote_rows.hpp"
#include "kinds/table/client/remote_run.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/remote/table_reader.hpp"
#include "reach/lease_guard.hpp"

namespace espalier::client {

class OneSidedRows final : public TableRun {
 public:
  OneSidedRows(std::shared_ptr<RemoteSessions> sessions, HeldSession session, RemoteRead read)
      : sessions_(std::move(sessions)), session_(std::move(session)), read_(std::move(read)) {}
  ~OneSidedRows() override { OneSidedRows::end(); }

  TableResult<std::span<const std::byte>> next() override;
  void end() override;
  [[nodiscard]] wire::QueryNumbers numbers() const override;

 private:
  using Piece = TableResult<std::span<const std::byte>>;

  Result<void> open();
  Result<void> open_anew();
  void close();
  Result<place::TableReader::Piece> read_piece();
  bool keep_waiting();
  bool renew();
  Piece go_by_rings();

  const std::shared_ptr<RemoteSessions> sessions_;
  std::optional<HeldSession> session_;  // until all is read, or it goes by the rings
  RemoteRead read_;
  std::optional<std::uint64_t> end_;  // the row behind the last, once it is known
  // The reader goes before the link that it reads by.
  std::unique_ptr<SideLink> link_;
  std::optional<place::LeaseGuard> lease_;
  std::unique_ptr<place::TableReader> reader_;
  std::uint32_t spins_ = 0;
  int failures_ = 0;  // in a row
  wire::QueryNumbers numbers_{};
  std::unique_ptr<TableRun> by_rings_;
};

}  // namespace espalier::client
