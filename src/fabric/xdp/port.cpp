// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/port.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/number_source.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/xdp/filter.hpp"
#include "fabric/xdp/interface.hpp"
#include "fabric/xdp/next_hops.hpp"
#include "fabric/xdp/rings.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::xdp {
namespace {

using roce::IpFlow;
using roce::PortAddress;

constexpr std::uint32_t kWindowBytes = 256 * 1024;
// What the kernel did not take is offered again so soon, if nothing else happens.
constexpr std::uint64_t kOfferAgainNs = 50'000;
constexpr std::uint32_t kEthernetBytes = 14;
// The longest headers of IP, UDP and RoCEv2, and the ICRC.
constexpr std::uint32_t kAroundPayload =
    40 + 8 + wire::roce::kHeadersBytesMax + wire::roce::kIcrcBytes;

/// What is the same from packet to packet of a flow. Few flows at a time.
class Flows {
 public:
  struct Flow {
    bool known = false;
    IpFlow between;
    roce::Icrc icrc{IpFlow{}};
  };
  Flow& of(const IpFlow& between, const PortAddress& peer) {
    Flow& flow = flows_[(peer.udp_port ^ peer.ip.bytes[3] ^ peer.ip.bytes[15]) % flows_.size()];
    if (!flow.known || flow.between != between) flow = {true, between, roce::Icrc(between)};
    return flow;
  }

 private:
  std::array<Flow, 64> flows_;
};

class Port final : public XdpPort {
 public:
  Port(const Interface& interface, const PortAddress& address, memory::Descriptor reserved,
       std::unique_ptr<Filter> filter, std::unique_ptr<Rings> rings, NextHops next_hops)
      : address_(address),
        bytes_max_(std::min(interface.mtu_bytes + kEthernetBytes, Rings::kRoomBytes)),
        reserved_(std::move(reserved)),
        rings_(std::move(rings)),
        filter_(std::move(filter)),
        next_hops_(std::move(next_hops)) {
    header_.source = interface.mac;
  }
  Result<void> prepare_to_sleep();

  PortAddress address() const override { return address_; }
  std::uint32_t window_bytes() const override { return kWindowBytes; }
  std::uint32_t mtu_bytes_max() const override { return kMtuBytes; }
  const XdpCounters& counters() const override { return counters_; }
  bool is_native() const override { return filter_->is_native(); }
  bool is_zero_copy() const override { return rings_->is_zero_copy(); }
  std::size_t queues() const override { return rings_->queues(); }
  std::uint64_t now_ns() const override { return base::monotonic_ns(); }

  std::byte* begin(const PortAddress& to, std::size_t bytes) override;
  void seal() override;
  void flush() override {
    rings_->flush();
    begun_ns_ = 0;
  }
  std::span<const roce::Arrived> receive() override;
  void wait(std::uint64_t timeout_ns) override;
  int begin_sleep() override;
  void end_sleep() override { forget_wake(); }
  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
  }

 private:
  /// Where a packet is written that goes nowhere.
  std::byte* lose(std::uint64_t& counter, std::size_t bytes);
  void take(std::span<const std::byte> frame);
  void forget_wake() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.number(), &count, sizeof count);
  }

  PortAddress address_;
  std::size_t bytes_max_;  // of a frame
  memory::Descriptor reserved_;
  memory::Descriptor events_;
  memory::Descriptor wake_;
  // The program ends before the sockets that it sends to.
  std::unique_ptr<Rings> rings_;
  std::unique_ptr<Filter> filter_;
  NextHops next_hops_;

  roce::FrameHeader header_;  // of the packet that is written
  Flows out_;
  std::byte* writing_at_ = nullptr;
  std::size_t writing_ib_bytes_ = 0;
  const roce::Icrc* writing_icrc_ = nullptr;
  std::uint64_t begun_ns_ = 0;  // when the first packet since the last flush() was; 0: none
  std::vector<std::byte> lost_;

  Flows in_;
  std::vector<roce::Arrived> burst_;
  XdpCounters counters_;
};

Result<void> Port::prepare_to_sleep() {
  events_ = memory::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events_ || !wake_) return base::refused_by_system();
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(events_.number(), EPOLL_CTL_ADD, wake_.number(), &event) != 0) {
    return base::refused_by_system();
  }
  for (std::size_t queue = 0; queue < rings_->queues(); ++queue) {
    if (::epoll_ctl(events_.number(), EPOLL_CTL_ADD, rings_->descriptor(queue), &event) != 0) {
      return base::refused_by_system();
    }
  }
  return {};
}

std::byte* Port::lose(std::uint64_t& counter, std::size_t bytes) {
  ++counter;
  writing_at_ = nullptr;
  lost_.resize(std::max(lost_.size(), bytes));
  return lost_.data();
}

std::byte* Port::begin(const PortAddress& to, std::size_t bytes) {
  bytes += wire::roce::kIcrcBytes;
  if (to.ip.is_v6 != address_.ip.is_v6) return lose(counters_.unsent, bytes);
  const Flows::Flow& flow = out_.of({address_.ip, to.ip, address_.udp_port, to.udp_port, true}, to);
  header_.flow = flow.between;
  const std::size_t header_bytes = roce::frame_header_bytes(header_);
  if (header_bytes + bytes > bytes_max_) return lose(counters_.unsent, bytes);
  if (begun_ns_ == 0) begun_ns_ = now_ns();
  const roce::MacAddress* const mac = next_hops_.find(to.ip, begun_ns_);
  if (mac == nullptr) return lose(counters_.unknown, bytes);
  writing_at_ = rings_->frame();
  if (writing_at_ == nullptr) return nullptr;
  header_.destination = *mac;
  writing_icrc_ = &flow.icrc;
  writing_ib_bytes_ = bytes;
  return writing_at_ + header_bytes;
}

void Port::seal() {
  if (writing_at_ == nullptr) return;
  const std::size_t header_bytes =
      roce::write_frame_header(writing_at_, header_, writing_ib_bytes_);
  const std::span<std::byte> frame(writing_at_, header_bytes + writing_ib_bytes_);
  writing_icrc_->seal(frame.subspan(header_bytes));
  // Sockets of IPv6 refuse what has none.
  if (address_.ip.is_v6) roce::set_udp_checksum(frame);
  rings_->send(frame.size());
  ++counters_.sent;
}

void Port::take(std::span<const std::byte> bytes) {
  const auto frame = roce::parse_frame(bytes, roce::UdpChecksum::any);
  if (!frame || frame->vlan || frame->flow.destination != address_.ip ||
      frame->flow.destination_port != address_.udp_port) {
    ++counters_.not_ours;
    return;
  }
  const PortAddress from{frame->flow.source, frame->flow.source_port};
  if (!in_.of(frame->flow, from).icrc.matches(frame->ib, frame->ip_id)) {
    ++counters_.wrong_icrc;
    return;
  }
  ++counters_.received;
  burst_.push_back({from, frame->ib});
}

std::span<const roce::Arrived> Port::receive() {
  burst_.clear();
  for (const auto frame : rings_->receive()) take(frame);
  return burst_;
}

void Port::wait(std::uint64_t timeout_ns) {
  if (rings_->unsent() != 0) timeout_ns = std::min(timeout_ns, kOfferAgainNs);
  std::array<epoll_event, 8> events;
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::epoll_pwait2(events_.number(), events.data(), static_cast<int>(events.size()), &timeout,
                 nullptr);
  forget_wake();
}

int Port::begin_sleep() {
  if (rings_->unsent() != 0) wake();  // no event announces when it can be offered again
  return events_.number();
}

/// A UDP socket that has the address, so that no other program gets it. May set its UDP port.
Result<memory::Descriptor> reserve(PortAddress& address) {
  const int family = address.ip.is_v6 ? AF_INET6 : AF_INET;
  memory::Descriptor made(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return base::refused_by_system();
  // What the kernel puts into it is never read: fragments, or packets that came another way.
  constexpr int kLittle = 1;
  ::setsockopt(made.number(), SOL_SOCKET, SO_RCVBUF, &kLittle, sizeof kLittle);
  if (!roce::bind_below_flows(made.number(), address)) return base::refused_by_system();
  return made;
}

}  // namespace

Result<std::unique_ptr<XdpPort>> XdpPort::open(const XdpPortOptions& options) {
  const auto interface = Interface::find(options.interface);
  if (!interface) return std::unexpected(interface.error());
  PortAddress address = options.address;
  if (address.ip.bytes == roce::IpAddress{}.bytes) return fail(Code::invalid_argument);
  const auto has = has_address(options.interface, address.ip);
  if (!has) return std::unexpected(has.error());
  if (!*has) return base::refused_by_system(EADDRNOTAVAIL);
  if (interface->mtu_bytes < kMtuBytes + kAroundPayload) return is_unsupported(Unsupported::mtu);
  auto library = Library::load();
  if (!library) return std::unexpected(library.error());
  auto numbers = NumberSource::of_system();
  if (!numbers) return std::unexpected(numbers.error());
  auto reserved = reserve(address);
  if (!reserved) return std::unexpected(reserved.error());
  auto neighbours = Neighbours::open(interface->number, address.ip);
  if (!neighbours) return std::unexpected(neighbours.error());
  auto filter =
      Filter::attach(*library, interface->number, Rings::kQueuesMax, address, options.native);
  if (!filter) return std::unexpected(filter.error());
  auto rings = Rings::open(*library, options.interface, interface->queues, **filter);
  if (!rings) return std::unexpected(rings.error());
  auto port =
      std::make_unique<Port>(*interface, address, std::move(*reserved), std::move(*filter),
                             std::move(*rings), NextHops(std::move(*neighbours), numbers->draw()));
  if (const auto ready = port->prepare_to_sleep(); !ready) return std::unexpected(ready.error());
  return port;
}

}  // namespace espalier::fabric::xdp
