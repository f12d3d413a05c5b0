// SPDX-License-Identifier: Apache-2.0
// Writes rows into the node's memory by WRITE and appends them: one message with their location,
// instead of messages with the data.
//
// It needs a queue pair beside the thread's rings and a window granted by the node. If either is
// unavailable (rings in shared memory, transports whose WRITEs may become visible late, a node
// without memory), it appends nothing, and the caller sends the rows in messages.
//
// Thread: one at a time: that of the rings.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/format/landing.hpp"

namespace espalier::client {

class LandingWriter final : public LanePart {
 public:
  /// Bytes of a window; larger appends go by messages.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{8} << 20;
  /// Below this, sending is faster than writing.
  static constexpr std::size_t kWorthBytes = std::size_t{64} << 10;

  LandingWriter() = default;
  LandingWriter(const LandingWriter&) = delete;
  LandingWriter& operator=(const LandingWriter&) = delete;

  /// Whether so many bytes of rows would be written, as far as known beforehand; sets up what is
  /// needed. For callers that want no handshake between this and append(), which does the same.
  /// Cost: the first time a handshake and a request.
  bool prepare(RemoteRequests& requests, NodeConnection& connection, std::size_t bytes);
  /// Writes whole rows and appends them to a table: all or none, into the slots of a reservation if
  /// `reservation`, its number in bytes, is not empty. Returns the node's answer; nullopt if the
  /// rows must go by messages; the node was not asked to append then. Cost: that of prepare(); then
  /// the WRITEs, and a request.
  std::optional<std::expected<table_calls::Appended, Refusal>> append(
      RemoteRequests& requests, NodeConnection& connection, std::uint32_t table,
      std::span<const std::byte> rows, std::string_view reservation = {});

 private:
  bool open(RemoteRequests& requests, NodeConnection& connection);
  bool write(std::span<const std::byte> bytes);

  std::unique_ptr<SideLink> link_;
  wire::LandingGrant grant_{};
  std::uint64_t not_before_ns_ = 0;  // time of the next attempt to open one
};

}  // namespace espalier::client
