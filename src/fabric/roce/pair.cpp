// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/pair.hpp"

#include <algorithm>

#include "fabric/ethernet.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/endpoint.hpp"

namespace espalier::fabric::roce {
namespace {

RequesterLimits limits_of(const QueuePairOptions& options, std::uint32_t first_psn,
                          const PacketPort& port) {
  RequesterLimits limits;
  limits.window = std::clamp(port.window_bytes() / options.mtu_bytes, Requester::kWindowMin,
                             Requester::kWindowMax);
  limits.depth = options.send_depth;
  limits.mtu = options.mtu_bytes;
  limits.reads_in_flight = options.reads_in_flight;
  limits.retries = options.retries;
  limits.receive_retries = options.receive_retries;
  limits.timeout_ns = options.timeout_ns;
  limits.first_psn = first_psn;
  return limits;
}

// So long an acknowledgement waits for company: what is asked for in silence takes longer.
constexpr std::uint64_t kLateNs = 10'000;

bool is_answer(PacketOpcode opcode) {
  return opcode >= PacketOpcode::read_response_first && opcode <= PacketOpcode::atomic_acknowledge;
}

}  // namespace

Pair::Pair(RoceEndpoint& endpoint, std::uint32_t number, std::uint32_t first_psn,
           const QueuePairOptions& options)
    : QueuePair(number, options, endpoint.properties()),
      endpoint_(endpoint),
      port_(endpoint.port()),
      reader_(endpoint.reader()),
      first_psn_(first_psn),
      requester_(*this, limits_of(options, first_psn, endpoint.port())),
      responder_(*this, options.mtu_bytes, endpoint.properties().message_bytes_max) {}

Pair::~Pair() {
  // A destroyed pair needs no completions; its requests complete here to release their entries in
  // the completion queue.
  end(Status::success);
  endpoint_.send_terminate(*this, false);
  endpoint_.forget(*this);
}

void Pair::establish(const PeerFacts& peer, std::span<const std::byte> data) {
  if (state() != State::connecting) return;
  peer_ = peer;
  requester_.limit_reads(peer.reads);
  responder_.expect(peer.first_psn, peer.address.is_card);
  become_connected(data);
  if (requester_.idle()) return;
  endpoint_.watch(*this);
  has_work();
}

void Pair::release() {
  held_ = false;
  if (state() != State::connected || requester_.idle()) return;
  endpoint_.watch(*this);
  has_work();
}

void Pair::be_refused(std::span<const std::byte> data) {
  keep_refusal(data);
  end(Status::remote_operation, true);
}

void Pair::packet(const PortAddress& from, const Packet& packet) {
  if (!peer_.address.sends_from(from) || packet.bth.partition != wire::roce::kDefaultPartition) {
    ++counters().foreign;
    return;
  }
  const bool answer = is_answer(packet.bth.opcode);
  if (state() != State::connected && (answer || !responder_.refusing())) return;
  // What is dropped here may be a guess, and the guesser must not learn by what follows how far off
  // it was.
  if (answer ? !requester_.in_window(packet.bth.psn) : !responder_.in_window(packet)) {
    ++counters().out_of_window;
    return;
  }
  if (!heard && state() == State::connected) {
    heard = true;
    endpoint_.heard_from(*this);
  }
  if (answer) {
    requester_.answer(packet);
  } else {
    responder_.request(packet);
  }
}

bool Pair::transmit(std::uint32_t packets) {
  if (state() != State::connected || held_) return false;
  if (responder_.transmit(packets)) return true;
  return state() == State::connected && requester_.transmit(packets);
}

bool Pair::holds_back() {
  if (!options().delayed_acks) return false;
  if (ack_delay_until_ns_ == 0) {
    ack_delay_until_ns_ = now_ns() + kLateNs;
    has_sent_ = false;
    endpoint_.delays_ack(*this);
  }
  return true;
}

bool Pair::send_delayed_ack(bool now) {
  if (ack_delay_until_ns_ == 0) return true;
  if (!now && !has_sent_ && now_ns() < ack_delay_until_ns_) return false;
  ack_delay_until_ns_ = 0;
  if (state() != State::connected) return true;
  responder_.acknowledge();
  if (responder_.transmit(1)) endpoint_.has_work(*this);
  return true;
}

std::size_t Pair::begin(std::span<const WorkRequest> requests) {
  const std::size_t taken = requester_.take(requests);
  if (state() == State::connected && taken != 0) endpoint_.prepare(*this);
  return taken;
}

void Pair::end(Status why, bool peer_knows) {
  if (state() == State::error) return;
  enter_error_state(why);
  requester_.flush();
  responder_.flush();
  // A NAK gives the peer more information than a terminate message, which could overtake it.
  if (!responder_.refusing()) endpoint_.send_terminate(*this, peer_knows);
}

// What gets through is no matter of length: connection messages have come.
void Pair::set_undelivered(std::uint32_t ib_bytes) {
  if (ib_bytes <= kMessagePacketBytes) return;
  const std::size_t ip_bytes = peer_.address.ip.is_v6 ? wire::kIpv6Bytes : wire::kIpv4Bytes;
  set_undelivered_bytes(ib_bytes + static_cast<std::uint32_t>(ip_bytes + wire::kUdpBytes));
}

void Pair::ended_by_peer(std::uint32_t undelivered_bytes) {
  if (state() != State::error) set_undelivered_bytes(undelivered_bytes);
  end(Status::success, true);
}

void Pair::close() { end(Status::success); }

std::byte* Pair::begin_packet(Headers& headers, std::size_t payload_bytes) {
  const std::uint8_t pad = pad_of(payload_bytes);
  const std::size_t header_bytes = parts_of(headers.bth.opcode).header_bytes;
  const std::size_t bytes = header_bytes + payload_bytes + pad;
  std::byte* const to = port_.begin(peer_.address, bytes);
  if (to == nullptr) {
    ++counters().port_full;
    return nullptr;
  }
  headers.bth.pad = pad;
  headers.bth.destination = peer_.pair;
  write_headers(to, headers);
  for (std::size_t i = bytes - pad; i < bytes; ++i) to[i] = std::byte{0};
  return to + header_bytes;
}

void Pair::end_packet() {
  port_.seal();
  has_sent_ = true;
}

std::uint64_t Pair::now_ns() const { return endpoint_.now_ns(); }

void Pair::look_again_at(std::uint64_t when_ns) { endpoint_.look_again_at(when_ns); }

EndpointCounters& Pair::counters() { return endpoint_.counting(); }

void Pair::has_work() { endpoint_.has_work(*this); }

}  // namespace espalier::fabric::roce
