// SPDX-License-Identifier: Apache-2.0
// Requests for connections in names of machines that may not be where they say: what an endpoint
// does for them before it knows. Each check returns what is wrong, in words; empty: nothing.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/testing/hand_peer.hpp"

namespace espalier::fabric::roce {

/// An endpoint that receives requests from any address, and what it has sent to each.
class AskedScene {
 public:
  struct Sent {
    PortAddress to;
    std::size_t bytes = 0;
    PacketOpcode opcode{};
    std::optional<ConnectionMessage> message;  // if it is one
  };

  explicit AskedScene(std::uint64_t seed) : random(seed), scene(random()) {
    scene.network.tap = [this](const PortAddress& from, const PortAddress& to, auto ib) {
      if (from != HandScene::address()) return;
      const auto packet = parse(ib);
      if (packet) sent.push_back({to, ib.size(), packet->bth.opcode, parse_message(*packet)});
    };
  }

  /// An address without a port here.
  PortAddress unknown_peer() {
    return {IpAddress::v4(10, 1, static_cast<std::uint8_t>(random()),
                          static_cast<std::uint8_t>(random())),
            static_cast<std::uint16_t>(random.between(1024, 49151))};
  }
  RequestMessage request_from(const PortAddress& from) {
    RequestMessage asked;
    asked.ids.local = static_cast<std::uint32_t>(random()) | 1;
    asked.service_id = service_id(7);
    asked.local_pair = static_cast<std::uint32_t>(random.below(1u << 24));
    asked.starting_psn = static_cast<std::uint32_t>(random.below(1u << 24));
    asked.responder_resources = 16;
    asked.mtu = mtu_code(1024);
    set_ip_service(asked, {from.udp_port, from.ip, HandScene::address().ip});
    return asked;
  }
  void say(const PortAddress& from, const RequestMessage& asked, std::uint64_t transaction = 1) {
    const PortAddress to = HandScene::address();
    std::vector<std::byte> ib(kMessagePacketBytes);
    write_message_packet(ib.data(), {transaction, asked}, 0);
    Icrc({from.ip, to.ip, from.udp_port, to.udp_port, true}).seal(ib);
    scene.network.inject(from, to, ib);
  }
  /// The cookie that was sent there last; 0: none.
  [[nodiscard]] std::uint64_t cookie_for(const PortAddress& to) const {
    for (auto at = sent.rbegin(); at != sent.rend(); ++at) {
      if (at->to != to || !at->message) continue;
      const auto* const reject = std::get_if<RejectMessage>(&at->message->body);
      if (reject != nullptr) return cookie_of(*reject);
    }
    return 0;
  }
  /// So many that are not heard of again, and that the application thinks about.
  void fill(std::size_t count = Connector::kUnprovenMax) {
    for (std::size_t i = 0; i < count; ++i) {
      const PortAddress from = unknown_peer();
      say(from, request_from(from));
      scene.turn(2);
      while (const auto request = scene.endpoint.next_request()) waiting.push_back(*request);
    }
    sent.clear();
  }
  /// Lets so much time go by, in which the endpoint has nothing else to do.
  void rest(std::uint64_t ns) {
    const std::uint64_t until = scene.network.now_ns() + ns;
    while (scene.network.now_ns() < until) {
      scene.network.advance(1'000'000);
      for (int i = 0; i < 20; ++i) scene.endpoint.progress();  // its clock is looked at seldom
    }
  }
  [[nodiscard]] const EndpointCounters& counters() const { return scene.endpoint.counters(); }

  base::Random random;
  HandScene scene;
  std::vector<Sent> sent;
  std::vector<ConnectRequest> waiting;
};

/// Where many are not proven, a REQ gets one REJ, no longer than it is, and nothing is kept of it;
/// it is taken with the cookie of that REJ, and with no other.
inline std::string only_its_cookie_brings_a_request_in(std::uint64_t seed) {
  AskedScene s(seed);
  s.fill();
  const std::size_t full = s.scene.endpoint.connections();
  const PortAddress from = s.unknown_peer();
  const RequestMessage asked = s.request_from(from);
  s.say(from, asked);
  s.rest(2'000'000'000);
  if (s.sent.size() != 1) return std::to_string(s.sent.size()) + " packets for a REQ";
  if (s.sent[0].bytes > kMessagePacketBytes) return "the answer is longer";
  if (s.scene.endpoint.connections() > full) return "a REQ without a cookie is kept";
  const std::uint64_t cookie = s.cookie_for(from);
  if (cookie == 0) return "no cookie came";

  const auto is_taken = [&](const PortAddress& where, const RequestMessage& request) {
    s.say(where, request);
    s.scene.turn(2);
    return s.scene.endpoint.next_request().has_value();
  };
  const auto with = [&](auto&& change) {
    RequestMessage request = asked;
    set_cookie(request, cookie);
    change(request);
    return request;
  };
  struct Other {
    const char* what;
    RequestMessage request;
  };
  const Other others[] = {
      {"another cookie", with([](RequestMessage& r) { r.local_ca_guid ^= 1; })},
      {"another number", with([](RequestMessage& r) { r.ids.local ^= 2; })},
      {"another pair", with([](RequestMessage& r) { r.local_pair ^= 1; })},
      {"another PSN", with([](RequestMessage& r) { r.starting_psn ^= 1; })},
  };
  for (const Other& other : others) {
    if (is_taken(from, other.request)) return std::string(other.what) + " is taken";
  }
  PortAddress beside = from;
  ++beside.udp_port;
  if (is_taken(beside, with([](auto&) {}))) return "a cookie is good from another port";
  beside = from;
  beside.ip.bytes[3] ^= 1;
  if (is_taken(beside, with([](auto&) {}))) return "a cookie is good from another address";
  if (!is_taken(from, with([](auto&) {}))) return "its own cookie is not taken";
  return "";
}

/// A cookie is good for two periods at most, and for one at least.
inline std::string a_cookie_is_good_for_a_time(std::uint64_t seed) {
  for (const bool late : {false, true}) {
    AskedScene s(seed);
    const PortAddress from = s.unknown_peer();
    RequestMessage asked = s.request_from(from);
    s.fill();
    s.say(from, asked);
    s.scene.turn(2);
    set_cookie(asked, s.cookie_for(from));
    s.rest((late ? 2 : 1) * ConnectionCookies::kPeriodNs - 1'000'000'000);
    s.fill(Connector::kUnprovenMax - s.scene.endpoint.unproven());
    if (late) s.rest(1'100'000'000);
    s.say(from, asked);
    s.scene.turn(2);
    const bool taken = s.scene.endpoint.next_request().has_value();
    if (taken == late) return late ? "an old cookie is taken" : "a cookie is not taken";
  }
  return "";
}

/// Whatever becomes of the request of a machine that says nothing else, what is sent there is no
/// more than three times what came from there, and nothing of its pair.
inline std::string an_unproven_peer_gets_little(std::uint64_t seed) {
  enum class End { left, closed, refused };
  for (const End end : {End::left, End::closed, End::refused}) {
    for (const std::uint32_t requests : {1u, 2u}) {
      AskedScene s(seed);
      const PortAddress from = s.unknown_peer();
      const RequestMessage asked = s.request_from(from);
      s.say(from, asked);
      s.scene.turn(2);
      const auto request = s.scene.endpoint.next_request();
      if (!request) return "it is not asked";
      std::unique_ptr<QueuePair> pair;
      std::vector<std::byte> challenge(56);
      if (end == End::refused) {
        s.scene.endpoint.reject(*request);
      } else {
        pair = *s.scene.endpoint.accept(*request, s.scene.options(), {});
        static_cast<void>(pair->post(WorkRequest::send(1, challenge)));
      }
      s.rest(20'000'000);
      if (requests == 2) s.say(from, asked);
      s.rest(20'000'000);
      if (end == End::closed) pair->close();
      s.rest(5'000'000'000);
      std::size_t bytes = 0;
      for (const AskedScene::Sent& each : s.sent) {
        bytes += each.bytes;
        if (!each.message) return "a packet of the pair is sent";
      }
      if (bytes > Connector::kAmplification * requests * kMessagePacketBytes) {
        return std::to_string(bytes) + " bytes for " + std::to_string(requests) + " requests";
      }
      if (s.sent.size() < requests) return "a request is not answered";
      static_cast<void>(s.scene.completions());
    }
  }
  return "";
}

/// If everything arrives in one turn, the packets of pairs are answered before connection messages,
/// of which a bounded number is handled.
inline std::string pairs_are_served_first(std::uint64_t seed) {
  AskedScene s(seed);
  HandPeer peer(s.scene.network, HandScene::address(1), HandScene::address());
  const auto pair = s.scene.from(peer);
  const RemoteRegion& region = s.scene.region.remote();
  s.fill();
  for (std::uint32_t i = 0; i < 24; ++i) {
    const PortAddress from = s.unknown_peer();
    s.say(from, s.request_from(from));
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    peer.send(request(PacketOpcode::write_only, peer.psn + i, {region.at(0), region.key, 8}),
              std::vector<std::byte>(8));
  }
  s.scene.network.advance(10'000);
  s.scene.endpoint.progress();
  const auto is_answer = [](const AskedScene::Sent& each) {
    return each.opcode == PacketOpcode::acknowledge;
  };
  if (std::ranges::count_if(s.sent, is_answer) == 0) return "the pair waits for another turn";
  const auto last = std::find_if(s.sent.rbegin(), s.sent.rend(), is_answer);
  const auto after = static_cast<std::size_t>(last - s.sent.rbegin());
  const auto messages = static_cast<std::size_t>(
      std::ranges::count_if(s.sent, [](const auto& each) { return each.message.has_value(); }));
  if (messages > RoceEndpoint::kMessagesPerTurn) return "too many messages in a turn";
  if (after != messages) return "a connection message is answered before a pair's packet";
  return messages == 0 ? "no message is answered" : "";
}

}  // namespace espalier::fabric::roce
