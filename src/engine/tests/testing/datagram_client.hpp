// SPDX-License-Identifier: Apache-2.0
// For tests: a client of datagrams, and the node's reader of them, with nothing between that loses
// or changes any but the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/datagram_tag.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/offload/datagram_reads.hpp"

namespace espalier::offload {

inline constexpr DatagramSource kHere{fabric::roce::IpAddress::v4(10, 0, 0, 1), 5000};
inline constexpr DatagramSource kElsewhere{fabric::roce::IpAddress::v4(10, 0, 0, 2), 5000};

/// A node with a map, its reader, and what that has sent.
class DatagramNode {
 public:
  struct Sent {
    DatagramSource to;
    std::string bytes;
  };

  DatagramNode()
      : sessions({{}, 4000}, crypto::SecretBytes{std::byte{42}}),
        putter_(node.connect(kLongRequests)),
        reads(node.services(), sessions, 0) {}

  /// Takes one, and returns what is sent then.
  std::vector<Sent> take(std::string_view bytes, const DatagramSource& from) {
    now_ns += pace_ns;
    reads.take(std::as_bytes(std::span(bytes)), from, now_ns);
    while (reads.step()) continue;
    std::vector<Sent> sent;
    for (const auto& reply : reads.replies()) {
      const auto* const text = reinterpret_cast<const char*>(reply.datagram.data());
      sent.push_back({reply.to, {text, reply.bytes}});
    }
    reads.forget_replies();
    return sent;
  }
  void put(std::string_view key, std::string_view value, std::uint32_t map = 0) {
    const auto header = request_of(wire::OffloadId::put, map != 0 ? map : node.map());
    if (!node.call(putter_, header, key, value).applied()) throw std::runtime_error("no put");
  }
  [[nodiscard]] std::uint64_t dropped() const { return sessions.counts.dropped; }

  SchedulerFixture node;
  DatagramSessions sessions;
  std::uint64_t now_ns = 0;
  std::uint64_t pace_ns = DatagramSession::kHelloIntervalNs;  // from one datagram to the next

 private:
  SchedulerFixture::Client& putter_;

 public:
  DatagramReads reads;
};

/// One session, as its client knows it.
class DatagramClient {
 public:
  /// `user`: whose sessions share a rate.
  explicit DatagramClient(DatagramNode& node, Access access = Access::everything(),
                          std::uint32_t user = 1)
      : node_(node), connection_(node.node.connect(kSmallRings, user)) {
    connection_.connection->access = std::move(access);
    open();
  }
  /// A new session, in place of the one before.
  void open() {
    crypto::SecretBytes proven{};
    proven[3] = std::byte{9};
    const auto offer = node_.sessions.open(*connection_.connection, 0, &proven);
    if (!offer || !crypto::datagram_key(proven, *offer, key)) throw std::runtime_error("none");
    session = offer->session;
  }
  void end() { node_.node.disconnect(connection_); }

  [[nodiscard]] std::string made(wire::DatagramKind kind, std::uint64_t said_number,
                                 std::string_view text, std::uint32_t map = 0,
                                 std::uint64_t hint = 0) const {
    wire::DatagramRequest header{};
    header.magic = wire::kDatagramMagic;
    header.version = wire::kDatagramVersion;
    header.kind = static_cast<std::uint8_t>(kind);
    header.key_bytes = static_cast<std::uint16_t>(text.size());
    header.session = session;
    header.number = said_number;
    header.map = map;
    header.hint = hint;
    std::string bytes(sizeof header, '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += text;
    if (!crypto::sign_request(key, std::as_writable_bytes(std::span(bytes)))) {
      throw std::runtime_error("no libcrypto");
    }
    return bytes;
  }
  [[nodiscard]] std::string hello() {
    return made(wire::DatagramKind::hello, ++number, std::string(wire::kChallengeBytes, '\0'));
  }
  [[nodiscard]] std::string proof(std::string_view challenge) {
    return made(wire::DatagramKind::proof, ++number, challenge);
  }
  [[nodiscard]] std::string get(std::string_view item, std::uint64_t hint = 0) {
    return made(wire::DatagramKind::get, ++number, item, node_.node.map(), hint);
  }

  /// What was sent, if it is one reply of this session to that address, with a right tag.
  [[nodiscard]] std::optional<wire::TakenReply> reply_in(
      const std::vector<DatagramNode::Sent>& sent, const DatagramSource& to) {
    if (sent.size() != 1 || sent.front().to != to) return {};
    last_ = sent.front().bytes;
    const auto bytes = std::as_bytes(std::span(last_));
    const auto reply = wire::read_datagram_reply(bytes);
    if (!reply || reply->header.session != session) return {};
    return crypto::is_signed_reply(key, bytes) ? reply : std::nullopt;
  }
  /// Proves an address. Returns whether the node says so.
  bool prove(const DatagramSource& from) {
    const auto challenge = reply_in(node_.take(hello(), from), from);
    if (!challenge) return false;
    const std::string said(challenge->payload);
    const auto proved = reply_in(node_.take(proof(said), from), from);
    return proved && proved->header.kind == static_cast<std::uint8_t>(wire::DatagramKind::proved);
  }
  /// The status of a get's answer; invalid: there is none.
  wire::DatagramStatus ask(std::string_view bytes, const DatagramSource& from) {
    const auto reply = reply_in(node_.take(bytes, from), from);
    if (!reply) return wire::DatagramStatus::invalid;
    value = reply->payload;
    version = reply->header.item_version;
    answered = reply->header.number;
    return static_cast<wire::DatagramStatus>(reply->header.status);
  }

  crypto::SecretBytes key{};
  std::uint64_t session = 0;
  std::uint64_t number = 0;
  std::string value;  // of the last answer, with the next two
  std::uint64_t version = 0;
  std::uint64_t answered = 0;

 private:
  DatagramNode& node_;
  SchedulerFixture::Client& connection_;
  std::string last_;
};

/// Reads come from addresses that were never proved, or are not any more. Returns what is wrong;
/// empty: nothing.
inline std::string reads_from_unproved_addresses() {
  DatagramNode node;
  node.put("a", "1");
  DatagramClient client(node);
  if (!node.take(client.get("a"), kHere).empty()) return "a read of a new session is answered";
  if (!client.prove(kHere)) return "an address cannot be proved";
  if (!node.take(client.get("a"), kElsewhere).empty()) return "another address is answered";
  if (!client.prove(kElsewhere)) return "the next address cannot be proved";
  if (!node.take(client.get("a"), kHere).empty()) return "the address before is answered";
  if (client.ask(client.get("a"), kElsewhere) != wire::DatagramStatus::found) {
    return "the address that was proved is not answered";
  }
  return {};
}

}  // namespace espalier::offload
