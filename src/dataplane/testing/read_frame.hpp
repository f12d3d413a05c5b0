// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: whole frames around RoCEv2 packets, sealed, READ requests most of all.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet.hpp"

namespace espalier::dataplane {

/// From 10.0.0.1 to 10.0.0.2, without a tag.
[[nodiscard]] inline fabric::roce::FrameHeader plain_frame_header() {
  fabric::roce::FrameHeader header;
  header.flow.source = fabric::roce::IpAddress::v4(10, 0, 0, 1);
  header.flow.destination = fabric::roce::IpAddress::v4(10, 0, 0, 2);
  return header;
}

/// `checksum`: with one of UDP.
[[nodiscard]] inline std::vector<std::byte> sealed_frame(const fabric::roce::FrameHeader& header,
                                                         const fabric::roce::Headers& headers,
                                                         std::span<const std::byte> payload = {},
                                                         bool checksum = false) {
  const std::size_t ib = fabric::roce::packet_bytes(headers.bth.opcode, payload.size());
  const std::size_t before = fabric::roce::frame_header_bytes(header);
  std::vector<std::byte> frame(before + ib);
  fabric::roce::write_frame_header(frame.data(), header, ib);
  fabric::roce::write_packet(frame.data() + before, headers, payload);
  fabric::roce::Icrc(header.flow).seal(std::span(frame).subspan(before), header.ip_id);
  if (checksum) fabric::roce::set_udp_checksum(frame);
  return frame;
}

/// A READ request of 1024 bytes with such a number where its address would be.
[[nodiscard]] inline std::vector<std::byte> keyed_frame(std::uint64_t number, std::uint32_t key) {
  fabric::roce::Headers headers;
  headers.bth.opcode = fabric::roce::PacketOpcode::read_request;
  headers.reth = {number, key, 1024};
  return sealed_frame(plain_frame_header(), headers);
}

}  // namespace espalier::dataplane
