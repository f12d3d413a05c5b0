// SPDX-License-Identifier: Apache-2.0
// Requests that a device has its host answer: they go there as they came, and the answer comes back
// as it is, piece by piece as fast as the client takes it.
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

/// A snapshot of the client's, as the host has it: numbers of a session mean nothing to another.
struct SnapshotAtHost {
  std::uint64_t number = 0;    // 0: the request names none
  std::shared_ptr<void> kept;  // stays while the host has the request
};

/// What such a request keeps while the host has it.
struct RelayState {
  struct Piece {
    wire::ResponseHeader header{};
    std::string payload;
  };
  SnapshotAtHost snapshot;         // that it reads
  std::string principal;           // who asks, as the host is told
  std::vector<std::byte> payload;  // in place of the request's
  offload::ReaderWait reader;      // of a long answer
  std::deque<Piece> pieces;        // that the client has no room for yet
  std::size_t bytes = 0;           // of them
  bool ended = false;              // the last piece is among them
  bool unwanted = false;           // the client wants no more
  bool cut = false;                // the host was told to stop, for there are too many
  bool late = false;  // likewise, for the client took none of a long answer for too long
};

/// Has the host do what was asked, whatever was done of it here. Requires: `snapshot` has a number
/// if the request is to read at one.
offload::Next begin_relay(offload::Call& call, SnapshotAtHost snapshot = {});
/// The same with an answer that may be long: no more of it is taken than the client has room for,
/// as PostedRequests::wants_more tells. `payload`: in place of the request's; empty: that.
offload::Next begin_long_relay(offload::Call& call, std::vector<std::byte> payload = {});
/// Whether the client has room for another piece of it. Passes on what waits.
[[nodiscard]] bool wants_more(offload::Call& call);
/// Whether the host has the request, or had it.
[[nodiscard]] bool is_relayed(const offload::Call& call);
/// The step of such a request.
offload::Next relay(offload::Call& call);
/// The client wants no more of it.
void cancel_relay(offload::Call& call);
/// The step of what the host is asked for as it came.
offload::Next ask_host(offload::Call& call);

}  // namespace espalier::device
