// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/system_error.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::size_t kPeersMax = 16;

std::string in_text(const SwitchControl::Answer& answer) {
  return answer ? control_text("ok", *answer, true) : control_text("error", answer.error(), true);
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(std::string_view path,
                                                           SwitchControl& control,
                                                           std::uint64_t silent_ns) {
  using fabric::shm::ListeningSocket;
  auto listening = ListeningSocket::open(path, S_IRUSR | S_IWUSR, ListeningSocket::Kind::stream);
  if (!listening) return std::unexpected(listening.error());
  memory::Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return base::refused_by_system();
  return std::unique_ptr<ControlServer>(
      new ControlServer(std::move(*listening), std::move(wake), control, silent_ns));
}

void ControlServer::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
}

void ControlServer::run() {
  while (turn()) {
  }
  peers_.clear();
}

// Deadlines are judged by the time of the last poll: what arrives while another peer is served is
// handled in the next turn. False: the server is to stop.
bool ControlServer::turn() {
  std::vector<pollfd> watched{{wake_.number(), POLLIN, 0}, {listening_.number(), POLLIN, 0}};
  for (const auto& peer : peers_) watched.push_back({peer->socket(), peer->events(), 0});
  const int timeout = wait_ms(base::monotonic_ns());
  if (::poll(watched.data(), watched.size(), timeout) < 0) return errno == EINTR;
  if (watched[0].revents != 0) return false;
  const std::uint64_t now_ns = base::monotonic_ns();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const bool quiet = watched[i + 2].revents == 0;
    if (quiet ? keep_quiet_one(*peers_[i], now_ns) : serve(*peers_[i], now_ns)) continue;
    control_.drop(peers_[i]->number());
    peers_[i].reset();
  }
  std::erase(peers_, nullptr);
  if (watched[1].revents != 0) accept_one(now_ns);
  return true;
}

// Until the next deadline; a peer that is silent already has lost its maps.
int ControlServer::wait_ms(std::uint64_t now_ns) const {
  std::uint64_t next_ns = ControlPeer::kNever;
  for (const auto& peer : peers_) {
    next_ns = std::min(next_ns, peer->due_ns());
    const std::uint64_t silent_ns = peer->asked_ns() + silent_ns_;
    if (now_ns < silent_ns) next_ns = std::min(next_ns, silent_ns);
  }
  if (next_ns == ControlPeer::kNever) return -1;
  return next_ns <= now_ns ? 0 : static_cast<int>((next_ns - now_ns) / 1'000'000 + 1);
}

// False: it is late with a request, or with taking an answer.
bool ControlServer::keep_quiet_one(const ControlPeer& peer, std::uint64_t now_ns) {
  if (now_ns - peer.asked_ns() >= silent_ns_) control_.drop(peer.number());
  return now_ns < peer.due_ns();
}

void ControlServer::accept_one(std::uint64_t now_ns) {
  memory::Descriptor socket(
      ::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket || peers_.size() == kPeersMax) return;
  peers_.push_back(std::make_unique<ControlPeer>(std::move(socket), ++last_, now_ns));
}

// What has come. False: the peer is gone, or is to go.
bool ControlServer::serve(ControlPeer& peer, std::uint64_t now_ns) {
  if (!peer.move(now_ns)) return false;
  for (;;) {
    ControlPeer::Request request;
    switch (peer.next(request)) {
      case ControlPeer::Came::nothing: return true;
      case ControlPeer::Came::request: break;
      case ControlPeer::Came::nonsense:
        peer.say(in_text(std::unexpected("no request, or one that is too long")), now_ns);
        static_cast<void>(peer.move(now_ns));
        return false;
    }
    const auto answer = control_.ask(request.word, request.body, peer.number());
    peer.done(request, in_text(answer), base::monotonic_ns());
    if (!peer.move(now_ns)) return false;
  }
}

}  // namespace espalier::dataplane
