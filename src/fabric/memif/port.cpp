// SPDX-License-Identifier: Apache-2.0
#include "fabric/memif/port.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::fabric::memif {
namespace {

using roce::IpAddress;
using roce::IpFlow;
using roce::PortAddress;

// From here on up, a packet's source port names no listener.
constexpr std::uint16_t kFlowPorts = 49152;
// Turns between looks at sockets: at those of links that are up, which only tell of an end, seldom.
constexpr std::uint32_t kTurnsUp = 16384;
constexpr std::uint32_t kTurnsAgreeing = 16;
constexpr std::uint64_t kDialAgainNs = 20'000'000;
constexpr std::uint64_t kAgreeNs = 2'000'000'000;  // so long a peer may take
constexpr std::size_t kAgreeingMax = 16;           // at once
constexpr std::uint32_t kWindowBytes = 512 * 1024;

roce::MacAddress mac_of(const IpAddress& ip) {
  const std::size_t end = ip.is_v6 ? 16 : 4;
  return {2, 0, ip.bytes[end - 4], ip.bytes[end - 3], ip.bytes[end - 2], ip.bytes[end - 1]};
}

/// A link, and what does not change from packet to packet.
struct Way {
  std::unique_ptr<Link> link;
  PortAddress peer;              // of a listening port: who is there
  std::uint64_t give_up_ns = 0;  // unless it is up before
  bool up = false;
  bool unflushed = false;
  PortAddress out_to;
  roce::FrameHeader out_header;
  roce::Icrc out_icrc{IpFlow{}};
  IpFlow in_flow;
  roce::Icrc in_icrc{IpFlow{}};
};

class Port final : public MemifPort {
 public:
  Port(MemifPortOptions options, memory::Descriptor events, memory::Descriptor wake)
      : options_(std::move(options)),
        address_(options_.listens ? listener_address(options_.is_v6)
                                  : connector_address(options_.link, options_.is_v6)),
        events_(std::move(events)),
        wake_(std::move(wake)) {}

  Result<void> open();

  PortAddress address() const override { return address_; }
  std::uint32_t window_bytes() const override { return kWindowBytes; }
  const MemifCounters& counters() const override { return counters_; }
  std::size_t links() const override {
    return static_cast<std::size_t>(
        std::count_if(ways_.begin(), ways_.end(), [](const auto& way) { return way->up; }));
  }
  std::uint64_t now_ns() const override { return base::monotonic_ns(); }

  std::byte* begin(const PortAddress& to, std::size_t bytes) override;
  void seal() override;
  void flush() override;
  std::span<const roce::Arrived> receive() override;
  void wait(std::uint64_t timeout_ns) override;
  void wake() override {
    const std::uint64_t one = 1;
    static_cast<void>(write(wake_.number(), &one, sizeof one));
  }

 private:
  void add(std::unique_ptr<Link> link);
  void accept_peers();
  [[nodiscard]] bool sockets_are_quiet() const;
  void look_at_links();
  void look_at(Way& way);
  [[nodiscard]] bool is_free(std::uint32_t number) const;
  [[nodiscard]] Way* way_to(const PortAddress& to) const;
  void prepare(Way& way, const PortAddress& to) const;
  void take(Way& way, std::span<const std::byte> frame);
  /// Tells of a descriptor when it can be read; of edges alone where nobody reads it.
  void watch(int descriptor, bool edges) const;

  MemifPortOptions options_;
  PortAddress address_;
  memory::Descriptor events_;
  memory::Descriptor wake_;
  std::optional<shm::ListeningSocket> listening_;
  std::vector<std::unique_ptr<Way>> ways_;
  std::vector<Way*> by_number_;  // of those that are up, if it listens
  std::uint64_t dial_again_ns_ = 0;
  std::uint32_t turns_ = 0;
  std::uint32_t turns_to_look_ = kTurnsAgreeing;
  bool all_up_ = false;    // as of the last look
  std::size_t first_ = 0;  // who may fill the next burst

  Way* writing_ = nullptr;
  std::byte* writing_at_ = nullptr;
  std::size_t writing_ib_bytes_ = 0;
  std::uint16_t ip_id_ = 0;
  std::vector<std::byte> lost_;  // where packets are written that go nowhere

  Arrivals arrivals_;
  std::vector<std::span<const std::byte>> frames_;
  std::vector<roce::Arrived> burst_;
  MemifCounters counters_;
};

Result<void> Port::open() {
  watch(wake_.number(), false);
  if (options_.listens) {
    auto listening = shm::ListeningSocket::open(options_.path);
    if (!listening) return std::unexpected(listening.error());
    listening_.emplace(std::move(*listening));
    by_number_.resize(kLinksMax);
    watch(listening_->number(), false);
    return {};
  }
  auto link = Link::dial(options_.path, options_.link);
  if (!link) return std::unexpected(link.error());
  add(std::move(*link));
  return {};
}

void Port::watch(int descriptor, bool edges) const {
  epoll_event event{};
  event.events = edges ? EPOLLIN | EPOLLET : EPOLLIN;
  epoll_ctl(events_.number(), EPOLL_CTL_ADD, descriptor, &event);
}

void Port::add(std::unique_ptr<Link> link) {
  watch(link->socket(), false);
  auto way = std::make_unique<Way>();
  way->link = std::move(link);
  way->give_up_ns = now_ns() + kAgreeNs;
  ways_.push_back(std::move(way));
}

bool Port::is_free(std::uint32_t number) const {
  return number < kLinksMax && std::none_of(ways_.begin(), ways_.end(), [&](const auto& way) {
           return way->link->state() != Link::State::ended && way->link->number() == number;
         });
}

void Port::accept_peers() {
  const auto agreeing = static_cast<std::size_t>(
      std::count_if(ways_.begin(), ways_.end(), [](const auto& way) { return !way->up; }));
  for (std::size_t count = agreeing; count < kAgreeingMax; ++count) {
    memory::Descriptor peer(
        accept4(listening_->number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer) return;
    add(Link::accept(std::move(peer)));
  }
}

void Port::look_at(Way& way) {
  way.link->progress([this](std::uint32_t number) { return is_free(number); });
  if (way.link->state() == Link::State::agreeing && now_ns() > way.give_up_ns) way.link->end();
  if (way.link->state() != Link::State::up || way.up) return;
  way.up = true;
  ++counters_.links_up;
  watch(way.link->event(), true);
  if (!options_.listens) return;
  const std::uint32_t number = *way.link->number();
  way.peer = connector_address(number, options_.is_v6);
  by_number_[number] = &way;
}

bool Port::sockets_are_quiet() const {
  // Events of peers that would wake us are among these; they matter only to who sleeps.
  epoll_event told;
  return epoll_wait(events_.number(), &told, 1, 0) == 0;
}

void Port::look_at_links() {
  turns_ = 0;
  if (all_up_ && sockets_are_quiet()) return;
  // Ends first: a peer that comes again finds its link free.
  for (const auto& way : ways_) look_at(*way);
  std::erase_if(ways_, [this](const auto& way) {
    if (way->link->state() != Link::State::ended) return false;
    ++(way->up ? counters_.links_down : counters_.refused);
    // Closing it would not do: the peer has it too.
    if (way->up) epoll_ctl(events_.number(), EPOLL_CTL_DEL, way->link->event(), nullptr);
    if (way->up && options_.listens) by_number_[*way->link->number()] = nullptr;
    return true;
  });
  if (options_.listens) {
    accept_peers();
  } else if (ways_.empty() && now_ns() >= dial_again_ns_) {
    dial_again_ns_ = now_ns() + kDialAgainNs;
    if (auto link = Link::dial(options_.path, options_.link)) add(std::move(*link));
  }
  all_up_ = !ways_.empty() &&
            std::all_of(ways_.begin(), ways_.end(), [](const auto& way) { return way->up; });
  turns_to_look_ = all_up_ ? kTurnsUp : kTurnsAgreeing;
}

Way* Port::way_to(const PortAddress& to) const {
  Way* way = nullptr;
  if (options_.listens) {
    const auto number = to.ip.bytes[options_.is_v6 ? 15 : 3];
    way = by_number_[number];
    if (way != nullptr && way->peer.ip != to.ip) way = nullptr;
  } else if (!ways_.empty() && ways_.front()->up) {
    way = ways_.front().get();
  }
  return to.ip.is_v6 == address_.ip.is_v6 ? way : nullptr;
}

void Port::prepare(Way& way, const PortAddress& to) const {
  way.out_to = to;
  way.out_header.destination = mac_of(to.ip);
  way.out_header.source = mac_of(address_.ip);
  way.out_header.flow = {address_.ip, to.ip, address_.udp_port, to.udp_port, true};
  way.out_icrc = roce::Icrc(way.out_header.flow);
}

std::byte* Port::begin(const PortAddress& to, std::size_t bytes) {
  bytes += wire::roce::kIcrcBytes;
  writing_ = way_to(to);
  if (writing_ != nullptr) {
    if (writing_->out_to != to) prepare(*writing_, to);
    const std::size_t header_bytes = roce::frame_header_bytes(writing_->out_header);
    SendingRing& ring = writing_->link->out();
    writing_at_ = ring.begin(header_bytes + bytes);
    writing_ib_bytes_ = bytes;
    if (writing_at_ != nullptr) return writing_at_ + header_bytes;
    if (!ring.broken() && !ring.too_long(header_bytes + bytes)) {
      writing_ = nullptr;
      return nullptr;  // no room now
    }
    writing_ = nullptr;
  }
  ++counters_.unsent;
  lost_.resize(std::max(lost_.size(), bytes));
  return lost_.data();
}

void Port::seal() {
  if (writing_ == nullptr) return;
  roce::FrameHeader& header = writing_->out_header;
  header.ip_id = ++ip_id_;
  const std::size_t header_bytes = roce::write_frame_header(writing_at_, header, writing_ib_bytes_);
  writing_->out_icrc.seal({writing_at_ + header_bytes, writing_ib_bytes_}, header.ip_id);
  writing_->link->out().end();
  writing_->unflushed = true;
  ++counters_.sent;
}

void Port::flush() {
  for (const auto& way : ways_) {
    if (!way->unflushed) continue;
    way->unflushed = false;
    if (way->link->out().publish() && way->link->out().peer_sleeps()) way->link->wake_peer();
  }
}

void Port::take(Way& way, std::span<const std::byte> bytes) {
  const auto frame = roce::parse_frame(bytes);
  // Between the two ends of a link there are no VLANs.
  if (!frame || frame->vlan || frame->flow.destination != address_.ip ||
      frame->flow.destination_port != address_.udp_port ||
      (options_.listens && frame->flow.source != way.peer.ip)) {
    ++counters_.not_ours;
    return;
  }
  if (frame->flow != way.in_flow) {
    way.in_flow = frame->flow;
    way.in_icrc = roce::Icrc(way.in_flow);
  }
  if (!way.in_icrc.matches(frame->ib, frame->ip_id)) {
    ++counters_.wrong_icrc;
    return;
  }
  ++counters_.received;
  const std::uint16_t from = frame->flow.source_port;
  burst_.push_back(
      {{frame->flow.source, from < kFlowPorts ? from : wire::roce::kUdpPort}, frame->ib});
}

std::span<const roce::Arrived> Port::receive() {
  burst_.clear();
  if (++turns_ >= turns_to_look_) look_at_links();
  arrivals_.clear();
  std::size_t room = Arrivals::kFramesMax;
  const std::size_t count = ways_.size();
  if (++first_ >= count) first_ = 0;
  std::size_t next = first_;
  for (std::size_t i = 0; i < count && room != 0; ++i) {
    Way& way = *ways_[next];
    if (++next == count) next = 0;
    if (!way.up) continue;
    frames_.clear();
    way.link->in().take(room, arrivals_, frames_);
    room -= frames_.size();
    for (const auto frame : frames_) take(way, frame);
    if (way.link->in().broken() || way.link->out().broken()) {
      way.link->end();
      all_up_ = false;
      turns_ = turns_to_look_;
    }
  }
  return burst_;
}

void Port::wait(std::uint64_t timeout_ns) {
  bool ready = false;
  for (const auto& way : ways_) {
    if (!way->up) continue;
    way->link->in().fall_asleep();
    ready = ready || way->link->in().ready();
  }
  // A link that is lost is tried again in time.
  if (!options_.listens && links() == 0) timeout_ns = std::min(timeout_ns, kDialAgainNs);
  std::array<epoll_event, 8> told;
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  if (!ready) {
    epoll_pwait2(events_.number(), told.data(), static_cast<int>(told.size()), &timeout, nullptr);
    turns_ = turns_to_look_;
    std::uint64_t count = 0;
    static_cast<void>(read(wake_.number(), &count, sizeof count));
  }
  for (const auto& way : ways_) {
    if (way->up) way->link->in().rise();
  }
}

}  // namespace

PortAddress listener_address(bool is_v6) {
  PortAddress address{IpAddress::v4(169, 254, 1, 1), wire::roce::kUdpPort};
  if (is_v6) address.ip = IpAddress::v6({0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  return address;
}

PortAddress connector_address(std::uint32_t link, bool is_v6) {
  const auto last = static_cast<std::uint8_t>(link);
  PortAddress address{IpAddress::v4(169, 254, 2, last), wire::roce::kUdpPort};
  if (is_v6) {
    address.ip = IpAddress::v6({0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, last});
  }
  return address;
}

Result<std::unique_ptr<MemifPort>> MemifPort::open(const MemifPortOptions& options) {
  if (options.link >= kLinksMax) return fail(Code::invalid_argument, kLinksMax);
  memory::Descriptor events(epoll_create1(EPOLL_CLOEXEC));
  memory::Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events || !wake) return base::refused_by_system();
  auto port = std::make_unique<Port>(options, std::move(events), std::move(wake));
  if (const auto opened = port->open(); !opened) return std::unexpected(opened.error());
  return port;
}

}  // namespace espalier::fabric::memif
