// SPDX-License-Identifier: Apache-2.0
// A peer of `roce` that a test plays by hand, packet by packet, right or wrong; and an endpoint for
// it to play with.
// Thread: one.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::fabric::roce {

/// A packet that the peer has got.
struct Heard {
  Headers headers;
  std::vector<std::byte> payload;
  std::vector<std::byte> ib;
};

class HandPeer {
 public:
  HandPeer(PacketNetwork& network, const PortAddress& address, const PortAddress& of_endpoint)
      : own(address), to(of_endpoint), network_(network), port_(network.open(address)) {}

  void say(const ConnectionMessage& message) {
    std::vector<std::byte> ib(kMessagePacketBytes);
    write_message_packet(ib.data(), message, 0);
    inject(std::move(ib));
  }
  /// To the pair that it is connected with.
  void send(Headers headers, std::span<const std::byte> payload = {}) {
    headers.bth.destination = pair;
    send_as_it_is(headers, payload);
  }
  void send_as_it_is(Headers headers, std::span<const std::byte> payload = {}) {
    headers.bth.pad = pad_of(payload.size());
    std::vector<std::byte> ib(packet_bytes(headers.bth.opcode, payload.size()));
    write_packet(ib.data(), headers, payload);
    inject(std::move(ib));
  }
  /// Any bytes, with the right ICRC if they are enough for one.
  void inject(std::vector<std::byte> ib) {
    if (ib.size() >= 16) Icrc({own.ip, to.ip, own.udp_port, to.udp_port, true}).seal(ib);
    network_.inject(own, to, ib);
  }
  std::vector<Heard> hear() {
    std::vector<Heard> heard;
    for (auto burst = port_->receive(); !burst.empty(); burst = port_->receive()) {
      for (const Arrived& arrived : burst) {
        const auto packet = parse(arrived.ib);
        if (!packet) continue;
        heard.push_back({*packet,
                         {packet->payload.begin(), packet->payload.end()},
                         {arrived.ib.begin(), arrived.ib.end()}});
        if (packet->bth.opcode != PacketOpcode::datagram_send_only) continue;
        if (const auto message = parse_message(*packet)) messages.push_back(*message);
      }
    }
    return heard;
  }
  /// The last message of a kind that it has heard, or null.
  template <class Message>
  const Message* last() const {
    for (auto at = messages.rbegin(); at != messages.rend(); ++at) {
      if (const auto* found = std::get_if<Message>(&at->body)) return found;
    }
    return nullptr;
  }

  PortAddress own;
  PortAddress to;
  ConnectionIds ids;                        // its own first
  std::uint32_t pair = 0;                   // the endpoint's number
  std::uint32_t number = 77;                // its own
  std::uint32_t psn = 1000;                 // of its next request
  std::uint32_t peer_psn = 0;               // of the endpoint's first
  std::vector<ConnectionMessage> messages;  // that it has heard

 private:
  PacketNetwork& network_;
  std::unique_ptr<PacketPort> port_;
};

/// An endpoint with a region, which hand-played peers connect to, or it to them.
class HandScene {
 public:
  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

  explicit HandScene(std::uint64_t seed)
      : network(seed),
        memory(kMemoryBytes),
        endpoint(network.open(address()), *RegionTable::create(seed), NumberSource::of_seed(seed)),
        queue(endpoint, 8192),
        region(*endpoint.regions().offer(
            {memory.data(), memory.size()},
            RemoteRights::read | RemoteRights::write | RemoteRights::atomic)) {
    static_cast<void>(endpoint.listen("7"));
  }
  static PortAddress address(std::uint8_t last = 2) {
    return {IpAddress::v4(10, 0, 0, last), 4791};
  }
  QueuePairOptions options() {
    QueuePairOptions made;
    made.sends = &queue;
    made.delayed_acks = delayed_acks;
    made.domain = domain;
    return made;
  }
  void turn(int times = 1) {
    for (; times != 0; --times) {
      endpoint.progress();
      network.advance(10'000);
    }
  }
  /// A pair that the peer has asked for. `ready`: the peer says that it has heard.
  std::unique_ptr<QueuePair> from(HandPeer& peer, std::uint32_t mtu = 1024, bool ready = true) {
    RequestMessage asked;
    peer.ids.local = static_cast<std::uint32_t>(endpoint.draw()) | 1;
    asked.ids.local = peer.ids.local;
    asked.service_id = service_id(7);
    asked.local_pair = peer.number;
    asked.starting_psn = peer.psn;
    asked.responder_resources = 16;
    asked.mtu = mtu_code(mtu);
    set_ip_service(asked, {peer.own.udp_port, peer.own.ip, peer.to.ip});
    peer.say({1, asked});
    turn(2);
    const auto request = endpoint.next_request();
    if (!request) return nullptr;
    auto pair = endpoint.accept(*request, options(), {});
    turn(2);
    peer.hear();
    const ReplyMessage& reply = *peer.last<ReplyMessage>();
    peer.ids.remote = reply.ids.local;
    peer.pair = reply.local_pair;
    peer.peer_psn = reply.starting_psn;
    if (ready) peer.say({1, ReadyMessage{peer.ids, {}}});
    turn(2);
    return std::move(*pair);
  }
  /// A pair that asks the peer.
  std::unique_ptr<QueuePair> to(HandPeer& peer, bool answer = true) {
    auto pair = *endpoint.connect(to_text(peer.own) + "/9", options(), {});
    turn(2);
    peer.hear();
    const RequestMessage& asked = *peer.last<RequestMessage>();
    peer.ids = {12345, asked.ids.local};
    peer.pair = asked.local_pair;
    peer.peer_psn = asked.starting_psn;
    if (answer) reply(peer);
    return pair;
  }
  void reply(HandPeer& peer) {
    ReplyMessage reply;
    reply.ids = peer.ids;
    reply.local_pair = peer.number;
    reply.starting_psn = peer.psn;
    reply.responder_resources = 16;
    peer.say({1, reply});
    turn(2);
    peer.hear();
  }
  [[nodiscard]] std::vector<Completion> completions() {
    std::vector<Completion> all(queue.waiting());
    all.resize(queue.poll(all));
    return all;
  }
  [[nodiscard]] Pair& engine(const HandPeer& peer) const { return *endpoint.find(peer.pair); }

  bool delayed_acks = false;  // pairs that are made from now on
  Domain domain = 0;          // the same
  PacketNetwork network;
  std::vector<std::byte> memory;
  RoceEndpoint endpoint;
  CompletionQueue queue;
  Registration region;
};

/// A request's headers.
inline Headers request(PacketOpcode opcode, std::uint32_t psn, const Reth& reth = {}) {
  Headers made;
  made.bth.opcode = opcode;
  made.bth.psn = psn & wire::roce::kMask24;
  made.bth.ask_acknowledge = true;
  made.reth = reth;
  return made;
}
inline Headers fetch_add_request(std::uint32_t psn, std::uint64_t address, RegionKey key,
                                 std::uint64_t add) {
  Headers made = request(PacketOpcode::fetch_add, psn);
  made.atomic = {address, key, add, 0};
  return made;
}
/// An acknowledgement, or a refusal, of this PSN.
inline Headers acknowledgement(std::uint32_t psn, const Aeth& aeth) {
  Headers made;
  made.bth.opcode = PacketOpcode::acknowledge;
  made.bth.psn = psn & wire::roce::kMask24;
  made.aeth = aeth;
  return made;
}
/// How many there are of an opcode.
inline std::size_t count_of(const std::vector<Heard>& heard, PacketOpcode opcode) {
  std::size_t count = 0;
  for (const Heard& each : heard) count += each.headers.bth.opcode == opcode ? 1 : 0;
  return count;
}

}  // namespace espalier::fabric::roce
