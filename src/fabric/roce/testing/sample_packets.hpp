// SPDX-License-Identifier: Apache-2.0
// Packets, messages and flows for tests: of every kind, with random contents.
// Thread: a Random belongs to one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet.hpp"
#include "fabric/roce/testing/port_traffic.hpp"

namespace espalier::fabric::roce::sample {

/// All that we speak: 0x00 to 0x14, and the datagram.
inline std::vector<PacketOpcode> all_opcodes() {
  std::vector<PacketOpcode> all;
  for (unsigned i = 0; i <= 0x14; ++i) all.push_back(static_cast<PacketOpcode>(i));
  all.push_back(PacketOpcode::datagram_send_only);
  return all;
}

template <class T>
T draw(base::Random& random) {
  return static_cast<T>(random());
}
inline std::uint32_t draw24(base::Random& random) {
  return draw<std::uint32_t>(random) & wire::roce::kMask24;
}
inline std::uint8_t draw_bits(base::Random& random, unsigned bits) {
  return static_cast<std::uint8_t>(random.below(1u << bits));
}

inline Bytes draw_bytes(base::Random& random, std::size_t count) {
  Bytes bytes(count);
  random.fill(bytes);
  return bytes;
}

/// Random numbers in the headers that the opcode has, with the pad for so long a payload.
inline Headers headers(base::Random& random, PacketOpcode opcode, std::size_t payload_bytes) {
  Headers made;
  made.bth.opcode = opcode;
  made.bth.solicited = random.chance(0.5);
  made.bth.migrated = random.chance(0.5);
  made.bth.pad = pad_of(payload_bytes);
  made.bth.partition = draw<std::uint16_t>(random);
  made.bth.forward_congestion = random.chance(0.5);
  made.bth.backward_congestion = random.chance(0.5);
  made.bth.ask_acknowledge = random.chance(0.5);
  made.bth.destination = draw24(random);
  made.bth.psn = draw24(random);
  const Parts parts = parts_of(opcode);
  if (parts.has(Parts::kDeth)) made.deth = {draw<std::uint32_t>(random), draw24(random)};
  if (parts.has(Parts::kReth)) {
    made.reth = {random(), draw<std::uint32_t>(random), draw<std::uint32_t>(random)};
  }
  if (parts.has(Parts::kAtomic)) {
    made.atomic = {random(), draw<std::uint32_t>(random), random(), random()};
  }
  if (parts.has(Parts::kAeth)) made.aeth = {draw<std::uint8_t>(random), draw24(random)};
  if (parts.has(Parts::kAtomicAck)) made.atomic_ack = {random()};
  if (parts.has(Parts::kImmediate)) made.immediate = {draw<std::uint32_t>(random)};
  return made;
}

/// The whole packet; its ICRC is 0.
inline Bytes packet(const Headers& headers, std::span<const std::byte> payload) {
  Bytes bytes(packet_bytes(headers.bth.opcode, payload.size()));
  write_packet(bytes.data(), headers, payload);
  return bytes;
}

/// A packet of this kind, with a payload of at most so many bytes if it may have one.
inline Bytes packet(base::Random& random, PacketOpcode opcode, std::size_t payload_max) {
  const bool may = parts_of(opcode).has(Parts::kPayload);
  const Bytes payload = draw_bytes(random, may ? random.below(payload_max + 1) : 0);
  return packet(headers(random, opcode, payload.size()), payload);
}

inline IpAddress address(base::Random& random, bool is_v6) {
  IpAddress made{is_v6, {}};
  random.fill(std::as_writable_bytes(std::span(made.bytes).first(is_v6 ? 16 : 4)));
  return made;
}

inline IpFlow flow(base::Random& random, bool is_v6) {
  IpFlow made{address(random, is_v6), address(random, is_v6), draw<std::uint16_t>(random)};
  made.dont_fragment = is_v6 || random.chance(0.5);
  return made;
}

inline FrameHeader frame_header(base::Random& random, bool is_v6, bool tagged) {
  FrameHeader made;
  random.fill(std::as_writable_bytes(std::span(made.destination)));
  random.fill(std::as_writable_bytes(std::span(made.source)));
  if (tagged) made.vlan = draw<std::uint16_t>(random);
  made.flow = flow(random, is_v6);
  made.traffic_class = draw<std::uint8_t>(random);
  made.hop_limit = draw<std::uint8_t>(random);
  if (is_v6) made.flow_label = draw<std::uint32_t>(random) & 0xF'FFFF;
  if (!is_v6) made.ip_id = draw<std::uint16_t>(random);
  return made;
}

/// A frame with this packet, whose ICRC it sets.
inline Bytes frame(const FrameHeader& header, std::span<const std::byte> ib) {
  Bytes bytes(frame_header_bytes(header) + ib.size());
  const std::size_t at = write_frame_header(bytes.data(), header, ib.size());
  std::copy(ib.begin(), ib.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  Icrc(header.flow).seal(std::span(bytes).subspan(at), header.ip_id);
  return bytes;
}

inline RequestMessage request(base::Random& random) {
  RequestMessage made;
  made.ids.local = draw<std::uint32_t>(random);
  made.service_id = random();
  made.local_ca_guid = random();
  made.local_queue_key = draw<std::uint32_t>(random);
  made.local_pair = draw24(random);
  made.responder_resources = draw<std::uint8_t>(random);
  made.initiator_depth = draw<std::uint8_t>(random);
  made.starting_psn = draw24(random);
  made.transport_service = draw_bits(random, 2);
  made.flow_control = random.chance(0.5);
  made.remote_response_timeout = draw_bits(random, 5);
  made.local_response_timeout = draw_bits(random, 5);
  made.retries = draw_bits(random, 3);
  made.receive_retries = draw_bits(random, 3);
  made.message_retries = draw_bits(random, 4);
  made.partition = draw<std::uint16_t>(random);
  made.mtu = static_cast<std::uint8_t>(random.between(1, 5));
  made.shared_receives = random.chance(0.5);
  random.fill(std::as_writable_bytes(std::span(made.local_gid)));
  random.fill(std::as_writable_bytes(std::span(made.remote_gid)));
  made.flow_label = draw<std::uint32_t>(random) & 0xF'FFFF;
  made.packet_rate = draw_bits(random, 6);
  made.traffic_class = draw<std::uint8_t>(random);
  made.hop_limit = draw<std::uint8_t>(random);
  made.service_level = draw_bits(random, 4);
  made.subnet_local = random.chance(0.5);
  made.local_ack_timeout = draw_bits(random, 5);
  random.fill(made.private_data);
  return made;
}

inline ReplyMessage reply(base::Random& random) {
  ReplyMessage made;
  made.ids = {draw<std::uint32_t>(random), draw<std::uint32_t>(random)};
  made.local_queue_key = draw<std::uint32_t>(random);
  made.local_pair = draw24(random);
  made.starting_psn = draw24(random);
  made.responder_resources = draw<std::uint8_t>(random);
  made.initiator_depth = draw<std::uint8_t>(random);
  made.ack_delay = draw_bits(random, 5);
  made.failover = draw_bits(random, 2);
  made.flow_control = random.chance(0.5);
  made.receive_retries = draw_bits(random, 3);
  made.shared_receives = random.chance(0.5);
  made.local_ca_guid = random();
  random.fill(made.private_data);
  return made;
}

/// One of each kind, in the order of the variant.
inline std::vector<ConnectionMessage> messages(base::Random& random) {
  const auto ids = [&random] {
    return ConnectionIds{draw<std::uint32_t>(random), draw<std::uint32_t>(random)};
  };
  ReadyMessage ready{ids(), {}};
  random.fill(ready.private_data);
  RejectMessage reject{ids(),
                       ConnectionStep::reply,
                       RejectReason::stale_connection,
                       static_cast<std::uint8_t>(random.below(73)),
                       {},
                       {}};
  random.fill(reject.information);
  random.fill(reject.private_data);
  DisconnectMessage disconnect{ids(), draw24(random), {}};
  random.fill(disconnect.private_data);
  DisconnectedMessage disconnected{ids(), {}};
  random.fill(disconnected.private_data);
  ReceiptMessage receipt{ids(), ConnectionStep::reply, draw_bits(random, 5), {}};
  random.fill(receipt.private_data);
  return {{random(), request(random)}, {random(), reply(random)}, {random(), ready},
          {random(), reject},          {random(), disconnect},    {random(), disconnected},
          {random(), receipt}};
}

/// The packet that carries it; its ICRC is 0.
inline Bytes packet(const ConnectionMessage& message, std::uint32_t psn) {
  Bytes bytes(kMessagePacketBytes);
  write_message_packet(bytes.data(), message, psn);
  return bytes;
}

}  // namespace espalier::fabric::roce::sample
