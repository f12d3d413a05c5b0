// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/remote_run.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/client/result_buffers.hpp"

namespace espalier::client {
namespace {

// Interval at which a stop request is checked.
constexpr std::uint64_t kLookNs = 5'000'000;
// How long a node may take to end a run: its steps are shorter by far.
constexpr std::uint64_t kCancelNs = 1'000'000'000;

/// How many milliseconds a run may take that begins now; 0: any.
std::uint32_t time_of(const RunLimits& limits) {
  const std::uint64_t now = base::monotonic_ns();
  if (limits.deadline_ns <= now) return 1;
  const std::uint64_t ms = (limits.deadline_ns - now) / 1'000'000 + 1;
  return ms > wire::kQueryTimeMaxMs ? 0 : static_cast<std::uint32_t>(ms);
}

}  // namespace

TableResult<HeldSession> HeldSession::take(const std::shared_ptr<RemoteSessions>& sessions,
                                           bool within_call) {
  HeldSession held;
  if (within_call) {
    auto lease = RemoteLease::take(sessions);
    if (!lease) return refuse_table(lease.error());
    held.lease_.emplace(std::move(*lease));
    return held;
  }
  auto session = sessions->acquire();
  if (!session) return refuse_table(session.error());
  held.own_ = std::move(*session);
  held.sessions_ = sessions;
  return held;
}

HeldSession::~HeldSession() {
  if (own_) sessions_->release(std::move(own_));
}

TableResult<std::unique_ptr<TableRun>> RemoteRun::begin(HeldSession session, std::uint32_t table,
                                                        std::span<const std::byte> pipeline,
                                                        std::size_t row_bytes,
                                                        const RunLimits& limits) {
  table_calls::Query query{table, 0, {}, text_of(pipeline)};
  std::optional<RunSecrets> secrets;
  if (limits.keys.table != nullptr || limits.keys.result != nullptr) {
    auto made = RunSecrets::make(limits.keys);
    if (!made) {
      return refuse_table(made.error(), std::string(kWhatKeysNeed));
    }
    secrets.emplace(*std::move(made));
    query.keys = secrets->key();
  }
  const bool offered = limits.into_buffers && session->parts.of<ResultBuffers>().offer(
                                                  session->requests, session->rings->connection());
  query.options = time_of(limits) << wire::kQueryTimeShift;
  if (offered) query.options |= wire::kQueryIntoBuffers;
  if (!begin_asking(session->requests, query)) return refuse_table(session->rings->lost_error());
  return std::unique_ptr<TableRun>(
      new RemoteRun(std::move(session), row_bytes, limits, std::move(secrets)));
}

TableResult<std::unique_ptr<TableRun>> RemoteRun::begin(HeldSession session,
                                                        const wire::CallMessage& request,
                                                        std::size_t row_bytes,
                                                        const RunLimits& limits) {
  if (!session->requests.begin(request)) return refuse_table(session->rings->lost_error());
  return std::unique_ptr<TableRun>(
      new RemoteRun(std::move(session), row_bytes, limits, std::nullopt));
}

std::uint64_t RemoteRun::look_again_ns() const {
  if (!limits_.stop.stop_possible() && read_.empty()) return limits_.deadline_ns;
  return std::min(limits_.deadline_ns, base::monotonic_ns() + kLookNs);
}

RemoteRun::Piece RemoteRun::next() {
  while (session_) {
    if (auto reached = limits_.reached()) {
      cancel();
      return std::unexpected(*std::move(reached));
    }
    RemoteRequests& requests = (*session_)->requests;
    if (read_.many()) read_.give_back(requests);
    const auto piece = requests.take_piece();
    if (!piece) {
      read_.give_back(requests);  // the node may have nothing to write into
      if (requests.wait_piece(look_again_ns())) continue;
      const Error lost = (*session_)->rings->lost_error();
      session_.reset();
      return refuse_table(lost);
    }
    may_change_ = false;
    if (RemoteRequests::is_last(*piece)) return finish(*piece);
    const Piece rows = take(*piece);
    if (!rows || !rows->empty()) return rows;
  }
  return std::span<const std::byte>();
}

/// The rows of a chunk; none: it is of a kind that is not known here.
RemoteRun::Piece RemoteRun::take(const Incoming& piece) {
  const auto kind = static_cast<wire::ChunkKind>(piece.header.flags & wire::kChunkBits);
  if (kind == wire::ChunkKind::rows && !piece.payload.empty()) return rows_of(piece.payload);
  if (kind == wire::ChunkKind::placed) {
    return placed_rows(wire::read_reply<table_calls::RowsPlaced>(piece.header, piece.payload));
  }
  return std::span<const std::byte>();
}

// The buffer goes back with the next piece, for until then the caller has its rows.
RemoteRun::Piece RemoteRun::placed_rows(const std::optional<table_calls::RowsPlaced>& placed) {
  std::optional<std::span<const std::byte>> rows;
  if (placed) rows = (*session_)->parts.of<ResultBuffers>().find(placed->place);
  if (!rows || rows->empty()) {
    cancel();
    return refuse_nonsense("the node says that rows lie where there is no buffer");
  }
  buffer_bytes_ += rows->size();
  if ((placed->place.flags & wire::kBufferFull) != 0) read_.add(placed->place.buffer);
  const Piece taken = rows_of(text_of(*rows));
  may_change_ = taken && taken->data() == rows->data();
  return taken;
}

std::optional<std::string_view> RemoteRun::take_numbers(const Incoming& last) {
  if (last.header.code != 0) return std::nullopt;
  const auto end = wire::read_reply<table_calls::RowsEnd>(last.header, last.payload);
  if (!end) return std::nullopt;
  numbers_ = end->numbers;
  return end->rows;
}

// The last rows are copied: the message that they came in is the session's, and that goes back.
RemoteRun::Piece RemoteRun::finish(const Incoming& last) {
  const auto release = [this] {
    (*session_)->requests.rest();
    session_.reset();
  };
  if (last.header.code != 0) {
    Refusal refusal = RemoteRequests::refusal_of(last);
    release();
    return std::unexpected(std::move(refusal));
  }
  const auto rows = take_numbers(last);
  if (!rows) {
    release();
    return refuse_nonsense("the node's answer has no numbers");
  }
  take_copy(*rows);
  release();
  if (copy_.size() % row_bytes_ != 0) return refuse_nonsense("the node's answer has half a row");
  return std::span<const std::byte>(copy_);
}

void RemoteRun::take_copy(std::string_view payload) {
  if (secrets_ && secrets_->decrypts()) return secrets_->decrypt(payload, copy_);
  const auto* bytes = reinterpret_cast<const std::byte*>(payload.data());
  copy_.assign(bytes, bytes + payload.size());
}

RemoteRun::Piece RemoteRun::rows_of(std::string_view payload) {
  if (payload.size() % row_bytes_ != 0) {
    cancel();
    return refuse_nonsense("the node's answer has half a row");
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(payload.data());
  const bool plain = !secrets_ || !secrets_->decrypts();
  if (plain && reinterpret_cast<std::uintptr_t>(bytes) % 8 == 0) {
    return std::span(bytes, payload.size());
  }
  take_copy(payload);
  return std::span<const std::byte>(copy_);
}

// What was sent before the node heard of it is thrown away.
void RemoteRun::cancel() {
  RemoteRequests& requests = (*session_)->requests;
  bool sent = requests.cancel_begun();
  const std::uint64_t until_ns = base::monotonic_ns() + kCancelNs;
  bool ended = false;
  while (!ended && base::monotonic_ns() < until_ns) {
    const auto piece = requests.take_piece();
    if (!sent) sent = requests.cancel_begun();
    if (piece) {
      ended = RemoteRequests::is_last(*piece);
      if (ended) static_cast<void>(take_numbers(*piece));
    } else if (!requests.wait_piece(until_ns)) {
      break;
    }
  }
  if (ended) requests.rest();
  (*session_)->spoiled = !ended;
  session_.reset();
}

}  // namespace espalier::client
