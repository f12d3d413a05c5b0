// SPDX-License-Identifier: Apache-2.0
// For tests: gets in one datagram (wire/datagram.hpp), in frames, and their hints.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "dataplane/datagram_hints.hpp"
#include "fabric/roce/frame.hpp"

namespace espalier::dataplane {

/// A get of a key, as a client without a hint sends it; its tag is no right one. `checksum`: with
/// one of UDP.
[[nodiscard]] inline std::vector<std::byte> get_frame(fabric::roce::FrameHeader header,
                                                      std::uint32_t map, std::string_view key,
                                                      bool checksum = true) {
  wire::DatagramRequest get{};
  get.magic = wire::kDatagramMagic;
  get.version = wire::kDatagramVersion;
  get.kind = static_cast<std::uint8_t>(wire::DatagramKind::get);
  get.key_bytes = static_cast<std::uint16_t>(key.size());
  get.session = 0x0123'4567'89AB'CDEF;
  get.number = 9;
  get.map = map;
  std::ranges::fill(get.tag, std::uint8_t{0x5A});
  header.flow.destination_port = wire::kDatagramPort;
  const std::size_t before = fabric::roce::frame_header_bytes(header);
  std::vector<std::byte> frame(before + sizeof get + key.size());
  fabric::roce::write_frame_header(frame.data(), header, sizeof get + key.size());
  std::memcpy(frame.data() + before, &get, sizeof get);
  std::memcpy(frame.data() + before + sizeof get, key.data(), key.size());
  if (checksum) fabric::roce::set_udp_checksum(frame);
  return frame;
}

/// Where the hint lies. Requires: a get.
[[nodiscard]] inline std::byte* hint_in(std::vector<std::byte>& frame) {
  return find_datagram(frame).udp + wire::kUdpBytes + offsetof(wire::DatagramRequest, hint);
}
[[nodiscard]] inline std::uint64_t hint_of(std::vector<std::byte>& frame) {
  std::uint64_t hint;
  std::memcpy(&hint, hint_in(frame), sizeof hint);
  return hint;
}

}  // namespace espalier::dataplane
