// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/testing/fake_etcd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "base/number_text.hpp"
#include "chain/membership/base64.hpp"

namespace espalier::chain {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLength = "Content-Length: ";

/// Bytes of the body that a head announces; 0: it announces none.
std::size_t body_bytes(std::string_view head) {
  const std::size_t at = head.find(kLength);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = head.substr(at + kLength.size());
  return base::parse_digits<std::size_t>(rest.substr(0, rest.find('\r'))).value_or(0);
}

/// Nothing: the client is gone.
std::optional<FakeEtcd::Request> receive_request(int socket) {
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    const std::size_t end = text.find(kHeadEnd);
    if (end != std::string::npos) {
      const std::size_t body = end + kHeadEnd.size();
      const std::string head = text.substr(0, end);
      if (text.size() >= body + body_bytes(head)) return FakeEtcd::Request{head, text.substr(body)};
    }
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

/// Returns whether the client has taken all.
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

FakeEtcd::FakeEtcd(std::function<Answer(const Request&)> answer)
    : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  if (::bind(listener_, any, bytes) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, any, &bytes) != 0) {
    throw std::runtime_error("cannot listen in the place of etcd");
  }
  endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { serve(); });
}

// A socket that is shut down accepts no more.
FakeEtcd::~FakeEtcd() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  for (const int connection : held_) ::close(connection);
  ::close(listener_);
}

void FakeEtcd::serve() {
  while (!stopping_) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (serve_one(connection)) {
      held_.push_back(connection);
    } else {
      ::close(connection);
    }
  }
}

bool FakeEtcd::serve_one(int connection) {
  const auto request = receive_request(connection);
  if (!request) return false;
  ++requests_;
  const Answer answer = answer_(*request);
  bool is_there = send_all(connection, answer.bytes);
  while (is_there && answer.then == Then::repeat && !stopping_) {
    is_there = send_all(connection, answer.bytes);
  }
  return answer.then == Then::hold;
}

std::string http_answer(int status, std::string_view body) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Words\r\n";
  text += "Content-Type: application/json\r\nConnection: close\r\n";
  text += std::string(kLength) + std::to_string(body.size()) + std::string(kHeadEnd);
  return text += body;
}

std::string range_body(const std::optional<std::string>& value) {
  std::string body = R"({"header":{"revision":"7"})";
  if (value) {
    body += R"(,"kvs":[{"key":"a2V5","mod_revision":"7","value":")" + in_base64(*value) +
            R"("}],"count":"1")";
  }
  return body += "}";
}

}  // namespace espalier::chain
