// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/connection_message.hpp"

#include <concepts>
#include <cstring>

namespace espalier::fabric::roce {
namespace {

using namespace wire::roce;

/// Big-endian bytes as they lie, and back.
template <std::size_t count>
[[nodiscard]] std::uint64_t get(const std::uint8_t (&from)[count]) {
  static_assert(count <= 8);
  std::uint64_t value = 0;
  for (const std::uint8_t byte : from) value = value << 8 | byte;
  return value;
}
template <std::size_t count>
[[nodiscard]] std::uint32_t get32(const std::uint8_t (&from)[count]) {
  static_assert(count <= 4);
  return static_cast<std::uint32_t>(get(from));
}
template <std::size_t count>
void put(std::uint8_t (&to)[count], std::uint64_t value) {
  for (std::size_t i = count; i-- > 0; value >>= 8) to[i] = static_cast<std::uint8_t>(value);
}

template <std::size_t count, class Array>
void get_bytes(const std::uint8_t (&from)[count], Array& to) {
  static_assert(sizeof(to) == count);
  std::memcpy(to.data(), from, count);
}
template <std::size_t count, class Array>
void put_bytes(std::uint8_t (&to)[count], const Array& from) {
  static_assert(sizeof(from) == count);
  std::memcpy(to, from.data(), count);
}

/// `count` bits of a byte, the highest of which is `first` from the top.
[[nodiscard]] constexpr std::uint8_t bits(std::uint8_t byte, unsigned first, unsigned count) {
  return static_cast<std::uint8_t>(byte >> (8 - first - count) & ((1u << count) - 1));
}
/// The other way: where they stand in the byte.
[[nodiscard]] constexpr unsigned place(unsigned value, unsigned first, unsigned count) {
  return (value & ((1u << count) - 1)) << (8 - first - count);
}
[[nodiscard]] constexpr std::uint8_t byte_of(unsigned places) {
  return static_cast<std::uint8_t>(places);
}

template <class Bytes>
ConnectionIds get_ids(const Bytes& from) {
  return {get32(from.local_id), get32(from.remote_id)};
}
template <class Bytes>
void put_ids(Bytes& to, const ConnectionIds& ids) {
  put(to.local_id, ids.local);
  put(to.remote_id, ids.remote);
}

void read_path(const PathBytes& from, RequestMessage& to) {
  get_bytes(from.local_gid, to.local_gid);
  get_bytes(from.remote_gid, to.remote_gid);
  const std::uint32_t label_and_rate = get32(from.flow_label_and_rate);
  to.flow_label = label_and_rate >> 12;
  to.packet_rate = label_and_rate & 0x3F;
  to.traffic_class = from.traffic_class;
  to.hop_limit = from.hop_limit;
  to.service_level = bits(from.service_level, 0, 4);
  to.subnet_local = bits(from.service_level, 4, 1) != 0;
  to.local_ack_timeout = bits(from.local_ack_timeout, 0, 5);
}

void write_path(const RequestMessage& from, PathBytes& to) {
  put(to.local_lid, 0xFFFF);
  put(to.remote_lid, 0xFFFF);
  put_bytes(to.local_gid, from.local_gid);
  put_bytes(to.remote_gid, from.remote_gid);
  put(to.flow_label_and_rate, from.flow_label << 12 | (from.packet_rate & 0x3Fu));
  to.traffic_class = from.traffic_class;
  to.hop_limit = from.hop_limit;
  to.service_level = byte_of(place(from.service_level, 0, 4) | place(from.subnet_local, 4, 1));
  to.local_ack_timeout = byte_of(place(from.local_ack_timeout, 0, 5));
}

bool read(const RequestBytes& from, RequestMessage& to) {
  to.ids = {get32(from.local_id), 0};
  to.service_id = get(from.service_id);
  to.local_ca_guid = get(from.local_ca_guid);
  to.local_queue_key = get32(from.local_queue_key);
  to.local_pair = get32(from.local_pair);
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.remote_response_timeout = bits(from.remote_timeout, 0, 5);
  to.transport_service = bits(from.remote_timeout, 5, 2);
  to.flow_control = bits(from.remote_timeout, 7, 1) != 0;
  to.starting_psn = get32(from.starting_psn);
  to.local_response_timeout = bits(from.local_timeout, 0, 5);
  to.retries = bits(from.local_timeout, 5, 3);
  to.partition = static_cast<std::uint16_t>(get(from.partition));
  to.mtu = bits(from.mtu, 0, 4);
  to.receive_retries = bits(from.mtu, 5, 3);
  to.message_retries = bits(from.max_retries, 0, 4);
  to.shared_receives = bits(from.max_retries, 4, 1) != 0;
  read_path(from.primary, to);
  get_bytes(from.private_data, to.private_data);
  return mtu_bytes(to.mtu) != 0;
}

void write(const RequestMessage& from, RequestBytes& to) {
  put(to.local_id, from.ids.local);
  put(to.service_id, from.service_id);
  put(to.local_ca_guid, from.local_ca_guid);
  put(to.local_queue_key, from.local_queue_key);
  put(to.local_pair, from.local_pair);
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.remote_timeout = byte_of(place(from.remote_response_timeout, 0, 5) |
                              place(from.transport_service, 5, 2) | place(from.flow_control, 7, 1));
  put(to.starting_psn, from.starting_psn);
  to.local_timeout = byte_of(place(from.local_response_timeout, 0, 5) | place(from.retries, 5, 3));
  put(to.partition, from.partition);
  to.mtu = byte_of(place(from.mtu, 0, 4) | place(from.receive_retries, 5, 3));
  to.max_retries = byte_of(place(from.message_retries, 0, 4) | place(from.shared_receives, 4, 1));
  write_path(from, to.primary);
  put_bytes(to.private_data, from.private_data);
}

bool read(const ReplyBytes& from, ReplyMessage& to) {
  to.ids = get_ids(from);
  to.local_queue_key = get32(from.local_queue_key);
  to.local_pair = get32(from.local_pair);
  to.starting_psn = get32(from.starting_psn);
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.ack_delay = bits(from.ack_delay, 0, 5);
  to.failover = bits(from.ack_delay, 5, 2);
  to.flow_control = bits(from.ack_delay, 7, 1) != 0;
  to.receive_retries = bits(from.rnr_retry, 0, 3);
  to.shared_receives = bits(from.rnr_retry, 3, 1) != 0;
  to.local_ca_guid = get(from.local_ca_guid);
  get_bytes(from.private_data, to.private_data);
  return true;
}

void write(const ReplyMessage& from, ReplyBytes& to) {
  put_ids(to, from.ids);
  put(to.local_queue_key, from.local_queue_key);
  put(to.local_pair, from.local_pair);
  put(to.starting_psn, from.starting_psn);
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.ack_delay = byte_of(place(from.ack_delay, 0, 5) | place(from.failover, 5, 2) |
                         place(from.flow_control, 7, 1));
  to.rnr_retry = byte_of(place(from.receive_retries, 0, 3) | place(from.shared_receives, 3, 1));
  put(to.local_ca_guid, from.local_ca_guid);
  put_bytes(to.private_data, from.private_data);
}

/// RTU and DREP differ in their attribute alone.
template <class Message>
concept Ready = std::same_as<Message, ReadyMessage> || std::same_as<Message, DisconnectedMessage>;

bool read(const ReadyBytes& from, Ready auto& to) {
  to.ids = get_ids(from);
  get_bytes(from.private_data, to.private_data);
  return true;
}

void write(const Ready auto& from, ReadyBytes& to) {
  put_ids(to, from.ids);
  put_bytes(to.private_data, from.private_data);
}

bool read(const DisconnectBytes& from, DisconnectMessage& to) {
  to.ids = get_ids(from);
  to.remote_pair = get32(from.remote_pair);
  get_bytes(from.private_data, to.private_data);
  return true;
}
void write(const DisconnectMessage& from, DisconnectBytes& to) {
  put_ids(to, from.ids);
  put(to.remote_pair, from.remote_pair);
  put_bytes(to.private_data, from.private_data);
}

bool read(const RejectBytes& from, RejectMessage& to) {
  to.ids = get_ids(from);
  to.rejected = static_cast<ConnectionStep>(bits(from.rejected, 0, 2));
  to.information_bytes = bits(from.info_length, 0, 7);
  to.reason = static_cast<RejectReason>(get(from.reason));
  get_bytes(from.information, to.information);
  get_bytes(from.private_data, to.private_data);
  return to.information_bytes <= to.information.size();
}
void write(const RejectMessage& from, RejectBytes& to) {
  put_ids(to, from.ids);
  to.rejected = byte_of(place(static_cast<unsigned>(from.rejected), 0, 2));
  to.info_length = byte_of(place(from.information_bytes, 0, 7));
  put(to.reason, static_cast<std::uint16_t>(from.reason));
  put_bytes(to.information, from.information);
  put_bytes(to.private_data, from.private_data);
}

bool read(const ReceiptBytes& from, ReceiptMessage& to) {
  to.ids = get_ids(from);
  to.received = static_cast<ConnectionStep>(bits(from.received, 0, 2));
  to.service_timeout = bits(from.timeout, 0, 5);
  get_bytes(from.private_data, to.private_data);
  return true;
}
void write(const ReceiptMessage& from, ReceiptBytes& to) {
  put_ids(to, from.ids);
  to.received = byte_of(place(static_cast<unsigned>(from.received), 0, 2));
  to.timeout = byte_of(place(from.service_timeout, 0, 5));
  put_bytes(to.private_data, from.private_data);
}

/// The bytes of each kind of message, and the attribute that says so.
template <class BytesOfIt, ConnectionAttribute attribute>
struct FormOf {
  using Bytes = BytesOfIt;
  static constexpr ConnectionAttribute kAttribute = attribute;
};
template <class Message>
struct Form;
template <>
struct Form<RequestMessage> : FormOf<RequestBytes, ConnectionAttribute::request> {};
template <>
struct Form<ReplyMessage> : FormOf<ReplyBytes, ConnectionAttribute::reply> {};
template <>
struct Form<ReadyMessage> : FormOf<ReadyBytes, ConnectionAttribute::ready_to_use> {};
template <>
struct Form<RejectMessage> : FormOf<RejectBytes, ConnectionAttribute::reject> {};
template <>
struct Form<DisconnectMessage> : FormOf<DisconnectBytes, ConnectionAttribute::disconnect_request> {
};
template <>
struct Form<DisconnectedMessage> : FormOf<ReadyBytes, ConnectionAttribute::disconnect_reply> {};
template <>
struct Form<ReceiptMessage> : FormOf<ReceiptBytes, ConnectionAttribute::message_receipt> {};

template <class Message>
std::optional<ConnectionMessage> read_as(std::uint64_t transaction, const std::byte* at) {
  typename Form<Message>::Bytes bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  Message message;
  if (!read(bytes, message)) return std::nullopt;
  return ConnectionMessage{transaction, message};
}

}  // namespace

std::uint64_t cookie_of(const RejectMessage& reject) {
  if (reject.rejected != ConnectionStep::request) return 0;
  if (reject.reason != RejectReason::no_resources) return 0;
  CookieBytes bytes;
  std::memcpy(&bytes, reject.private_data.data(), sizeof bytes);
  return get(bytes.magic) == kCookieMagic ? get(bytes.cookie) : 0;
}

void set_cookie(RejectMessage& reject, std::uint64_t cookie) {
  reject.rejected = ConnectionStep::request;
  reject.reason = RejectReason::no_resources;
  CookieBytes bytes;
  put(bytes.magic, kCookieMagic);
  put(bytes.cookie, cookie);
  std::memcpy(reject.private_data.data(), &bytes, sizeof bytes);
}

std::optional<ConnectionMessage> parse_message(std::span<const std::byte> mad) {
  if (mad.size() != kMadBytes) return std::nullopt;
  MadBytes header;
  std::memcpy(&header, mad.data(), sizeof header);
  // Answers have the method of questions: what a message is, its attribute alone says.
  if (header.base_version != kMadBaseVersion || header.management_class != kMadClassConnection ||
      header.class_version != kMadClassVersion || header.method != kMadMethodSend) {
    return std::nullopt;
  }
  const std::uint64_t transaction = get(header.transaction);
  const std::byte* const at = mad.data() + sizeof header;
  using enum ConnectionAttribute;
  switch (static_cast<ConnectionAttribute>(get(header.attribute))) {
    case request: return read_as<RequestMessage>(transaction, at);
    case reply: return read_as<ReplyMessage>(transaction, at);
    case ready_to_use: return read_as<ReadyMessage>(transaction, at);
    case reject: return read_as<RejectMessage>(transaction, at);
    case disconnect_request: return read_as<DisconnectMessage>(transaction, at);
    case disconnect_reply: return read_as<DisconnectedMessage>(transaction, at);
    case message_receipt: return read_as<ReceiptMessage>(transaction, at);
  }
  return std::nullopt;
}

void write_message(std::byte* to, const ConnectionMessage& message) {
  MadBytes header{};
  header.base_version = kMadBaseVersion;
  header.management_class = kMadClassConnection;
  header.class_version = kMadClassVersion;
  header.method = kMadMethodSend;
  put(header.transaction, message.transaction);
  std::visit(
      [&header, to]<class Message>(const Message& body) {
        typename Form<Message>::Bytes bytes{};
        write(body, bytes);
        std::memcpy(to + sizeof header, &bytes, sizeof bytes);
        put(header.attribute, static_cast<std::uint16_t>(Form<Message>::kAttribute));
      },
      message.body);
  std::memcpy(to, &header, sizeof header);
}

std::optional<ConnectionMessage> parse_message(const Packet& packet) {
  if (packet.bth.opcode != PacketOpcode::datagram_send_only ||
      packet.bth.destination != kConnectionPair || packet.deth.queue_key != kConnectionQueueKey) {
    return std::nullopt;
  }
  return parse_message(packet.payload);
}

std::size_t write_message_packet(std::byte* to, const ConnectionMessage& message,
                                 std::uint32_t psn) {
  Headers headers;
  headers.bth.opcode = PacketOpcode::datagram_send_only;
  headers.bth.destination = kConnectionPair;
  headers.bth.psn = psn;
  headers.deth = {kConnectionQueueKey, kConnectionPair};
  const std::size_t bytes = write_headers(to, headers);
  write_message(to + bytes, message);
  return bytes + kMadBytes;
}

std::uint32_t undelivered_bytes(const DisconnectMessage& message) {
  return base::load_be<std::uint32_t>(message.private_data.data());
}

void set_undelivered_bytes(DisconnectMessage& message, std::uint32_t bytes) {
  base::store_be(message.private_data.data(), bytes);
}

}  // namespace espalier::fabric::roce
