// SPDX-License-Identifier: Apache-2.0
// Arbitrary datagrams to UDP ports, through sockets of this machine: how long they are, how the
// kernel is to cut them, and what is in them. A port hands over the parts whose ICRC is right for
// some id in use, those and no others, in their order, and each byte of them as it was sent.
//
// Input: datagrams, each a byte of choices, two bytes of length, two of the length of its parts, a
// byte of id, and some bytes that it is filled with; or packets that a port of ours sends. Loopback
// loses nothing while there is room, so each is taken before the next is sent.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/roce/udp_port.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce {
namespace {

using base::FuzzInput;
using base::want;

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kDatagramBytesMax = 65'500;
constexpr std::size_t kFillBytes = 64;
constexpr std::size_t kPacketBytesMin = 16;
constexpr std::size_t kPacketBytesMax =
    wire::roce::kHeadersBytesMax + 4096 + wire::roce::kIcrcBytes;
constexpr std::size_t kUnderWayMax = 65'536;  // whatever buffers the system grants
constexpr int kStepsMax = 24;
constexpr int kTriesMax = 30;

PortAddress loopback(bool six) {
  if (!six) return {IpAddress::v4(127, 0, 0, 1), 0};
  return {IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), 0};
}

// To any port, or to another one with the same low bits: by these a port finds what it remembers of
// flows, so the second flow takes the first one's place.
bool bind_beside(int socket, PortAddress& at) {
  constexpr std::uint32_t kApart = 64;
  if (at.udp_port == 0) return bind_below_flows(socket, at);
  PortAddress other = at;
  const std::uint32_t begin = 20'000 / kApart * kApart + at.udp_port % kApart;
  for (std::uint32_t port = begin; port < kFlowPorts; port += kApart) {
    other.udp_port = static_cast<std::uint16_t>(port);
    if (!bind_below_flows(socket, other)) continue;
    at = other;
    return true;
  }
  return false;
}

/// One of our ports that listens, and its senders: plain sockets, and another of our ports.
class Scene {
 public:
  Scene(bool six, bool offload)
      : six_(six),
        port_(*UdpPort::open({loopback(six), offload})),
        peer_(*UdpPort::open({loopback(six), true})) {
    PortAddress at = loopback(six);
    for (UnknownPeer& unknown_peer : unknown_peers_) {
      unknown_peer.socket =
          memory::Descriptor(::socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const int whole = six ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;
      ::setsockopt(unknown_peer.socket.number(), six ? IPPROTO_IPV6 : IPPROTO_IP,
                   six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole, sizeof whole);
      want(bind_beside(unknown_peer.socket.number(), at), "there is no socket to speak from");
      unknown_peer.own = at;
    }
  }

  void step(FuzzInput& input, std::uint8_t choices) {
    const bool ours = (choices & 4) != 0;
    speaker_ = ours ? nullptr : &unknown_peers_[choices >> 6 & 1];
    sent_.clear();
    if (ours) {
      send_packets(input);
    } else {
      send_datagram(input, choices);
    }
    take();
  }

 private:
  struct UnknownPeer {
    memory::Descriptor socket;
    PortAddress own;
  };

  [[nodiscard]] PortAddress speaker() const {
    return speaker_ == nullptr ? peer_->address() : speaker_->own;
  }
  [[nodiscard]] IpFlow flow() const {
    const PortAddress to = port_->address();
    const PortAddress from = speaker();
    return {from.ip, to.ip, from.udp_port, to.udp_port, true};
  }

  void send_datagram(FuzzInput& input, std::uint8_t choices) {
    Bytes datagram(std::min<std::size_t>(input.number<std::uint16_t>(), kDatagramBytesMax));
    const std::uint16_t cut = input.number<std::uint16_t>();
    const std::uint8_t id = input.byte();
    std::array<std::byte, kFillBytes> fill{};
    input.fill(std::span(fill).first(std::min(fill.size(), datagram.size())));
    for (std::size_t i = 0; i != datagram.size(); ++i) datagram[i] = fill[i % fill.size()];
    const bool cuts = (choices & 8) != 0 && cut != 0 && cut < datagram.size();
    const std::size_t part_bytes = cuts ? cut : std::max<std::size_t>(datagram.size(), 1);
    if ((choices & 16) != 0) seal(datagram, part_bytes, id);
    if ((choices & 32) != 0 && !datagram.empty()) {
      datagram[input.number<std::uint16_t>() % datagram.size()] ^= static_cast<std::byte>(id | 1);
    }
    // One that the system does not send, for there are too many parts, was never there.
    if (!send(datagram, cuts ? cut : std::uint16_t{0})) return;
    for (std::span<std::byte> rest(datagram); !rest.empty();) {
      const auto part = rest.first(std::min(part_bytes, rest.size()));
      sent_.emplace_back(part.begin(), part.end());
      rest = rest.subspan(part.size());
    }
  }

  // As peers do, whose kernels count the parts of a datagram; and as others, whose do otherwise.
  void seal(std::span<std::byte> datagram, std::size_t part_bytes, std::uint16_t id) const {
    const Icrc icrc(flow());
    while (!datagram.empty()) {
      const auto part = datagram.first(std::min(part_bytes, datagram.size()));
      datagram = datagram.subspan(part.size());
      if (part.size() >= kPacketBytesMin && part.size() <= kIbBytesMax) icrc.seal(part, id++);
    }
  }

  bool send(std::span<const std::byte> datagram, std::uint16_t cut) const {
    SocketAddress to(port_->address());
    iovec part{const_cast<std::byte*>(datagram.data()), datagram.size()};
    msghdr message{};
    message.msg_name = to.get();
    message.msg_namelen = to.bytes;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof cut)] = {};
    if (cut != 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_UDP;
      head->cmsg_type = UDP_SEGMENT;
      head->cmsg_len = CMSG_LEN(sizeof cut);
      std::memcpy(CMSG_DATA(head), &cut, sizeof cut);
    }
    return ::sendmsg(speaker_->socket.number(), &message, 0) >= 0;
  }

  // What one of ours packs, another unpacks.
  void send_packets(FuzzInput& input) {
    const PortAddress to = port_->address();
    std::size_t under_way = 0;
    for (int left = input.byte() % 80; left >= 0; --left) {
      const std::uint16_t wanted = input.number<std::uint16_t>();
      const std::size_t bytes = 12 + wanted % (wanted % 8 == 0 ? 4096 : 256) / 4 * 4;
      std::byte* at = under_way < kUnderWayMax ? peer_->begin(to, bytes) : nullptr;
      if (at == nullptr) {
        peer_->flush();
        take();
        under_way = 0;
        at = peer_->begin(to, bytes);
      }
      under_way += bytes;
      want(at != nullptr, "a port that has flushed has no room");
      std::fill_n(at, bytes, static_cast<std::byte>(wanted));
      peer_->seal();
      sent_.emplace_back(at, at + bytes + wire::roce::kIcrcBytes);
    }
    peer_->flush();
    want(peer_->counters().unsent == 0, "a packet of ours was not sent");
  }

  [[nodiscard]] bool is_right(std::span<const std::byte> part) const {
    if (part.size() < kPacketBytesMin || part.size() > kPacketBytesMax) return false;
    const Icrc icrc(flow());
    if (six_) return icrc.matches(part);
    for (std::uint32_t id = 0; id != UdpPort::kIdsMax; ++id) {
      if (icrc.matches(part, static_cast<std::uint16_t>(id))) return true;
    }
    return false;
  }

  // All that was sent comes, for there was nothing in the way.
  void take() {
    const std::uint64_t wrong = port_->counters().wrong_icrc;
    const std::uint64_t begin = port_->counters().received;
    std::size_t wrong_sent = 0;
    auto next = sent_.begin();
    const auto skip_wrong = [&] {
      for (; next != sent_.end() && !is_right(*next); ++next) ++wrong_sent;
    };
    const auto came = [&] { return port_->counters().received - begin; };
    // A datagram without bytes is no part of anything, and must not lie in the way of the next.
    if (sent_.empty()) want(port_->receive().empty(), "something is made of nothing");
    for (int tries = 0; came() < sent_.size();) {
      const std::uint64_t before = came();
      for (const Arrived& each : port_->receive()) {
        skip_wrong();
        want(next != sent_.end(), "something is handed over that is not right");
        want(std::equal(each.ib.begin(), each.ib.end(), next->begin(), next->end()),
             "a packet is handed over that was not sent, or not now");
        want(each.from == speaker(), "a packet is from somebody else");
        ++next;
      }
      if (came() != before) continue;
      want(++tries != kTriesMax, "a datagram was lost");
      port_->wait(kSecond);
    }
    skip_wrong();
    want(next == sent_.end(), "a packet that is right is not handed over");
    want(came() == sent_.size(), "there are more parts than were sent");
    want(port_->counters().wrong_icrc - wrong == wrong_sent, "what is dropped is not counted");
    want(speaker_ != nullptr || wrong_sent == 0, "a packet of ours is dropped");
    sent_.clear();
  }

  bool six_;
  std::unique_ptr<UdpPort> port_;
  std::unique_ptr<UdpPort> peer_;
  std::array<UnknownPeer, 2> unknown_peers_;
  const UnknownPeer* speaker_ = nullptr;  // null: ours
  std::vector<Bytes> sent_;               // parts, and not taken yet
};

// Opened once, for what a port has seen before means nothing to it.
Scene& scene(std::uint8_t choices) {
  static std::array<std::unique_ptr<Scene>, 4> scenes;
  auto& scene = scenes[choices % scenes.size()];
  if (scene == nullptr) scene = std::make_unique<Scene>((choices & 1) != 0, (choices & 2) != 0);
  return *scene;
}

}  // namespace
}  // namespace espalier::fabric::roce

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier::fabric::roce;
  espalier::base::FuzzInput input(data, size);
  for (int steps = 0; steps != kStepsMax && !input.over(); ++steps) {
    const std::uint8_t choices = input.byte();
    scene(choices).step(input, choices);
  }
  return 0;
}
