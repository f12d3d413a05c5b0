// SPDX-License-Identifier: Apache-2.0
#include "node/datagram_port.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/system_error.hpp"
#include "crypto/hmac.hpp"
#include "crypto/secret_memory.hpp"
#include "engine/services.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::node {
namespace {

using fabric::roce::SocketAddress;

// One byte more than the maximum, to detect longer datagrams.
constexpr std::size_t kBytesEach = wire::kDatagramBytesMax + 1;
constexpr int kSleepMs = 1000;  // then releases dropped maps
constexpr std::uint64_t kMaintainNs = 1'000'000'000;

Result<memory::Descriptor> bound_socket(offload::DatagramSource& at) {
  const int family = at.ip.is_v6 ? AF_INET6 : AF_INET;
  memory::Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::refused_by_system();
  const SocketAddress name(at);
  if (::bind(socket.number(), name.get(), name.bytes) != 0) {
    if (errno == EADDRINUSE) return fail(Code::already_exists, at.udp_port);
    return base::refused_by_system();
  }
  SocketAddress taken;
  if (::getsockname(socket.number(), taken.get(), &taken.bytes) != 0) {
    return base::refused_by_system();
  }
  at = fabric::roce::to_port_address(taken.storage);
  return socket;
}

}  // namespace

/// The arguments of one system call that receives, or sends.
struct DatagramPort::Burst {
  static constexpr std::size_t kTaken = offload::DatagramReads::kGets;

  Burst() {
    for (std::size_t i = 0; i < kTaken; ++i) {
      parts[i] = {bytes[i].data(), bytes[i].size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::array<std::array<std::byte, kBytesEach>, kTaken> bytes;
  std::array<iovec, kTaken> parts{};
  std::array<SocketAddress, kTaken> names{};
  std::array<mmsghdr, kTaken> messages{};
  std::vector<SocketAddress> to;
  std::vector<iovec> replies;
  std::vector<mmsghdr> sent;
};

Result<std::unique_ptr<DatagramPort>> DatagramPort::open(const Terms& terms,
                                                         offload::Services& services) {
  // Reports a missing libcrypto now, not to each client.
  if (const auto tags = crypto::hmac_sha256({}, {}); !tags) return std::unexpected(tags.error());
  offload::DatagramSource at = terms.at;
  auto socket = bound_socket(at);
  if (!socket) return std::unexpected(socket.error());
  crypto::SecretBytes own{};
  if (auto drawn = crypto::draw_bytes(own); !drawn) return std::unexpected(drawn.error());
  auto& sessions = services.parts.make<offload::DatagramSessions>(at, own);
  crypto::cleanse(own.data(), own.size());
  std::unique_ptr<DatagramPort> port(
      new DatagramPort(std::move(*socket), terms, services, sessions));
  if (auto started = port->start(); !started) return std::unexpected(started.error());
  return port;
}

DatagramPort::DatagramPort(memory::Descriptor socket, const Terms& terms,
                           offload::Services& services, offload::DatagramSessions& sessions)
    : socket_(std::move(socket)),
      spin_ns_(terms.spin_ns),
      sessions_(sessions),
      reads_(services, sessions, terms.shard),
      burst_(std::make_unique<Burst>()) {}

DatagramPort::~DatagramPort() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake_event_.signal();
  thread_.join();
}

Result<void> DatagramPort::start() {
  if (!wake_event_.open()) return base::refused_by_system();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {  // no thread available
    return base::refused_by_system(error.code().value());
  }
  return {};
}

void DatagramPort::run() {
  ::pthread_setname_np(::pthread_self(), "datagrams");
  std::uint64_t maintained_ns = base::monotonic_ns();
  while (!stopping_.load(std::memory_order_acquire)) {
    bool moved = false;
    try {
      moved = take();
      moved = reads_.step() || moved;
      moved = send() || moved;
      if (base::monotonic_ns() - maintained_ns > kMaintainNs) {
        reads_.maintain();
        maintained_ns = base::monotonic_ns();
      }
    } catch (const std::bad_alloc&) {  // retried in the next turn
    }
    spin_or_sleep(moved);
  }
}

// At most as many as there are places, so that none is received to be dropped.
bool DatagramPort::take() {
  Burst& burst = *burst_;
  const std::size_t places = std::min(reads_.places(), Burst::kTaken);
  if (places == 0) return false;
  for (std::size_t i = 0; i < places; ++i) {
    msghdr& head = burst.messages[i].msg_hdr;
    head.msg_name = burst.names[i].get();
    head.msg_namelen = sizeof burst.names[i].storage;
    head.msg_flags = 0;
  }
  const int got = ::recvmmsg(socket_.number(), burst.messages.data(), static_cast<unsigned>(places),
                             MSG_DONTWAIT, nullptr);
  if (got <= 0) return false;
  const std::uint64_t now_ns = base::monotonic_ns();
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    try {
      reads_.take(std::span(burst.bytes[i]).first(burst.messages[i].msg_len),
                  fabric::roce::to_port_address(burst.names[i].storage), now_ns);
    } catch (const std::bad_alloc&) {  // a map's first read: the datagram is lost
      sessions_.counts.dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return true;
}

// A reply for which the system has no room is lost, as on any network.
bool DatagramPort::send() {
  const auto replies = reads_.replies();
  if (replies.empty()) return false;
  Burst& burst = *burst_;
  burst.to.clear();
  burst.replies.clear();
  burst.sent.assign(replies.size(), {});
  for (const auto& reply : replies) {
    burst.to.emplace_back(reply.to);
    // Not written: the call has one type for both directions.
    burst.replies.push_back({const_cast<std::byte*>(reply.datagram.data()), reply.bytes});
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    msghdr& head = burst.sent[i].msg_hdr;
    head.msg_name = burst.to[i].get();
    head.msg_namelen = burst.to[i].bytes;
    head.msg_iov = &burst.replies[i];
    head.msg_iovlen = 1;
  }
  // Skips a reply that cannot be sent, such as one to an unroutable address.
  for (std::size_t done = 0; done < replies.size();) {
    const int count = ::sendmmsg(socket_.number(), burst.sent.data() + done,
                                 static_cast<unsigned>(replies.size() - done), MSG_DONTWAIT);
    done += count > 0 ? static_cast<std::size_t>(count) : 1;
  }
  reads_.forget_replies();
  return true;
}

void DatagramPort::spin_or_sleep(bool moved) {
  if (moved) {
    quiet_since_ns_ = 0;
    return;
  }
  const std::uint64_t now_ns = base::monotonic_ns();
  if (quiet_since_ns_ == 0) quiet_since_ns_ = now_ns;
  if (now_ns - quiet_since_ns_ < spin_ns_.load(std::memory_order_relaxed))
    return base::spin_pause();
  pollfd watched[] = {{socket_.number(), POLLIN, 0}, {wake_event_.number(), POLLIN, 0}};
  static_cast<void>(::poll(watched, std::size(watched), kSleepMs));
  quiet_since_ns_ = 0;
}

}  // namespace espalier::node
