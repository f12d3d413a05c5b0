// SPDX-License-Identifier: Apache-2.0
// Rows that one thread WRITEs into memory of the node's, and then has appended: one message that
// says where they lie, instead of messages that carry them.
//
// It needs a pair beside the thread's rings and a window that the node gives for the asking. Where
// either is not to be had (rings in shared memory, transports whose WRITEs may be seen late, a node
// with no memory to spare), nothing was appended, and the rows go by messages.
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
  /// Bytes of a window; rows that need more go by messages.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{8} << 20;
  /// Fewer bytes than these are sooner sent than written.
  static constexpr std::size_t kWorthBytes = std::size_t{64} << 10;

  LandingWriter() = default;
  LandingWriter(const LandingWriter&) = delete;
  LandingWriter& operator=(const LandingWriter&) = delete;

  /// Whether so many bytes of rows would be written, as far as that is known before; gets what that
  /// needs. For who wants no handshake between this and append(), which does the same.
  /// Cost: the first time a handshake and a request.
  bool prepare(RemoteRequests& requests, NodeConnection& connection, std::size_t bytes);
  /// Writes whole rows and has them appended to a table: all or none, into the slots of a
  /// reservation where `reservation` is its number in bytes and not empty. Returns what the node
  /// answered; nothing if the rows must go by messages, and then the node was not asked to append.
  /// Cost: that of prepare(); then the WRITEs, and a request.
  std::optional<std::expected<table_calls::Appended, Refusal>> append(
      RemoteRequests& requests, NodeConnection& connection, std::uint32_t table,
      std::span<const std::byte> rows, std::string_view reservation = {});

 private:
  bool open(RemoteRequests& requests, NodeConnection& connection);
  bool write(std::span<const std::byte> bytes);

  std::unique_ptr<SideLink> link_;
  wire::LandingGrant grant_{};
  std::uint64_t not_before_ns_ = 0;  // when it is tried again to open one
};

}  // namespace espalier::client
