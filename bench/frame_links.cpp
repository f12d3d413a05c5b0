// SPDX-License-Identifier: Apache-2.0
#include "bench/frame_links.hpp"

#include <sys/socket.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/clock.hpp"
#include "bench/map_session.hpp"

namespace espalier::bench {

FrameLinks::FrameLinks(const std::string& node)
    : listening_(value_or_throw(fabric::shm::ListeningSocket::open(node), "no socket of a node")) {}

void FrameLinks::connect(const std::string& clients, const std::function<void()>& turn) {
  constexpr std::uint64_t kLongestWaitNs = 10'000'000'000;
  const std::uint64_t until = base::monotonic_ns() + kLongestWaitNs;
  client_ = value_or_throw(fabric::memif::MemifLink::dial(clients, 0), "no link to the switch");
  const auto is_up = [](const std::unique_ptr<fabric::memif::MemifLink>& link) {
    return link && link->state() == fabric::memif::MemifLink::State::up;
  };
  while (!is_up(client_) || !is_up(node_)) {
    if (base::monotonic_ns() > until) throw std::runtime_error("the switch connects no links");
    turn();
    client_->progress([](std::uint32_t) { return false; });
    if (!node_) {
      memory::Descriptor socket(
          ::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket) node_ = fabric::memif::MemifLink::accept(std::move(socket));
    } else {
      node_->progress([](std::uint32_t) { return true; });
    }
    if (client_->state() == fabric::memif::MemifLink::State::ended ||
        (node_ && node_->state() == fabric::memif::MemifLink::State::ended)) {
      throw std::runtime_error("the switch ends a link");
    }
  }
}

bool FrameLinks::send(std::span<const std::byte> frame) {
  std::byte* const at = client_->out().begin(frame.size());
  if (at == nullptr) return false;
  std::memcpy(at, frame.data(), frame.size());
  client_->out().end();
  return true;
}

void FrameLinks::publish() {
  if (client_->out().publish() && client_->out().peer_sleeps()) client_->wake_peer();
}

std::span<const std::span<std::byte>> FrameLinks::receive() {
  arrivals_.clear();
  frames_.clear();
  node_->in().take(kBurst, arrivals_, frames_);
  return frames_;
}

}  // namespace espalier::bench
