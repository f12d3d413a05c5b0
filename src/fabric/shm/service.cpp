// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/service.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/shm/control_packets.hpp"
#include "memory/seqpacket.hpp"

namespace espalier::fabric::shm {
namespace {

using Phase = PairSocket::Phase;

constexpr std::uint64_t kBell = 0;

std::string who(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return "?";
  return "process " + std::to_string(credentials.pid) + " of user " +
         std::to_string(credentials.uid);
}

bool is_unknown_peer(const PairSocket& link) {
  const Phase phase = link.phase.load(std::memory_order_relaxed);
  return phase == Phase::greeting || phase == Phase::knocking;
}

bool would_block(const Error& error) {
  return error.code == Code::system && (error.detail == EAGAIN || error.detail == EWOULDBLOCK);
}

}  // namespace

Service::~Service() {
  if (thread_.joinable()) {
    stopping_.store(true, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_.number(), &one, sizeof one);
    thread_.join();
  }
}

Result<void> Service::start() {
  epoll_ = memory::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  bell_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !bell_ || !watch(bell_.number(), kBell)) return base::refused_by_system();
  thread_ = std::thread([this] { run(); });
  return {};
}

bool Service::watch(int descriptor, std::uint64_t number) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  return ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Service::unwatch(int descriptor) const {
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
}

Result<void> Service::listen(std::string_view path) {
  auto made = ListeningSocket::open(path);
  if (!made) return std::unexpected(made.error());
  const std::scoped_lock lock(mutex_);
  const std::uint64_t number = next_number_++;
  const auto [at, added] = listening_.emplace(number, std::move(*made));
  if (watch(at->second.number(), number)) return {};
  const auto refused = base::refused_by_system();
  listening_.erase(at);
  return refused;
}

Result<std::uint64_t> Service::add(std::shared_ptr<PairSocket> link) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t number = next_number_++;
  const int socket = link->socket.number();
  links_.emplace(number, std::move(link));
  if (watch(socket, number)) return number;
  const auto refused = base::refused_by_system();
  links_.erase(number);
  return refused;
}

void Service::forget(std::uint64_t number) {
  std::shared_ptr<PairSocket> link;  // ends outside the lock
  {
    const std::scoped_lock lock(mutex_);
    const auto at = links_.find(number);
    if (at == links_.end()) return;
    link = std::move(at->second);
    links_.erase(at);
    if (is_unknown_peer(*link)) --unknown_peers_;
  }
  unwatch(link->socket.number());
  ::shutdown(link->socket.number(), SHUT_RDWR);
}

std::shared_ptr<PairSocket> Service::find(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  const auto at = links_.find(number);
  return at == links_.end() ? nullptr : at->second;
}

std::optional<ConnectRequest> Service::next_request() {
  const std::scoped_lock lock(mutex_);
  while (!knocked_.empty()) {
    const std::uint64_t number = knocked_.front();
    knocked_.pop_front();
    const auto at = links_.find(number);
    if (at != links_.end()) return ConnectRequest{number, at->second->peer, at->second->data};
  }
  return std::nullopt;
}

std::shared_ptr<PairSocket> Service::accept(std::uint64_t number, Domain domain) {
  const std::scoped_lock lock(mutex_);
  const auto at = links_.find(number);
  if (at == links_.end()) return nullptr;
  PairSocket& link = *at->second;
  if (link.phase.load(std::memory_order_relaxed) != Phase::knocking) return nullptr;
  link.domain = domain;
  link.phase.store(Phase::open, std::memory_order_release);
  --unknown_peers_;
  return at->second;
}

void Service::reject(std::uint64_t number) {
  const std::shared_ptr<PairSocket> link = find(number);
  if (link == nullptr || link->phase.load(std::memory_order_acquire) != Phase::knocking) return;
  send_refusal(link->socket.number());
  forget(number);
}

void Service::run() {
  constexpr int kLookMs = 1000;
  constexpr int kRestMs = 100;
  while (!stopping_.load(std::memory_order_relaxed)) {
    int timeout_ms = resting_ ? kRestMs : kLookMs;
    {
      const std::scoped_lock lock(mutex_);
      if (!resting_ && unknown_peers_ == 0) timeout_ms = -1;
    }
    epoll_event events[64];
    const int found = ::epoll_wait(epoll_.number(), events, 64, timeout_ms);
    if (std::exchange(resting_, false)) {
      const std::scoped_lock lock(mutex_);
      for (const auto& [number, socket] : listening_) {
        static_cast<void>(watch(socket.number(), number));
      }
    }
    for (int i = 0; i < found; ++i) {
      if (events[i].data.u64 != kBell) handle(events[i].data.u64);
    }
    drop_late();
  }
}

void Service::handle(std::uint64_t number) {
  if (const std::shared_ptr<PairSocket> link = find(number)) return read_from(number, *link);
  int socket = -1;
  {
    const std::scoped_lock lock(mutex_);
    const auto at = listening_.find(number);
    if (at != listening_.end()) socket = at->second.number();
  }
  if (socket >= 0) accept_all(socket);
}

// Bounded, so that connected peers are served, too. A client without a free place is not answered.
void Service::accept_all(int socket) {
  constexpr int kAtATime = 64;
  for (int i = 0; i < kAtATime; ++i) {
    memory::Descriptor from(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!from) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // Pending connections keep the socket readable: without a pause, for want of descriptors,
      // nothing else would be done.
      const std::scoped_lock lock(mutex_);
      for (const auto& [number, listening] : listening_) unwatch(listening.number());
      resting_ = true;
      return;
    }
    auto link = std::make_shared<PairSocket>(std::move(from), Phase::greeting);
    link->until_ns = base::monotonic_ns() + kHelloNs;
    const std::scoped_lock lock(mutex_);
    if (unknown_peers_ >= kKnockingMax) continue;
    const std::uint64_t made = next_number_++;
    if (!watch(link->socket.number(), made)) continue;
    links_.emplace(made, std::move(link));
    ++unknown_peers_;
  }
}

void Service::read_from(std::uint64_t number, PairSocket& link) {
  std::byte packet[kPacketBytesMax];
  memory::Descriptor descriptors[kPacketDescriptorsMax];
  const auto got = memory::receive_packet(link.socket.number(), packet, descriptors);
  if (!got && would_block(got.error())) return;
  if (!got || *got == 0 || !take(number, link, std::span(packet).first(*got), descriptors)) {
    lose(number, link);
  }
}

// Returns false for what a peer that keeps to the protocol does not send.
bool Service::take(std::uint64_t number, PairSocket& link, std::span<const std::byte> packet,
                   std::span<memory::Descriptor> descriptors) {
  switch (link.phase.load(std::memory_order_acquire)) {
    case Phase::greeting: return take_hello(number, link, packet, std::move(descriptors[0]));
    case Phase::knocking: return false;
    case Phase::expecting: {
      auto welcome = read_welcome(packet, descriptors);
      if (!welcome) return false;
      link.put(std::move(*welcome));
      link.phase.store(Phase::open, std::memory_order_release);
      notice_.raise();
      return true;
    }
    case Phase::open: break;
  }
  if (packet.size() == sizeof(wire::FabricNote)) return take_note(link, packet);
  auto answer = read_answer(packet, std::move(descriptors[0]), link.asked.exchange(0));
  if (!answer) return false;
  link.put(std::move(*answer));
  notice_.raise();
  return true;
}

bool Service::take_note(const PairSocket& link, std::span<const std::byte> packet) const {
  wire::FabricNote note;
  std::memcpy(&note, packet.data(), sizeof note);
  if (note.packet == static_cast<std::uint32_t>(wire::FabricPacket::wake)) {
    notice_.nudge();
    return true;
  }
  if (note.packet != static_cast<std::uint32_t>(wire::FabricPacket::ask)) return false;
  return send_answer(link.socket.number(), note.key, link.domain, regions_).has_value();
}

bool Service::take_hello(std::uint64_t number, PairSocket& link, std::span<const std::byte> packet,
                         memory::Descriptor words) {
  auto hello = read_hello(packet, std::move(words));
  if (!hello) return false;
  const std::scoped_lock lock(mutex_);
  link.peer = who(link.socket.number());
  link.data = std::move(hello->data);
  link.words = std::move(hello->words);
  link.phase.store(Phase::knocking, std::memory_order_release);
  // The application may not be polling for requests, while clients connect and disconnect.
  if (knocked_.size() >= kKnockingMax) {
    std::erase_if(knocked_, [this](std::uint64_t old) { return !links_.contains(old); });
  }
  knocked_.push_back(number);
  notice_.raise();
  return true;
}

void Service::lose(std::uint64_t number, PairSocket& link) {
  unwatch(link.socket.number());
  ::shutdown(link.socket.number(), SHUT_RDWR);
  // First of all: an unknown peer may be accepted at this moment.
  link.lost.store(true, std::memory_order_release);
  notice_.raise();
  bool unknown_peer = false;
  {
    const std::scoped_lock lock(mutex_);
    unknown_peer = is_unknown_peer(link);
  }
  if (unknown_peer) forget(number);
}

void Service::drop_late() {
  std::vector<std::uint64_t> late;
  {
    const std::scoped_lock lock(mutex_);
    if (unknown_peers_ == 0) return;
    const std::uint64_t now = base::monotonic_ns();
    for (const auto& [number, link] : links_) {
      if (link->phase.load(std::memory_order_relaxed) == Phase::greeting && link->until_ns < now) {
        late.push_back(number);
      }
    }
  }
  for (const std::uint64_t number : late) forget(number);
}

}  // namespace espalier::fabric::shm
