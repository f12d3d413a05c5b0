// SPDX-License-Identifier: Apache-2.0
// A port that loses some of what it is to send, by chance: simulates a bad network on a real one,
// for measurements and experiments.
//
// Thread: as the port behind it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class LosingPort final : public PacketPort {
 public:
  /// `loss`: the share of packets that never leave, 0 to 1.
  LosingPort(std::unique_ptr<PacketPort> port, double loss, std::uint64_t seed)
      : port_(std::move(port)), loss_(loss), random_(seed) {}

  [[nodiscard]] PortAddress address() const override { return port_->address(); }
  [[nodiscard]] std::uint32_t window_bytes() const override { return port_->window_bytes(); }
  [[nodiscard]] std::uint32_t mtu_bytes_max() const override { return port_->mtu_bytes_max(); }
  [[nodiscard]] bool keeps_order() const override { return port_->keeps_order(); }
  std::byte* begin(const PortAddress& to, std::size_t bytes) override {
    losing_ = random_.chance(loss_);
    if (!losing_) return port_->begin(to, bytes);
    lost_.resize(bytes);
    return lost_.data();
  }
  void seal() override {
    if (!losing_) port_->seal();
  }
  void flush() override { port_->flush(); }
  std::span<const Arrived> receive() override { return port_->receive(); }
  [[nodiscard]] std::uint64_t now_ns() const override { return port_->now_ns(); }
  void wait(std::uint64_t timeout_ns) override { port_->wait(timeout_ns); }
  void wake() override { port_->wake(); }

 private:
  std::unique_ptr<PacketPort> port_;
  double loss_;
  base::Random random_;
  bool losing_ = false;
  std::vector<std::byte> lost_;  // where packets are written that never leave
};

}  // namespace espalier::fabric::roce
