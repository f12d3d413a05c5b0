// SPDX-License-Identifier: Apache-2.0
// Rows of a table that a client reads by READs of the node's memory, under a lease (place/
// table_reader.hpp).
//
// The lease is renewed while waiting for rows, and checked as for maps: data is returned only if
// the node answered recently. Between calls the lease may lapse, because a caller may take any
// time; then the client acquires a new one, and continues at the same row under the same count. If
// READs fail, rows come over the rings.
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
  std::optional<HeldSession> session_;  // until all is read, or reading falls back to the rings
  RemoteRead read_;
  std::optional<std::uint64_t> end_;  // the row after the last, once known
  // The reader is destroyed before the link that it uses.
  std::unique_ptr<SideLink> link_;
  std::optional<place::LeaseGuard> lease_;
  std::unique_ptr<place::TableReader> reader_;
  std::uint32_t spins_ = 0;
  int failures_ = 0;  // consecutive
  wire::QueryNumbers numbers_{};
  std::unique_ptr<TableRun> by_rings_;
};

}  // namespace espalier::client
