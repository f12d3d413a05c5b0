// SPDX-License-Identifier: Apache-2.0
// A pipeline that runs on a node. Its rows are taken from the rings as they are pulled; the node
// runs ahead by no more than the rings hold.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/table/client/result_buffers.hpp"
#include "kinds/table/client/run_secrets.hpp"
#include "kinds/table/client/tables.hpp"

namespace espalier::table_calls {
struct RowsPlaced;
}

namespace espalier::client {

/// A session for the lifetime of a run: the thread's own if the run ends within one call.
class HeldSession {
 public:
  static TableResult<HeldSession> take(const std::shared_ptr<RemoteSessions>& sessions,
                                       bool within_call);
  HeldSession(HeldSession&&) noexcept = default;
  HeldSession& operator=(HeldSession&&) = delete;
  ~HeldSession();
  RemoteSession* operator->() const { return lease_ ? &**lease_ : own_.get(); }
  RemoteSession& operator*() const { return *operator->(); }

 private:
  HeldSession() = default;
  std::optional<RemoteLease> lease_;
  std::shared_ptr<RemoteSession> own_;
  std::shared_ptr<RemoteSessions> sessions_;
};

class RemoteRun final : public TableRun {
 public:
  /// Starts a run. Errors: connection_lost; for keys: unsupported, system; others come with its
  /// rows.
  static TableResult<std::unique_ptr<TableRun>> begin(HeldSession session, std::uint32_t table,
                                                      std::span<const std::byte> pipeline,
                                                      std::size_t row_bytes,
                                                      const RunLimits& limits);
  /// The same for any request answered by chunks of rows, and finally QueryNumbers and rows.
  static TableResult<std::unique_ptr<TableRun>> begin(HeldSession session,
                                                      const wire::CallMessage& request,
                                                      std::size_t row_bytes,
                                                      const RunLimits& limits);
  ~RemoteRun() override { RemoteRun::end(); }

  TableResult<std::span<const std::byte>> next() override;
  void end() override {
    if (session_) cancel();
  }
  [[nodiscard]] wire::QueryNumbers numbers() const override { return numbers_; }
  [[nodiscard]] bool may_change() const override { return may_change_; }
  [[nodiscard]] std::uint64_t buffer_bytes() const override { return buffer_bytes_; }

 private:
  using Piece = TableResult<std::span<const std::byte>>;

  RemoteRun(HeldSession session, std::size_t row_bytes, const RunLimits& limits,
            std::optional<RunSecrets> secrets)
      : session_(std::move(session)),
        row_bytes_(row_bytes),
        limits_(limits),
        secrets_(std::move(secrets)) {}
  Piece take(const Incoming& piece);
  /// Nullopt: a malformed chunk.
  Piece placed_rows(const std::optional<table_calls::RowsPlaced>& placed);
  [[nodiscard]] std::uint64_t look_again_ns() const;
  Piece finish(const Incoming& last);
  /// The numbers of the last message, and the rows after them; nullopt: it has none.
  std::optional<std::string_view> take_numbers(const Incoming& last);
  Piece rows_of(std::string_view payload);
  /// Copies rows, or decrypts them; chunks must come in order.
  void take_copy(std::string_view payload);
  void cancel();

  std::optional<HeldSession> session_;  // until the answer is complete
  const std::size_t row_bytes_;
  const RunLimits limits_;
  std::optional<RunSecrets> secrets_;
  std::vector<std::byte> copy_;  // of rows that were misaligned or encrypted
  bool may_change_ = false;      // the rows of the last piece are in a shared buffer
  std::uint64_t buffer_bytes_ = 0;
  ReadBuffers read_;  // with the last piece
  wire::QueryNumbers numbers_{};
};

}  // namespace espalier::client
