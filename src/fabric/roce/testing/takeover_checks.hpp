// SPDX-License-Identifier: Apache-2.0
// Session takeover: a node and a client on one machine, as two users' processes, and an attacker
// with more and more knowledge of them. Each check returns what went wrong; empty: nothing did.
//
// What the attacker sends is put straight into the ports, whole, so that millions of packets take
// seconds. Whatever an endpoint says while it is attacked is an answer to that, for time stands
// still then.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::fabric::roce::takeover {

/// A port into which packets can be put, from anywhere.
class AttackedPort final : public PacketPort {
 public:
  explicit AttackedPort(std::unique_ptr<PacketPort> port) : port_(std::move(port)) {
    bytes_.reserve(kForgedMax * kPacketBytesMax);
  }
  [[nodiscard]] PortAddress address() const override { return port_->address(); }
  [[nodiscard]] std::uint32_t window_bytes() const override { return port_->window_bytes(); }
  std::byte* begin(const PortAddress& to, std::size_t bytes) override {
    written_ = {port_->begin(to, bytes), bytes};
    return written_.data();
  }
  void seal() override {
    ++sent;
    std::vector<std::byte> whole(written_.begin(), written_.end());
    whole.resize(whole.size() + wire::roce::kIcrcBytes);
    port_->seal();
    const auto packet = parse(whole);
    if (!packet || packet->bth.opcode != PacketOpcode::datagram_send_only) return;
    if (const auto message = parse_message(*packet)) messages.push_back(*message);
  }
  void flush() override { port_->flush(); }
  std::span<const Arrived> receive() override {
    if (forged_.empty()) return port_->receive();
    burst_ = std::exchange(forged_, {});
    return burst_;
  }
  [[nodiscard]] std::uint64_t now_ns() const override { return port_->now_ns(); }
  void wait(std::uint64_t timeout_ns) override { port_->wait(timeout_ns); }
  void wake() override { port_->wake(); }

  static constexpr std::size_t kForgedMax = 64;
  static constexpr std::size_t kPacketBytesMax = 1200;

  /// What begins here arrives with the next turn. Requires: no more than kForgedMax at a time.
  std::span<std::byte> forge(const PortAddress& from, std::size_t bytes) {
    if (forged_.empty()) bytes_.clear();  // what was taken is dealt with
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    const std::span<std::byte> made(bytes_.data() + at, bytes);
    forged_.push_back({from, made});
    return made;
  }
  [[nodiscard]] std::size_t forged() const { return forged_.size(); }

  std::uint64_t sent = 0;                   // packets
  std::vector<ConnectionMessage> messages;  // of these

 private:
  std::unique_ptr<PacketPort> port_;
  std::span<std::byte> written_;
  std::vector<std::byte> bytes_;
  std::vector<Arrived> forged_;
  std::vector<Arrived> burst_;
};

/// The node, or the client.
struct End {
  static constexpr std::size_t kMemoryBytes = 4096;

  End(std::unique_ptr<AttackedPort> attacked, std::uint64_t seed)
      : port(*attacked),
        endpoint(std::move(attacked), *RegionTable::create(seed), NumberSource::of_seed(seed + 1)),
        queue(endpoint, 64),
        memory(kMemoryBytes),
        model(kMemoryBytes),
        region(*endpoint.regions().offer(
            {memory.data(), memory.size()},
            RemoteRights::read | RemoteRights::write | RemoteRights::atomic)) {}

  [[nodiscard]] const Pair& engine() const { return static_cast<const Pair&>(*pair); }

  AttackedPort& port;
  RoceEndpoint endpoint;
  CompletionQueue queue;
  std::vector<std::byte> memory;
  std::vector<std::byte> model;  // what the memory must be
  Registration region;
  std::array<std::byte, 64> room{};  // for a message
  std::unique_ptr<QueuePair> pair;
  ConnectionIds ids;           // its own first
  std::uint32_t requests = 0;  // that it has sent, one packet each
};

class Scene {
 public:
  Scene(std::uint64_t seed, const IpAddress& ip, std::uint16_t node_port)
      : random(seed),
        network(random()),
        node(std::make_unique<AttackedPort>(network.open({ip, node_port})), random()),
        client(std::make_unique<AttackedPort>(network.open({ip, kClientPort})), random()) {
    static_cast<void>(node.endpoint.listen("7"));
    client.pair =
        *client.endpoint.connect(to_text(node.port.address()) + "/7", options(client), {});
  }
  static constexpr std::uint16_t kClientPort = 20001;
  /// Requests of each end, one packet each, in a call of works().
  static constexpr std::uint32_t kRequests = 4;

  /// The node decides, and both ends hear of it.
  std::string connect() {
    for (int i = 0; i < 100 && client.pair->state() == QueuePair::State::connecting; ++i) {
      turn();
      const auto request = node.endpoint.next_request();
      if (request) node.pair = *node.endpoint.accept(*request, options(node), {});
    }
    if (client.pair->state() != QueuePair::State::connected || !node.pair) return "no session";
    for (int i = 0; i < 10; ++i) turn();
    for (const ConnectionMessage& message : node.port.messages) {
      const auto* const reply = std::get_if<ReplyMessage>(&message.body);
      if (reply != nullptr) node.ids = reply->ids;
    }
    client.ids = {node.ids.remote, node.ids.local};
    return "";
  }
  /// Both ends use all verbs, and the attacker has changed nothing.
  std::string works() {
    std::string wrong = works(client, node);
    if (wrong.empty()) wrong = works(node, client);
    return wrong;
  }
  [[nodiscard]] End& other(const End& end) { return &end == &node ? client : node; }
  /// The PSN of the next request that the end sends.
  [[nodiscard]] static std::uint32_t next_psn(const End& of) {
    return psn_plus(of.engine().first_psn(), of.requests);
  }
  /// A packet arrives at the end's pair, or another one if the headers say so.
  void forge(End& at, const PortAddress& from, Headers headers,
             std::span<const std::byte> payload) {
    headers.bth.pad = pad_of(payload.size());
    const auto ib = at.port.forge(from, packet_bytes(headers.bth.opcode, payload.size()));
    write_packet(ib.data(), headers, payload);
  }
  void forge(End& at, const PortAddress& from, const ConnectionMessage& message) {
    write_message_packet(at.port.forge(from, kMessagePacketBytes).data(), message, 0);
  }
  /// What is forged arrives. Returns how many packets leave for it.
  std::uint64_t take_forged(End& at) {
    const std::uint64_t before = at.port.sent;
    at.endpoint.progress();
    at.endpoint.progress();
    return at.port.sent - before;
  }
  /// A request or an answer with right keys and anything else in it.
  Headers draw_headers(End& at) {
    Headers made;
    made.bth.opcode = static_cast<PacketOpcode>(random.below(0x15));
    made.bth.destination = at.pair->number();
    made.bth.ask_acknowledge = true;
    const RemoteRegion& region = at.region.remote();
    made.reth = {region.at(0), region.key, kPayloadBytes};
    made.atomic = {region.at(0), region.key, 1, 0};
    if (random.chance(0.5)) made.aeth = Aeth::nak(0, NakCode::remote_access);
    return made;
  }
  [[nodiscard]] static bool is_answer(const Headers& headers) {
    return headers.bth.opcode >= PacketOpcode::read_response_first &&
           headers.bth.opcode <= PacketOpcode::atomic_acknowledge;
  }
  [[nodiscard]] std::span<const std::byte> payload_for(const Headers& headers) const {
    if (!parts_of(headers.bth.opcode).has(Parts::kPayload)) return {};
    return payload_;
  }
  [[nodiscard]] static QueuePairOptions options(End& end) {
    QueuePairOptions made;
    made.sends = &end.queue;
    made.mtu_bytes = 1024;
    return made;
  }
  void turn() {
    client.endpoint.progress();
    node.endpoint.progress();
    network.advance(10'000);
  }

  base::Random random;
  PacketNetwork network;
  End node;
  End client;

 private:
  static constexpr std::uint32_t kPayloadBytes = 32;

  std::string works(End& from, End& to) {
    std::array<std::byte, 64> bytes;
    random.fill(bytes);
    std::array<std::byte, 64> into{};
    const RemoteRegion& region = to.region.remote();
    const std::uint64_t place = 64 * random.between(1, 60);
    const auto word = base::load_plain<std::uint64_t>(to.model.data());
    const Receive receive{9, to.room};
    if (to.pair->post_receives({&receive, 1}) != 1) return "the pair takes no receive";
    const std::array<WorkRequest, kRequests> requests{
        WorkRequest::write(1, bytes, region.key, region.at(place)),
        WorkRequest::read(2, into, region.key, region.at(place)),
        WorkRequest::fetch_add(3, region.key, region.at(0), 5), WorkRequest::send(4, bytes)};
    if (from.pair->post(requests).taken != kRequests) return "the pair takes no requests";
    for (int i = 0; i < 10'000 && from.queue.waiting() < kRequests; ++i) turn();
    std::array<Completion, 8> completions;
    if (from.queue.poll(completions) != kRequests) return "requests do not end";
    for (std::uint64_t i = 0; i < kRequests; ++i) {
      if (completions[i].status != Status::success) return "a request failed";
    }
    from.requests += kRequests;
    if (completions[2].old_value != word) return "somebody else has added";
    if (into != bytes) return "a READ brought something else";
    if (to.queue.poll(completions) != 1 || completions[0].status != Status::success) {
      return "somebody else's message has come";
    }
    if (to.room != bytes) return "another message has come";
    std::copy(bytes.begin(), bytes.end(), to.model.begin() + static_cast<std::ptrdiff_t>(place));
    base::store_plain(to.model.data(), word + 5);
    return to.memory == to.model ? "" : "somebody else has written";
  }

  std::vector<std::byte> payload_ = std::vector<std::byte>(kPayloadBytes, std::byte{0xBD});
};

/// Source ports of other processes of the machine: some look like network cards.
inline PortAddress other_port(Scene& scene) {
  PortAddress from = scene.node.port.address();
  const std::uint16_t taken = from.udp_port;
  const bool high = scene.random.chance(0.5);
  do {
    from.udp_port = static_cast<std::uint16_t>(high ? scene.random.between(kFlowPorts, 65535)
                                                    : scene.random.between(1, kFlowPorts - 1));
  } while (from.udp_port == taken || from.udp_port == Scene::kClientPort);
  return from;
}

/// The allowed answers to a message that names another's connection: those to one that names none.
inline std::uint64_t answers_allowed(const ConnectionMessage& message) {
  const bool asks = std::holds_alternative<DisconnectMessage>(message.body) ||
                    std::holds_alternative<ReplyMessage>(message.body);
  return asks ? 1 : 0;
}

inline ConnectionMessage draw_message(base::Random& random, const ConnectionIds& ids) {
  switch (random.below(6)) {
    case 0: {
      ReplyMessage reply;
      reply.ids = ids;
      return {random(), reply};
    }
    case 1: return {random(), ReadyMessage{ids, {}}};
    case 2: {
      RejectMessage reject;
      reject.ids = ids;
      return {random(), reject};
    }
    case 3: return {random(), DisconnectMessage{ids, 0, {}}};
    case 4: return {random(), DisconnectedMessage{ids, {}}};
    default: {
      ReceiptMessage receipt;
      receipt.ids = ids;
      receipt.service_timeout = 31;
      return {random(), receipt};
    }
  }
}

/// Another process of the machine knows all there is to know of the session: numbers, PSNs, keys,
/// and which requests are under way. It has not the peer's port.
inline std::string known_but_for_the_port(std::uint64_t seed, const IpAddress& ip,
                                          std::uint16_t node_port, std::uint64_t packets) {
  Scene scene(seed, ip, node_port);
  if (auto wrong = scene.connect(); !wrong.empty()) return wrong;
  if (auto wrong = scene.works(); !wrong.empty()) return wrong;
  std::array<std::byte, 32> into{};
  for (std::uint64_t sent = 0; sent < packets;) {
    for (End* at : {&scene.node, &scene.client}) {
      End& peer = scene.other(*at);
      // Answers to it are what is forged. Time stands still, and it cannot reach the peer.
      const auto& region = peer.region.remote();
      const auto read = WorkRequest::read(7, into, region.key, region.at(0));
      if (at->pair->post(read).taken != 1) return "the pair takes no request";
      at->endpoint.progress();
      std::uint64_t allowed = 0;
      const std::uint64_t foreign = at->endpoint.counters().foreign;
      std::uint64_t of_pairs = 0;
      std::size_t messages = 0;
      for (; at->port.forged() < AttackedPort::kForgedMax; ++sent) {
        const PortAddress from = other_port(scene);
        if (scene.random.chance(0.2)) {
          const ConnectionMessage message = draw_message(scene.random, peer.ids);
          // Of more than that the endpoint takes none that come together.
          if (++messages <= RoceEndpoint::kMessagesPerTurn) allowed += answers_allowed(message);
          scene.forge(*at, from, message);
          continue;
        }
        Headers headers = scene.draw_headers(*at);
        headers.bth.psn = Scene::next_psn(Scene::is_answer(headers) ? *at : peer);
        scene.forge(*at, from, headers, scene.payload_for(headers));
        ++of_pairs;
      }
      const std::uint64_t answered = scene.take_forged(*at);
      if (answered != allowed) return "something is answered that is not the peer's";
      if (at->endpoint.counters().foreign != foreign + of_pairs) return "not all were counted";
      if (at->endpoint.connect_counts().foreign != foreign + of_pairs) return "nobody is told";
      if (at->queue.waiting() != 0) return "somebody else's answer was taken";
      for (int i = 0; i < 1000 && at->queue.waiting() == 0; ++i) scene.turn();
      std::array<Completion, 2> done;
      if (at->queue.poll(done) != 1 || done[0].status != Status::success) return "the READ failed";
      ++at->requests;
    }
    if (sent / 16384 != (sent + 128) / 16384) {
      if (auto wrong = scene.works(); !wrong.empty()) return wrong;
    }
  }
  return scene.works();
}

/// A client that is connecting accepts messages only of the peer that it has asked, though another
/// process knows the number of the connection. Where that peer may be a card, processes that look
/// like cards must guess the number.
inline std::string known_while_it_is_asked_for(std::uint64_t seed, const IpAddress& ip,
                                               std::uint16_t node_port) {
  Scene scene(seed, ip, node_port);
  const bool may_be_card = node_port == wire::roce::kUdpPort && !ip.is_loopback();
  const auto* const asked = std::get_if<RequestMessage>(&scene.client.port.messages.at(0).body);
  if (asked == nullptr) return "no request";
  const std::uint32_t id = asked->ids.local;
  for (int i = 0; i < 2000; ++i) {
    const PortAddress from = other_port(scene);
    if (may_be_card && from.udp_port >= kFlowPorts) continue;
    const ConnectionIds ids{static_cast<std::uint32_t>(scene.random()) | 1, id};
    scene.forge(scene.client, from, draw_message(scene.random, ids));
    static_cast<void>(scene.take_forged(scene.client));
  }
  if (auto wrong = scene.connect(); !wrong.empty()) return wrong;
  return scene.works();
}

/// An attacker that spoofs the peer's address, but receives nothing, guesses pair numbers and PSNs.
inline std::string guessed(std::uint64_t seed, std::uint64_t packets) {
  Scene scene(seed, IpAddress::v4(127, 0, 0, 1), wire::roce::kUdpPort);
  if (auto wrong = scene.connect(); !wrong.empty()) return wrong;
  if (auto wrong = scene.works(); !wrong.empty()) return wrong;
  for (std::uint64_t sent = 0; sent < packets;) {
    for (End* at : {&scene.node, &scene.client}) {
      const PortAddress from = scene.other(*at).port.address();
      for (; at->port.forged() < AttackedPort::kForgedMax; ++sent) {
        Headers headers = scene.draw_headers(*at);
        headers.bth.destination = static_cast<std::uint32_t>(scene.random()) & wire::roce::kMask24;
        headers.bth.psn = static_cast<std::uint32_t>(scene.random()) & wire::roce::kMask24;
        scene.forge(*at, from, headers, scene.payload_for(headers));
      }
      if (scene.take_forged(*at) != 0) return "a guess is answered";
    }
  }
  return scene.works();
}

/// An attacker that spoofs the peer's address knows the number of a pair, and searches for its PSN:
/// no answer reveals whether it is near.
inline std::string psns_searched(std::uint64_t seed, std::uint64_t packets) {
  Scene scene(seed, IpAddress::v4(127, 0, 0, 1), wire::roce::kUdpPort);
  if (auto wrong = scene.connect(); !wrong.empty()) return wrong;
  if (auto wrong = scene.works(); !wrong.empty()) return wrong;
  for (std::uint64_t sent = 0; sent < packets;) {
    for (End* at : {&scene.node, &scene.client}) {
      End& peer = scene.other(*at);
      const std::uint64_t counted = at->endpoint.counters().out_of_window;
      std::uint64_t forged = 0;
      for (; at->port.forged() < AttackedPort::kForgedMax; ++sent, ++forged) {
        Headers headers = scene.draw_headers(*at);
        const std::uint32_t right = Scene::next_psn(Scene::is_answer(headers) ? *at : peer);
        const auto off = scene.random.between(Requester::kWindowMax,
                                              wire::roce::kMask24 - Requester::kWindowMax);
        headers.bth.psn = psn_plus(right, static_cast<std::uint32_t>(off));
        scene.forge(*at, peer.port.address(), headers, scene.payload_for(headers));
      }
      if (scene.take_forged(*at) != 0) return "a wrong PSN is answered";
      if (at->endpoint.counters().out_of_window != counted + forged) return "not all were counted";
      if (at->endpoint.connect_counts().out_of_window != counted + forged) return "nobody is told";
    }
  }
  return scene.works();
}

}  // namespace espalier::fabric::roce::takeover
