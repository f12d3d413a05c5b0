// SPDX-License-Identifier: Apache-2.0
#include "fabric/memif/port.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/places.hpp"
#include "base/system_error.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/frame_pattern.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::fabric::memif {
namespace {

using roce::IpAddress;
using roce::IpFlow;
using roce::PortAddress;

// Turns between looks at sockets: those of links that are up only report an end, so seldom.
constexpr std::uint32_t kTurnsUp = 16384;
constexpr std::uint32_t kTurnsAgreeing = 16;
constexpr std::uint64_t kDialAgainNs = 20'000'000;
constexpr std::size_t kAgreeingMax = 16;  // concurrent handshakes
constexpr std::uint32_t kWindowBytes = 512 * 1024;

roce::MacAddress mac_of(const IpAddress& ip) {
  const std::size_t end = ip.is_v6 ? 16 : 4;
  return {2, 0, ip.bytes[end - 4], ip.bytes[end - 3], ip.bytes[end - 2], ip.bytes[end - 1]};
}

/// The first link to try for a free one: another one for each port.
std::uint32_t first_number() {
  static std::atomic<std::uint32_t> looked{0};
  return (static_cast<std::uint32_t>(::getpid()) + looked.fetch_add(1)) % kLinksMax;
}

/// A link, and what does not change from packet to packet.
struct Way {
  std::unique_ptr<MemifLink> link;
  PortAddress peer;              // of a listening port: the connecting end
  std::uint64_t give_up_ns = 0;  // unless it is up before
  bool up = false;
  bool unflushed = false;
  PortAddress out_to;
  roce::FrameHeader out_header;
  roce::FramePattern out_pattern;
  roce::Icrc out_icrc{IpFlow{}};
  PortAddress in_from;  // of frames such as the last one
  roce::FramePattern in_pattern;
  roce::Icrc in_icrc{IpFlow{}};
};

class Port final : public MemifPort {
 public:
  Port(MemifPortOptions options, memory::Descriptor events, memory::Descriptor wake)
      : options_(std::move(options)), events_(std::move(events)), wake_(std::move(wake)) {
    if (options_.listens) {
      address_ = listener_address(options_.is_v6);
    } else {
      take_number(options_.link ? *options_.link : first_number());
    }
  }

  Result<void> open();

  PortAddress address() const override { return address_; }
  bool keeps_order() const override { return true; }  // a ring, and switches keep that of a flow
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
  int begin_sleep() override;
  void end_sleep() override {
    take_events();
    rise();
  }
  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
  }

 private:
  [[nodiscard]] Result<void> open_any();
  void take_number(std::uint32_t number) {
    number_ = number;
    address_ = connector_address(number, options_.is_v6);
  }
  void add(std::unique_ptr<MemifLink> link);
  void accept_peers();
  [[nodiscard]] bool sockets_are_quiet() const;
  void look_at_links();
  void be_refused();
  void look_at(Way& way);
  [[nodiscard]] bool is_free(std::uint32_t number) const;
  [[nodiscard]] Way* way_to(const PortAddress& to) const;
  void prepare(Way& way, const PortAddress& to) const;
  void take(Way& way, std::span<const std::byte> frame);
  /// One that is not like the last.
  [[nodiscard]] std::optional<roce::FramePattern::Like> take_another(
      Way& way, std::span<const std::byte> frame) const;
  /// Watches a descriptor for input; edge-triggered where it is never read.
  void watch(int descriptor, bool edges) const;
  /// Asks peers for events. Returns whether something has come already.
  [[nodiscard]] bool fall_asleep();
  void take_events();
  void rise();

  MemifPortOptions options_;
  PortAddress address_;
  std::uint32_t number_ = 0;           // of the link, if it connects
  std::uint32_t numbers_refused_ = 0;  // in a row
  memory::Descriptor events_;
  memory::Descriptor wake_;
  std::optional<shm::ListeningSocket> listening_;
  std::vector<std::unique_ptr<Way>> ways_;
  std::vector<Way*> by_number_;  // of those that are up, if it listens
  std::uint64_t dial_again_ns_ = 0;
  std::uint32_t turns_ = 0;
  std::uint32_t turns_to_look_ = kTurnsAgreeing;
  bool all_up_ = false;    // as of the last look
  std::size_t first_ = 0;  // the link that may fill the next burst

  Way* writing_ = nullptr;
  std::byte* writing_at_ = nullptr;
  std::size_t writing_ib_bytes_ = 0;
  std::uint16_t ip_id_ = 0;
  std::vector<std::byte> lost_;  // where packets are written that go nowhere

  Arrivals arrivals_;
  std::vector<std::span<std::byte>> frames_;
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
  auto link = MemifLink::dial(options_.path, number_, options_.server_user);
  if (link) {
    add(std::move(*link));
  } else if (link.error() != Error{Code::system, 0, EAGAIN}) {
    return std::unexpected(link.error());
  }  // else more connect than the listener has accepted: look_at_links() dials again
  return options_.link ? Result<void>() : open_any();
}

Result<void> Port::open_any() {
  const std::uint64_t until = now_ns() + kOpenLongestNs;
  while (true) {
    look_at_links();
    if (links() != 0) return {};
    if (numbers_refused_ == kLinksMax) return base::full(base::Places::links, kLinksMax);
    const std::uint64_t now = now_ns();
    if (now >= until) return fail(Code::system, ETIMEDOUT);
    wait(std::min(until - now, kDialAgainNs));
  }
}

void Port::watch(int descriptor, bool edges) const {
  epoll_event event{};
  event.events = edges ? EPOLLIN | EPOLLET : EPOLLIN;
  ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, descriptor, &event);
}

void Port::add(std::unique_ptr<MemifLink> link) {
  watch(link->socket(), false);
  auto way = std::make_unique<Way>();
  way->link = std::move(link);
  way->give_up_ns = now_ns() + kAgreeLongestNs;
  ways_.push_back(std::move(way));
}

bool Port::is_free(std::uint32_t number) const {
  return number < kLinksMax && std::none_of(ways_.begin(), ways_.end(), [&](const auto& way) {
           return way->link->state() != MemifLink::State::ended && way->link->number() == number;
         });
}

void Port::accept_peers() {
  const auto agreeing = static_cast<std::size_t>(
      std::count_if(ways_.begin(), ways_.end(), [](const auto& way) { return !way->up; }));
  for (std::size_t count = agreeing; count < kAgreeingMax; ++count) {
    memory::Descriptor peer(
        ::accept4(listening_->number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer) return;
    add(MemifLink::accept(std::move(peer)));
  }
}

void Port::look_at(Way& way) {
  way.link->progress([this](std::uint32_t number) { return is_free(number); });
  if (way.link->state() == MemifLink::State::agreeing && now_ns() > way.give_up_ns) way.link->end();
  if (way.link->state() != MemifLink::State::up || way.up) return;
  way.up = true;
  numbers_refused_ = 0;
  ++counters_.links_up;
  watch(way.link->event(), true);
  if (!options_.listens) return;
  const std::uint32_t number = *way.link->number();
  way.peer = connector_address(number, options_.is_v6);
  by_number_[number] = &way;
}

bool Port::sockets_are_quiet() const {
  // Events of peers that would wake this port are among these; they matter only while it sleeps.
  epoll_event events;
  return ::epoll_wait(events_.number(), &events, 1, 0) == 0;
}

// Where any link will do, the next one is tried immediately.
void Port::be_refused() {
  if (options_.link || options_.listens) return;
  take_number((number_ + 1) % kLinksMax);
  if (++numbers_refused_ % kLinksMax != 0) dial_again_ns_ = 0;
}

void Port::look_at_links() {
  turns_ = 0;
  if (all_up_ && sockets_are_quiet()) return;
  // Ends first: a peer that comes again finds its link free.
  for (const auto& way : ways_) look_at(*way);
  std::erase_if(ways_, [this](const auto& way) {
    if (way->link->state() != MemifLink::State::ended) return false;
    ++(way->up ? counters_.links_down : counters_.refused);
    if (way->link->refused()) be_refused();
    // Closing it would not do: the peer has it too.
    if (way->up) ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, way->link->event(), nullptr);
    if (way->up && options_.listens) {
      Way*& now = by_number_[*way->link->number()];
      if (now == way.get()) now = nullptr;  // else the next one is up already
    }
    return true;
  });
  if (options_.listens) {
    accept_peers();
  } else if (ways_.empty() && now_ns() >= dial_again_ns_) {
    dial_again_ns_ = now_ns() + kDialAgainNs;
    auto link = MemifLink::dial(options_.path, number_, options_.server_user);
    if (link) add(std::move(*link));
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
  std::array<std::byte, roce::kFrameHeaderBytesMax> written{};
  const std::size_t bytes = roce::write_frame_header(written.data(), way.out_header, 0);
  way.out_pattern = roce::FramePattern(std::span(written).first(bytes));
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
  std::size_t header_bytes = roce::FramePattern::kHeaderBytes;
  ++ip_id_;
  if (writing_->out_pattern.known()) {
    writing_->out_pattern.write(writing_at_, ip_id_, writing_ib_bytes_);
  } else {
    header_bytes = roce::write_frame_header(writing_at_, writing_->out_header, writing_ib_bytes_);
  }
  writing_->out_icrc.seal({writing_at_ + header_bytes, writing_ib_bytes_}, ip_id_);
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
  auto like = way.in_pattern.read(bytes);
  if (!like) like = take_another(way, bytes);
  if (!like) {
    ++counters_.not_ours;
  } else if (!way.in_icrc.matches(like->ib, like->ip_id)) {
    ++counters_.wrong_icrc;
  } else {
    ++counters_.received;
    burst_.push_back({way.in_from, like->ib});
  }
}

std::optional<roce::FramePattern::Like> Port::take_another(Way& way,
                                                           std::span<const std::byte> bytes) const {
  const auto frame = roce::parse_frame(bytes);
  // Between the two ends of a link there are no VLANs.
  if (!frame || frame->vlan || frame->flow.destination != address_.ip ||
      frame->flow.destination_port != address_.udp_port ||
      (options_.listens && frame->flow.source != way.peer.ip)) {
    return std::nullopt;
  }
  way.in_from = {frame->flow.source, frame->flow.source_port};
  way.in_icrc = roce::Icrc(frame->flow);
  way.in_pattern = roce::FramePattern(bytes);
  return roce::FramePattern::Like{frame->ib, frame->ip_id};
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

bool Port::fall_asleep() {
  bool ready = false;
  for (const auto& way : ways_) {
    if (!way->up) continue;
    way->link->in().fall_asleep();
    ready = ready || way->link->in().ready();
  }
  return ready;
}

// Consumes edge-triggered events; all sockets are checked in the next turn.
void Port::take_events() {
  std::array<epoll_event, 64> events;
  ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.number(), &count, sizeof count);
  turns_ = turns_to_look_;
}

void Port::rise() {
  for (const auto& way : ways_) {
    if (way->up) way->link->in().rise();
  }
}

void Port::wait(std::uint64_t timeout_ns) {
  const bool ready = fall_asleep();
  // A link that is lost is tried again in time.
  if (!options_.listens && links() == 0) {
    const std::uint64_t now = now_ns();
    const std::uint64_t left = dial_again_ns_ > now ? dial_again_ns_ - now : 0;
    timeout_ns = std::min(timeout_ns, ways_.empty() ? left : kDialAgainNs);
  }
  if (!ready) {
    pollfd events{events_.number(), POLLIN, 0};
    const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                           static_cast<long>(timeout_ns % 1'000'000'000)};
    ::ppoll(&events, 1, &timeout, nullptr);
    take_events();
  }
  rise();
}

int Port::begin_sleep() {
  if (fall_asleep()) wake();
  return events_.number();
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
  if (options.link.value_or(0) >= kLinksMax) return fail(Code::invalid_argument, kLinksMax);
  memory::Descriptor events(::epoll_create1(EPOLL_CLOEXEC));
  memory::Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events || !wake) return base::refused_by_system();
  auto port = std::make_unique<Port>(options, std::move(events), std::move(wake));
  if (const auto opened = port->open(); !opened) return std::unexpected(opened.error());
  return port;
}

}  // namespace espalier::fabric::memif
