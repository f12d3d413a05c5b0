// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/udp_port.hpp"

#include <netinet/udp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/udp_address.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce {
namespace {

constexpr int kBufferBytes = 8 << 20;
// A datagram may have so much, of at most so many parts.
constexpr std::size_t kDatagramBytes = 65000;
constexpr std::uint32_t kPartsMax = 64;
constexpr std::size_t kDatagramsMax = 16;
constexpr std::size_t kSendBytes = 4 * 65536;
constexpr std::size_t kReceives = 4;
// Of the largest MTU. Anything longer is dropped, without a checksum.
constexpr std::size_t kPacketBytesMax =
    wire::roce::kHeadersBytesMax + 4096 + wire::roce::kIcrcBytes;

/// The ICRCs of flows, found by their peer. Few at a time.
class FlowIcrcs {
 public:
  FlowIcrcs(const PortAddress& own, bool outgoing) : own_(own), outgoing_(outgoing) {}

  const Icrc& of(const PortAddress& peer) {
    Flow& flow = flows_[(peer.udp_port ^ peer.ip.bytes[3] ^ peer.ip.bytes[15]) % flows_.size()];
    if (!flow.known || flow.peer != peer) {
      const PortAddress& from = outgoing_ ? own_ : peer;
      const PortAddress& to = outgoing_ ? peer : own_;
      flow = {true, peer, Icrc({from.ip, to.ip, from.udp_port, to.udp_port, true})};
    }
    return flow.icrc;
  }

 private:
  struct Flow {
    bool known = false;
    PortAddress peer;
    Icrc icrc = Icrc({});
  };
  PortAddress own_;
  bool outgoing_;
  std::array<Flow, 64> flows_;
};

/// What an IPv4 id changes in the ICRC of a packet of some length: the checksum is linear, so that
/// is the same for all packets of this length.
class IdChanges {
 public:
  /// Whether `difference`, of the ICRC that came from that of id 0, is that of an id in use.
  bool explains(std::uint32_t difference, std::size_t ib_bytes) {
    Table& table = tables_[ib_bytes / 4 % tables_.size()];
    if (table.ib_bytes != ib_bytes) fill(table, ib_bytes);
    return std::binary_search(table.changes.begin(), table.changes.end(), difference);
  }

 private:
  struct Table {
    std::size_t ib_bytes = 0;
    std::array<std::uint32_t, UdpPort::kIdsMax> changes;
  };
  static void fill(Table& table, std::size_t ib_bytes) {
    // Unknown peers choose the lengths, so it must be cheap: the change of each bit, and from these
    // that of any id.
    const Icrc icrc({});
    const std::vector<std::byte> any(ib_bytes);
    const std::uint32_t without = icrc.of(any);
    table.changes[0] = 0;
    for (std::uint32_t bit = 1; bit < UdpPort::kIdsMax; bit *= 2) {
      const std::uint32_t change = icrc.of(any, static_cast<std::uint16_t>(bit)) ^ without;
      for (std::uint32_t id = 0; id < bit; ++id) {
        table.changes[bit + id] = table.changes[id] ^ change;
      }
    }
    std::sort(table.changes.begin(), table.changes.end());
    table.ib_bytes = ib_bytes;
  }
  std::array<Table, 64> tables_;
};

/// A datagram that the kernel cuts into parts of one length, the last of which may be shorter.
struct Datagram {
  PortAddress to;
  SocketAddress address;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  std::size_t part_bytes = 0;
  std::uint32_t parts = 0;
  bool open = true;  // for another part
};

class Socket final : public UdpPort {
 public:
  Socket(memory::Descriptor socket, memory::Descriptor event, const PortAddress& address,
         bool offload, std::uint32_t window_bytes)
      : socket_(std::move(socket)),
        event_(std::move(event)),
        address_(address),
        offload_(offload),
        window_bytes_(window_bytes),
        out_icrcs_(address, true),
        in_icrcs_(address, false),
        send_bytes_(kSendBytes),
        receive_bytes_(kReceives * 65536) {}

  PortAddress address() const override { return address_; }
  std::uint32_t window_bytes() const override { return window_bytes_; }
  const UdpCounters& counters() const override { return counters_; }
  std::uint64_t now_ns() const override { return base::monotonic_ns(); }

  std::byte* begin(const PortAddress& to, std::size_t bytes) override;
  void seal() override;
  void flush() override;
  std::span<const Arrived> receive() override;
  void wait(std::uint64_t timeout_ns) override;
  int begin_sleep() override { return socket_.number(); }
  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.number(), &one, sizeof one);
  }

 private:
  void arrived(const sockaddr_storage& from, std::span<const std::byte> datagram,
               std::size_t part_bytes);
  [[nodiscard]] bool icrc_is_right(const PortAddress& from, std::span<const std::byte> ib);

  memory::Descriptor socket_;
  memory::Descriptor event_;
  PortAddress address_;
  bool offload_;
  std::uint32_t window_bytes_;
  FlowIcrcs out_icrcs_;
  FlowIcrcs in_icrcs_;
  IdChanges id_changes_;
  UdpCounters counters_;

  std::vector<std::byte> send_bytes_;
  std::size_t send_end_ = 0;
  std::array<Datagram, kDatagramsMax> datagrams_;
  std::size_t datagram_count_ = 0;
  std::size_t part_begin_ = 0;  // of the packet that is being written
  std::size_t part_bytes_ = 0;

  std::vector<std::byte> receive_bytes_;
  std::vector<Arrived> burst_;
};

std::byte* Socket::begin(const PortAddress& to, std::size_t bytes) {
  bytes += wire::roce::kIcrcBytes;
  Datagram* last = datagram_count_ == 0 ? nullptr : &datagrams_[datagram_count_ - 1];
  const bool joins = last != nullptr && last->open && offload_ && last->to == to &&
                     bytes <= last->part_bytes && last->parts < kPartsMax &&
                     last->bytes + bytes <= kDatagramBytes;
  if (send_end_ + bytes > send_bytes_.size()) return nullptr;
  if (!joins) {
    if (datagram_count_ == kDatagramsMax) return nullptr;
    last = &datagrams_[datagram_count_++];
    if (last->to != to || last->parts == 0) last->address = SocketAddress(to);
    last->to = to;
    last->begin = send_end_;
    last->bytes = 0;
    last->part_bytes = bytes;
    last->parts = 0;
    last->open = true;
  }
  part_begin_ = send_end_;
  part_bytes_ = bytes;
  return send_bytes_.data() + send_end_;
}

void Socket::seal() {
  Datagram& datagram = datagrams_[datagram_count_ - 1];
  const std::span part(send_bytes_.data() + part_begin_, part_bytes_);
  out_icrcs_.of(datagram.to).seal(part, static_cast<std::uint16_t>(datagram.parts));
  datagram.open = part_bytes_ == datagram.part_bytes;
  datagram.bytes += part_bytes_;
  ++datagram.parts;
  send_end_ += part_bytes_;
}

void Socket::flush() {
  if (datagram_count_ == 0) return;
  std::array<mmsghdr, kDatagramsMax> messages{};
  std::array<iovec, kDatagramsMax> parts{};
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(std::uint16_t))] = {};
  };
  std::array<Control, kDatagramsMax> controls;
  std::size_t count = 0;
  for (std::size_t i = 0; i < datagram_count_; ++i) {
    Datagram& datagram = datagrams_[i];
    if (datagram.parts == 0) continue;  // begun and never sealed
    parts[count] = {send_bytes_.data() + datagram.begin, datagram.bytes};
    msghdr& header = messages[count].msg_hdr;
    header.msg_name = datagram.address.get();
    header.msg_namelen = datagram.address.bytes;
    header.msg_iov = &parts[count];
    header.msg_iovlen = 1;
    if (datagram.parts > 1) {
      header.msg_control = controls[count].bytes;
      header.msg_controllen = sizeof controls[count].bytes;
      cmsghdr* const cut = CMSG_FIRSTHDR(&header);
      cut->cmsg_level = SOL_UDP;
      cut->cmsg_type = UDP_SEGMENT;
      cut->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto part_bytes = static_cast<std::uint16_t>(datagram.part_bytes);
      std::memcpy(CMSG_DATA(cut), &part_bytes, sizeof part_bytes);
    }
    counters_.sent += datagram.parts;
    ++counters_.sends;
    ++count;
  }
  std::size_t gone = 0;
  while (gone < count) {
    const int sent = ::sendmmsg(socket_.number(), messages.data() + gone,
                                static_cast<unsigned>(count - gone), MSG_DONTWAIT);
    if (sent > 0) {
      gone += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      // No room, or no way to this peer: the network loses packets, and this is one of its ways.
      ++counters_.unsent;
      ++gone;
    }
  }
  datagram_count_ = 0;
  send_end_ = 0;
}

bool Socket::icrc_is_right(const PortAddress& from, std::span<const std::byte> ib) {
  if (ib.size() < sizeof(wire::roce::BthBytes) + wire::roce::kIcrcBytes) return false;
  if (ib.size() > kPacketBytesMax) return false;
  const std::uint32_t said =
      base::load_le<std::uint32_t>(ib.data() + ib.size() - wire::roce::kIcrcBytes);
  const std::uint32_t difference = in_icrcs_.of(from).of(ib) ^ said;
  if (difference == 0) return true;
  return !address_.ip.is_v6 && id_changes_.explains(difference, ib.size());
}

void Socket::arrived(const sockaddr_storage& storage, std::span<const std::byte> datagram,
                     std::size_t part_bytes) {
  const PortAddress from = to_port_address(storage);
  ++counters_.receives;
  while (!datagram.empty()) {
    const auto part = datagram.first(std::min(part_bytes, datagram.size()));
    datagram = datagram.subspan(part.size());
    ++counters_.received;
    if (icrc_is_right(from, part)) {
      burst_.push_back({from, part});
    } else {
      ++counters_.wrong_icrc;
    }
  }
}

std::span<const Arrived> Socket::receive() {
  burst_.clear();
  std::array<mmsghdr, kReceives> messages{};
  std::array<iovec, kReceives> parts{};
  std::array<sockaddr_storage, kReceives> names;
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(int))];
  };
  std::array<Control, kReceives> controls;
  for (std::size_t i = 0; i < kReceives; ++i) {
    parts[i] = {receive_bytes_.data() + i * 65536, 65536};
    messages[i].msg_hdr = {};
    messages[i].msg_hdr.msg_name = &names[i];
    messages[i].msg_hdr.msg_namelen = sizeof names[i];
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_control = controls[i].bytes;
    messages[i].msg_hdr.msg_controllen = sizeof controls[i].bytes;
  }
  const int count = ::recvmmsg(socket_.number(), messages.data(), kReceives, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    msghdr& header = messages[at].msg_hdr;
    std::size_t part_bytes = messages[at].msg_len;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr;
         each = CMSG_NXTHDR(&header, each)) {
      if (each->cmsg_level != SOL_UDP || each->cmsg_type != UDP_GRO) continue;
      int cut = 0;
      std::memcpy(&cut, CMSG_DATA(each), sizeof cut);
      if (cut > 0) part_bytes = static_cast<std::size_t>(cut);
    }
    if (messages[at].msg_len == 0) continue;
    arrived(names[at], {receive_bytes_.data() + at * 65536, messages[at].msg_len}, part_bytes);
  }
  return burst_;
}

void Socket::wait(std::uint64_t timeout_ns) {
  pollfd either[2] = {{socket_.number(), POLLIN, 0}, {event_.number(), POLLIN, 0}};
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  if (::ppoll(either, 2, &timeout, nullptr) <= 0 || (either[1].revents & POLLIN) == 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.number(), &count, sizeof count);
}

bool set(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

}  // namespace

Result<std::unique_ptr<UdpPort>> UdpPort::open(const UdpPortOptions& options) {
  const bool six = options.address.ip.is_v6;
  // The ICRC covers the address that packets leave from, which the kernel would choose by itself.
  if (options.address.ip.bytes == IpAddress{}.bytes) return fail(Code::invalid_argument);
  memory::Descriptor made(
      ::socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return base::refused_by_system();
  made.close_in_children();
  const int number = made.number();
  // The first form exceeds the system's limit, for privileged processes.
  if (!set(number, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes)) {
    set(number, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  }
  if (!set(number, SOL_SOCKET, SO_SNDBUFFORCE, kBufferBytes)) {
    set(number, SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  }
  const bool whole = six ? set(number, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO)
                         : set(number, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  if (!whole) return base::refused_by_system();
  const bool offload = options.offload && set(number, SOL_UDP, UDP_GRO, 1);
  PortAddress address = options.address;
  if (!bind_below_flows(number, address)) return base::refused_by_system();
  int room = 0;
  socklen_t room_bytes = sizeof room;
  ::getsockopt(number, SOL_SOCKET, SO_RCVBUF, &room, &room_bytes);
  memory::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return base::refused_by_system();
  // The kernel counts its own overhead too, and the buffer is for all peers.
  const auto window = static_cast<std::uint32_t>(std::clamp(room / 4, 32 * 1024, 512 * 1024));
  return std::make_unique<Socket>(std::move(made), std::move(event), address, offload, window);
}

}  // namespace espalier::fabric::roce
