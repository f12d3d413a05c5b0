// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_peer.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace espalier::dataplane {

short ControlPeer::events() const { return goes_.empty() ? POLLIN : POLLOUT; }

bool ControlPeer::move(std::uint64_t now_ns) {
  if (goes_.empty()) return receive(now_ns);
  const std::string_view rest = std::string_view(goes_).substr(gone_);
  const ssize_t count = ::send(socket(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  gone_ += static_cast<std::size_t>(count);
  if (gone_ < goes_.size()) return true;
  goes_.clear();
  gone_ = 0;
  begun_ns_ = now_ns;  // of a request that has come meanwhile
  return true;
}

bool ControlPeer::receive(std::uint64_t now_ns) {
  std::array<char, 65536> some;
  const ssize_t count = ::recv(socket(), some.data(), some.size(), MSG_DONTWAIT);
  if (count == 0) return false;
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (come_.empty()) begun_ns_ = now_ns;
  come_.append(some.data(), static_cast<std::size_t>(count));
  return true;
}

ControlPeer::Came ControlPeer::next(Request& request) const {
  if (!goes_.empty()) return Came::nothing;
  const std::size_t end = std::string_view(come_).substr(0, kControlLineBytesMax).find('\n');
  if (end == std::string::npos) {
    return come_.size() < kControlLineBytesMax ? Came::nothing : Came::nonsense;
  }
  const std::string_view all = come_;
  const auto line = read_control_line(all.substr(0, end));
  if (!line) return Came::nonsense;
  if (all.size() - (end + 1) < line->bytes) return Came::nothing;
  request = {line->word, all.substr(end + 1, line->bytes)};
  return Came::request;
}

void ControlPeer::done(const Request& request, std::string answer, std::uint64_t now_ns) {
  const char* const end = request.body.data() + request.body.size();
  come_.erase(0, static_cast<std::size_t>(end - come_.data()));
  asked_ns_ = now_ns;
  say(std::move(answer), now_ns);
}

void ControlPeer::say(std::string answer, std::uint64_t now_ns) {
  goes_ = std::move(answer);
  gone_ = 0;
  begun_ns_ = now_ns;
}

std::uint64_t ControlPeer::due_ns() const {
  return come_.empty() && goes_.empty() ? kNever : begun_ns_ + kControlLongestNs;
}

}  // namespace espalier::dataplane
