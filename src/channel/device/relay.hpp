// SPDX-License-Identifier: Apache-2.0
// Requests that a device relays to its host unchanged; it forwards the answer unchanged, piece by
// piece as fast as the client takes it.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/call.hpp"
#include "engine/reader_wait.hpp"

namespace espalier::device {

/// A client's snapshot as the host numbers it: numbers of one session are invalid in another.
struct SnapshotAtHost {
  std::uint64_t number = 0;    // 0: the request names none
  std::shared_ptr<void> kept;  // kept while the host has the request
};

/// State of a relayed request while the host has it.
struct RelayState {
  struct Piece {
    wire::ResponseHeader header{};
    std::string payload;
  };
  SnapshotAtHost snapshot;         // that it reads
  std::string principal;           // name of the caller, sent to the host
  std::vector<std::byte> payload;  // replaces the request's
  offload::ReaderWait reader;      // of a long answer
  std::deque<Piece> pieces;        // for which the client has no room yet
  std::size_t bytes = 0;           // of them
  bool ended = false;              // the last piece is among them
  bool unwanted = false;           // the client has cancelled
  bool cut = false;                // cancelled at the host: too many pieces wait
  bool late = false;               // likewise: the client's reader timeout has passed
};

/// Relays the request, whatever was done of it here. Requires: `snapshot` has a number if the
/// request reads at one.
offload::Next begin_relay(offload::Call& call, SnapshotAtHost snapshot = {});
/// The same for an answer that may be long: takes no more of it than the client has room for
/// (PostedRequests::wants_more). `payload` replaces the request's; empty: the request's.
offload::Next begin_long_relay(offload::Call& call, std::vector<std::byte> payload = {});
/// Whether the client has room for another piece. Forwards waiting pieces.
[[nodiscard]] bool wants_more(offload::Call& call);
/// Whether the host has the request, or had it.
[[nodiscard]] bool is_relayed(const offload::Call& call);
/// The step of such a request.
offload::Next relay(offload::Call& call);
/// The client has cancelled the request.
void cancel_relay(offload::Call& call);
/// The step of a call that is always relayed unchanged.
offload::Next ask_host(offload::Call& call);

}  // namespace espalier::device
