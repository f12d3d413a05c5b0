// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/remote_tables.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/until_fork.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/client/landing_writer.hpp"
#include "kinds/table/client/one_sided_rows.hpp"
#include "kinds/table/client/remote_kept.hpp"
#include "kinds/table/client/remote_rows.hpp"
#include "kinds/table/client/remote_run.hpp"
#include "kinds/table/client/sealed_rows.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/loaded_pipeline.hpp"

namespace espalier::client {
namespace {

/// A table that is made or opened.
template <class Request>
TableResult<TableInfo> ask_for_table(RemoteSession& session, const Request& request) {
  Reply answer;
  const auto opened = in_words(ask_in_words(session.requests, request, answer));
  if (!opened) return std::unexpected(opened.error());
  auto info = read_info(request.name, opened->id, opened->description);
  if (!info) return refuse_nonsense("the node answered with what is no table");
  return std::move(*info);
}

class RemoteTable final : public TableImpl {
 public:
  RemoteTable(std::shared_ptr<RemoteSessions> sessions, std::uint64_t node, TableInfo info)
      : TableImpl(std::move(info.name), std::move(info.schema), info.salt),
        sessions_(std::move(sessions)),
        node_(node),
        number_(info.number) {}

  TableResult<wire::TableFacts> facts() override;
  TableResult<std::uint64_t> append(std::span<const std::byte> rows) override;
  TableResult<std::uint64_t> append_encrypted(std::span<std::byte> rows,
                                              table::CtrCipher& cipher) override;
  TableResult<std::unique_ptr<TableRun>> begin(std::span<const std::byte> pipeline,
                                               std::size_t result_row_bytes,
                                               const RunLimits& limits) override;
  TableResult<std::unique_ptr<KeptPipeline>> keep(std::span<const std::byte> pipeline) override;
  TableResult<std::unique_ptr<TableRun>> begin_kept(KeptPipeline& kept,
                                                    const table::RunConstants& constants,
                                                    std::size_t result_row_bytes,
                                                    const RunLimits& limits) override;
  [[nodiscard]] bool is_far() const override { return sessions_->is_far(); }

 protected:
  TableResult<std::unique_ptr<TableRun>> begin_read(const RowRange& range,
                                                    std::optional<table::CtrCipher> cipher,
                                                    const RunLimits& limits) override;

 private:
  /// The table's number on the node that a session leads to. Errors: not_found; dropped (there is
  /// another of its name).
  TableResult<std::uint32_t> number(RemoteSession& session);
  struct Reached {
    HeldSession session;
    std::uint32_t number;
  };
  /// Has rows appended, written where that is to be had, else by a message; into the slots of a
  /// reservation, where its number is not empty.
  static TableResult<std::uint64_t> append_rows(RemoteSession& session, std::uint32_t table,
                                                std::span<const std::byte> rows,
                                                std::string_view reservation = {});
  /// A session for a run, and the table's number there. Errors: those of the limits, of a session
  /// and of number().
  TableResult<Reached> reach(const RunLimits& limits);

  const std::shared_ptr<RemoteSessions> sessions_;
  std::mutex mutex_;  // guards the two below
  std::uint64_t node_;
  std::uint32_t number_;
};

TableResult<std::uint32_t> RemoteTable::number(RemoteSession& session) {
  const std::uint64_t node = session.rings->connection().node_id();
  const std::lock_guard lock(mutex_);
  if (node == node_) return number_;
  const auto info = ask_for_table(session, table_calls::Open{name()});
  if (!info) return std::unexpected(info.error());
  if (info->schema != schema()) {
    return refuse_table({Code::dropped, 0, 0},
                        "another node has come, whose table of this name has other columns");
  }
  if (info->salt != salt()) {
    return refuse_table({Code::dropped, 0, 0},
                        "another node has come, whose table of this name has another key");
  }
  node_ = node;
  number_ = info->number;
  return number_;
}

TableResult<wire::TableFacts> RemoteTable::facts() {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  const auto own = number(**session);
  if (!own) return std::unexpected(own.error());
  const auto info = ask_for_table(**session, table_calls::Open{name()});
  if (!info) return std::unexpected(info.error());
  if (info->number != *own) {
    return refuse_table({Code::dropped, 0, 0}, "the table was dropped; this is another");
  }
  return info->facts;
}

TableResult<std::uint64_t> RemoteTable::append(std::span<const std::byte> rows) {
  if (rows.size() > kAppendBytesMax) {
    return refuse_table({Code::invalid_argument, 0, 0}, "too many rows for one append");
  }
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  const auto own = number(**session);
  if (!own) return std::unexpected(own.error());
  return append_rows(**session, *own, rows);
}

TableResult<std::uint64_t> RemoteTable::append_rows(RemoteSession& session, std::uint32_t table,
                                                    std::span<const std::byte> rows,
                                                    std::string_view reservation) {
  auto written = session.parts.of<LandingWriter>().append(
      session.requests, session.rings->connection(), table, rows, reservation);
  Reply answer;
  const auto appended = in_words(
      written ? *std::move(written)
              : ask_in_words(session.requests,
                             table_calls::Append{table, reservation, text_of(rows)}, answer));
  if (!appended) return std::unexpected(appended.error());
  return appended->first_row;
}

TableResult<std::uint64_t> RemoteTable::append_encrypted(std::span<std::byte> rows,
                                                         table::CtrCipher& cipher) {
  if (rows.size() > kAppendBytesMax - sizeof(std::uint64_t)) {
    return refuse_table({Code::invalid_argument, 0, 0}, "too many rows for one append");
  }
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  const auto own = number(**session);
  if (!own) return std::unexpected(own.error());
  const std::size_t row_bytes = schema().row_bytes();
  // Others wait while slots are reserved, so what takes long is done before.
  (*session)->parts.of<LandingWriter>().prepare((*session)->requests,
                                                (*session)->rings->connection(), rows.size());
  Reply answer;
  const auto reserved = in_words(ask_in_words(
      (*session)->requests,
      table_calls::Reserve{*own, static_cast<std::uint32_t>(rows.size() / row_bytes)}, answer));
  if (!reserved) return std::unexpected(reserved.error());
  const std::uint64_t reservation = reserved->reservation;
  if (!seal_rows(rows, row_bytes, reserved->slots, cipher)) {
    return refuse_nonsense("the node reserved other slots than it was asked for");
  }
  return append_rows(**session, *own, rows, base::bytes_of(reservation));
}

TableResult<RemoteTable::Reached> RemoteTable::reach(const RunLimits& limits) {
  if (auto reached = limits.reached()) return std::unexpected(*std::move(reached));
  auto session = HeldSession::take(sessions_, limits.within_call);
  if (!session) return std::unexpected(session.error());
  const auto own = number(**session);
  if (!own) return std::unexpected(own.error());
  return Reached{*std::move(session), *own};
}

TableResult<std::unique_ptr<TableRun>> RemoteTable::begin(std::span<const std::byte> pipeline,
                                                          std::size_t result_row_bytes,
                                                          const RunLimits& limits) {
  auto at = reach(limits);
  if (!at) return std::unexpected(std::move(at.error()));
  return RemoteRun::begin(std::move(at->session), at->number, pipeline, result_row_bytes, limits);
}

TableResult<std::unique_ptr<KeptPipeline>> RemoteTable::keep(std::span<const std::byte> pipeline) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  const auto own = number(**session);
  if (!own) return std::unexpected(own.error());
  auto kept = std::make_unique<RemoteKept>(pipeline);
  // Report its mistakes now.
  if (const auto loaded = kept->number(**session, *own); !loaded) {
    return std::unexpected(loaded.error());
  }
  return kept;
}

TableResult<std::unique_ptr<TableRun>> RemoteTable::begin_kept(KeptPipeline& kept,
                                                               const table::RunConstants& constants,
                                                               std::size_t result_row_bytes,
                                                               const RunLimits& limits) {
  auto at = reach(limits);
  if (!at) return std::unexpected(std::move(at.error()));
  const auto loaded = static_cast<RemoteKept&>(kept).number(*at->session, at->number);
  if (!loaded) return std::unexpected(loaded.error());
  const std::vector<std::byte> run = table::encode_loaded_run(*loaded, constants);
  return RemoteRun::begin(std::move(at->session), at->number, run, result_row_bytes, limits);
}

TableResult<std::unique_ptr<TableRun>> RemoteTable::begin_read(
    const RowRange& range, std::optional<table::CtrCipher> cipher, const RunLimits& limits) {
  auto at = reach(limits);
  if (!at) return std::unexpected(std::move(at.error()));
  RemoteRead read{at->number, schema().row_bytes(), range, std::move(cipher), limits};
  if (sessions_->reads_alone()) {
    return std::make_unique<OneSidedRows>(sessions_, std::move(at->session), std::move(read));
  }
  return RemoteRows::begin(std::move(at->session), std::move(read));
}

}  // namespace

TableResult<std::shared_ptr<TableImpl>> RemoteTables::create(std::string_view name,
                                                             const table::Schema& schema,
                                                             const MadeWith& with) {
  if (auto wrong = wrong_with_name(name)) return std::unexpected(*std::move(wrong));
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  std::vector<std::byte> bytes(schema.encoded_bytes());
  schema.encode(bytes);
  const std::uint32_t flags = (with.encrypted ? wire::kCreateEncrypted : 0U) |
                              wire::number_of(with.durability) << wire::kCreateDurabilityShift;
  auto info = ask_for_table(**session, table_calls::Create{name, flags, text_of(bytes)});
  if (!info) return std::unexpected(std::move(info.error()));
  // What is written and read later relies on it.
  if (info->schema != schema) return refuse_nonsense("the node made a table of other columns");
  return base::make_shared_until_fork<RemoteTable>(
      sessions_, (*session)->rings->connection().node_id(), *std::move(info));
}

TableResult<std::shared_ptr<TableImpl>> RemoteTables::open(std::string_view name) {
  if (auto wrong = wrong_with_name(name)) return std::unexpected(*std::move(wrong));
  const auto session = RemoteLease::take(sessions_);
  if (!session) return refuse_table(session.error());
  auto info = ask_for_table(**session, table_calls::Open{name});
  if (!info) return std::unexpected(std::move(info.error()));
  return base::make_shared_until_fork<RemoteTable>(
      sessions_, (*session)->rings->connection().node_id(), *std::move(info));
}

}  // namespace espalier::client
