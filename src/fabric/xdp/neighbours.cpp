// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/neighbours.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::xdp {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kAnswerBytesMax = 8192;
constexpr std::uint16_t kDiscardPort = 9;

std::uint8_t family_of(const roce::IpAddress& ip) { return ip.is_v6 ? AF_INET6 : AF_INET; }
std::size_t bytes_of(const roce::IpAddress& ip) { return ip.is_v6 ? 16 : 4; }

/// Reads the plain struct at the beginning, and steps over it.
template <class T>
std::optional<T> take(Bytes& from) {
  if (from.size() < NLMSG_ALIGN(sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(NLMSG_ALIGN(sizeof(T)));
  return value;
}

/// What an attribute holds; empty if it is not there.
Bytes attribute(Bytes all, std::uint16_t type) {
  while (all.size() >= sizeof(rtattr)) {
    rtattr head;
    std::memcpy(&head, all.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > all.size()) break;
    if ((head.rta_type & NLA_TYPE_MASK) == type) {
      return all.subspan(sizeof head, head.rta_len - sizeof head);
    }
    all = all.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), all.size()));
  }
  return {};
}

std::optional<roce::IpAddress> address_in(Bytes bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
  roce::IpAddress ip;
  ip.is_v6 = bytes.size() == 16;
  std::memcpy(ip.bytes.data(), bytes.data(), bytes.size());
  return ip;
}

/// A router's address, which may be of the other version of IP.
std::optional<roce::IpAddress> router_in(Bytes attributes) {
  if (const Bytes plain = attribute(attributes, RTA_GATEWAY); !plain.empty()) {
    return address_in(plain);
  }
  const Bytes via = attribute(attributes, RTA_VIA);
  if (via.size() <= sizeof(std::uint16_t)) return std::nullopt;
  return address_in(via.subspan(sizeof(std::uint16_t)));
}

}  // namespace

/// A message to the kernel: its header, a struct that depends on the type, and attributes.
class Neighbours::Request {
 public:
  template <class Body>
  Request(std::uint16_t type, int flags, const Body& body) {
    head().nlmsg_type = type;
    head().nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    append(&body, sizeof body);
  }
  void add(std::uint16_t type, const void* value, std::size_t bytes) {
    rtattr made{};
    made.rta_type = type;
    made.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
    append(&made, sizeof made);
    append(value, bytes);
  }
  void add(std::uint16_t type, const roce::IpAddress& ip) {
    add(type, ip.bytes.data(), bytes_of(ip));
  }
  [[nodiscard]] nlmsghdr& head() { return message_.head; }
  [[nodiscard]] const void* data() const { return &message_; }

 private:
  void append(const void* value, std::size_t bytes) {
    const std::size_t at = head().nlmsg_len - sizeof(nlmsghdr);
    ESPALIER_ASSERT(at + NLMSG_ALIGN(bytes) <= sizeof message_.rest);
    std::memcpy(message_.rest + at, value, bytes);
    head().nlmsg_len += static_cast<std::uint32_t>(NLMSG_ALIGN(bytes));
  }

  struct Message {
    nlmsghdr head;
    std::byte rest[128];
  };
  Message message_{{sizeof(nlmsghdr), 0, 0, 0, 0}, {}};
};

Result<Neighbours> Neighbours::open(std::uint32_t interface, const roce::IpAddress& own) {
  Neighbours made;
  made.socket_ = memory::Descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  made.datagrams_ =
      memory::Descriptor(::socket(family_of(own), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.socket_ || !made.datagrams_) return base::refused_by_system();
  const int datagrams = made.datagrams_.number();
  const auto number = static_cast<int>(interface);
  const roce::SocketAddress from({own, 0});
  if (::setsockopt(datagrams, SOL_SOCKET, SO_BINDTOIFINDEX, &number, sizeof number) != 0 ||
      ::bind(datagrams, from.get(), from.bytes) != 0) {
    return base::refused_by_system();
  }
  made.interface_ = interface;
  made.own_ = own;
  made.answer_.resize(kAnswerBytesMax);
  return made;
}

std::optional<Bytes> Neighbours::ask(Request& request, std::uint16_t answer) {
  request.head().nlmsg_seq = ++sequence_;
  const std::uint32_t bytes = request.head().nlmsg_len;
  const int number = socket_.number();
  if (::send(number, request.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return std::nullopt;
  for (;;) {
    // The answer was there when send() returned.
    const ssize_t came = ::recv(number, answer_.data(), answer_.size(), MSG_DONTWAIT);
    if (came < 0) return std::nullopt;
    Bytes whole = Bytes(answer_).first(static_cast<std::size_t>(came));
    const auto head = take<nlmsghdr>(whole);
    if (!head || head->nlmsg_seq != sequence_) continue;  // to one that was given up
    if (head->nlmsg_type != answer || head->nlmsg_len < sizeof *head) return std::nullopt;
    return whole.first(std::min(whole.size(), head->nlmsg_len - sizeof *head));
  }
}

std::optional<roce::IpAddress> Neighbours::next_hop(const roce::IpAddress& to) {
  rtmsg body{};
  body.rtm_family = family_of(to);
  body.rtm_dst_len = body.rtm_src_len = static_cast<std::uint8_t>(8 * bytes_of(to));
  Request request(RTM_GETROUTE, 0, body);
  request.add(RTA_DST, to);
  request.add(RTA_SRC, own_);
  request.add(RTA_OIF, &interface_, sizeof interface_);
  auto answer = ask(request, RTM_NEWROUTE);
  if (!answer) return std::nullopt;
  const auto route = take<rtmsg>(*answer);
  // Not to this machine itself, nor to many.
  if (!route || route->rtm_type != RTN_UNICAST) return std::nullopt;
  const auto router = router_in(*answer);
  return router ? router : to;
}

Neighbours::Neighbour Neighbours::find(const roce::IpAddress& next_hop) {
  ndmsg body{};
  body.ndm_family = family_of(next_hop);
  body.ndm_ifindex = static_cast<int>(interface_);
  Request request(RTM_GETNEIGH, 0, body);
  request.add(NDA_DST, next_hop);
  auto answer = ask(request, RTM_NEWNEIGH);
  if (!answer) return {};
  const auto known = take<ndmsg>(*answer);
  if (!known) return {};
  const Bytes mac = attribute(*answer, NDA_LLADDR);
  constexpr int kSure = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP;
  constexpr int kGood = kSure | NUD_STALE | NUD_DELAY | NUD_PROBE;
  Neighbour found;
  if ((known->ndm_state & kGood) == 0 || mac.size() != sizeof(roce::MacAddress)) return found;
  found.mac.emplace();
  std::memcpy(found.mac->data(), mac.data(), mac.size());
  found.is_sure = (known->ndm_state & kSure) != 0;
  return found;
}

void Neighbours::look_for(const roce::IpAddress& to) {
  const roce::SocketAddress discard({to, kDiscardPort});
  static_cast<void>(
      ::sendto(datagrams_.number(), nullptr, 0, MSG_DONTWAIT, discard.get(), discard.bytes));
}

}  // namespace espalier::fabric::xdp
