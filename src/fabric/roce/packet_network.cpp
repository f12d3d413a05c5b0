// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/packet_network.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::fabric::roce {
namespace {

// The ICRC covers addresses and UDP ports, so a packet says by it where it is from.
Icrc icrc_of(const PortAddress& from, const PortAddress& to) {
  return Icrc({from.ip, to.ip, from.udp_port, to.udp_port, true});
}

}  // namespace

class PacketNetwork::Port final : public PacketPort {
 public:
  Port(PacketNetwork& network, const PortAddress& address, std::uint32_t window_bytes)
      : network_(network), address_(address), window_bytes_(window_bytes) {
    network_.ports_.push_back(this);
  }
  ~Port() override { std::erase(network_.ports_, this); }

  PortAddress address() const override { return address_; }
  bool keeps_order() const override {
    const NetworkFaults& now = network_.faults;
    return now.delay_min_ns == now.delay_max_ns && now.duplicate == 0;
  }
  std::uint32_t window_bytes() const override { return window_bytes_; }

  std::byte* begin(const PortAddress& to, std::size_t bytes) override {
    if (network_.faults.room_packets != 0 && sealed_ >= network_.faults.room_packets) {
      return nullptr;
    }
    to_ = to;
    writing_.assign(bytes + wire::roce::kIcrcBytes, std::byte{0});
    return writing_.data();
  }
  void seal() override {
    ++sealed_;
    icrc_of(address_, to_).seal(writing_);
    network_.send(address_, to_, std::exchange(writing_, {}));
  }
  void flush() override {
    if (std::exchange(sealed_, 0) != 0) ++network_.counters_.departures;
  }

  std::span<const Arrived> receive() override {
    constexpr std::size_t kBurst = 32;
    burst_.clear();
    held_.clear();
    while (!arrived_.empty() && held_.size() < kBurst) {
      held_.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    for (const Flying& packet : held_) {
      const bool whole = icrc_of(packet.from, address_).matches(packet.ib);
      if (whole) burst_.push_back({packet.from, packet.ib});
    }
    return burst_;
  }

  std::uint64_t now_ns() const override { return network_.now_ns(); }
  void wait(std::uint64_t timeout_ns) override { network_.advance(timeout_ns); }
  void wake() override {}

  void arrive(Flying packet) { arrived_.push_back(std::move(packet)); }

 private:
  PacketNetwork& network_;
  PortAddress address_;
  std::uint32_t window_bytes_;
  PortAddress to_;
  std::uint32_t sealed_ = 0;  // since the last flush
  std::vector<std::byte> writing_;
  std::deque<Flying> arrived_;
  std::vector<Flying> held_;
  std::vector<Arrived> burst_;
};

std::unique_ptr<PacketPort> PacketNetwork::open(const PortAddress& address,
                                                std::uint32_t window_bytes) {
  return std::make_unique<Port>(*this, address, window_bytes);
}

void PacketNetwork::send(const PortAddress& from, const PortAddress& to,
                         std::vector<std::byte> ib) {
  ++counters_.sent;
  if (tap) tap(from, to, ib);
  if (random_.chance(faults.loss) || (loses && loses(from, to, ib))) {
    ++counters_.lost;
    return;
  }
  if (random_.chance(faults.damage)) {
    ++counters_.damaged;
    ib[random_.below(ib.size())] ^= static_cast<std::byte>(random_.between(1, 255));
  }
  if (random_.chance(faults.duplicate)) {
    ++counters_.duplicated;
    fly(from, to, ib);
  }
  fly(from, to, std::move(ib));
}

void PacketNetwork::inject(const PortAddress& from, const PortAddress& to,
                           std::span<const std::byte> ib) {
  fly(from, to, {ib.begin(), ib.end()});
}

void PacketNetwork::fly(const PortAddress& from, const PortAddress& to, std::vector<std::byte> ib) {
  if (middle) middle(from, to, ib);
  const std::uint64_t arrives = now_ns_ + random_.between(faults.delay_min_ns, faults.delay_max_ns);
  if (arrives < last_arrival_ns_) ++counters_.overtaken;
  last_arrival_ns_ = std::max(last_arrival_ns_, arrives);
  flying_.push({arrives, number_++, from, to, std::move(ib)});
}

void PacketNetwork::advance(std::uint64_t at_most_ns) {
  const std::uint64_t until = now_ns_ + at_most_ns;
  now_ns_ = flying_.empty() ? until : std::clamp(flying_.top().arrives_ns, now_ns_, until);
  while (!flying_.empty() && flying_.top().arrives_ns <= now_ns_) {
    Flying packet = flying_.top();
    flying_.pop();
    for (Port* port : ports_) {
      if (port->address() == packet.to) {
        port->arrive(std::move(packet));
        break;
      }
    }
  }
}

}  // namespace espalier::fabric::roce
