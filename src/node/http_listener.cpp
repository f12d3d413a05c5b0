// SPDX-License-Identifier: Apache-2.0
#include "node/http_listener.hpp"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/loopback_address.hpp"
#include "base/system_error.hpp"

namespace espalier::node {
namespace {

constexpr int kBacklog = 128;  // so that clients that connect while all places are taken only wait
constexpr int kRestMs = 100;
constexpr std::size_t kDrainBytesMax = std::size_t{1} << 16;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kHeadTooLong =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: "
    "0\r\n\r\n";

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Whether a request names this machine as its host. A web page can make a browser contact a
/// hostname of its own that resolves to here (DNS rebinding), but not by these names. HTTP/1.0
/// names none.
bool is_loopback_host(std::string_view host) {
  if (host.empty()) return true;
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  if (has_port) host = host.substr(0, colon);
  std::string name(host);
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (name == "localhost" || name == "[::1]") return true;
  in_addr address{};
  constexpr std::uint32_t kLoopbackNet = 127;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == kLoopbackNet;
}

/// Stands for a connection: the head of a request, and room for the answer.
class InMemory final : public httplib::Stream {
 public:
  explicit InMemory(std::string_view head) : head_(head) {}

  bool is_readable() const override { return !head_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* into, std::size_t bytes) override {
    const std::size_t taken = std::min(bytes, head_.size());
    std::memcpy(into, head_.data(), taken);
    head_.remove_prefix(taken);
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, std::size_t bytes) override {
    answer_.append(from, bytes);
    return static_cast<ssize_t>(bytes);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }

  [[nodiscard]] std::string take_answer() { return std::move(answer_); }

 private:
  std::string_view head_;
  std::string answer_;
};

/// Restores SIGPIPE: the constructor of the library's server ignores it for the whole process.
class KeepSigpipe {
 public:
  KeepSigpipe() { ::sigaction(SIGPIPE, nullptr, &before_); }
  ~KeepSigpipe() { ::sigaction(SIGPIPE, &before_, nullptr); }
  KeepSigpipe(const KeepSigpipe&) = delete;
  KeepSigpipe& operator=(const KeepSigpipe&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

/// The library's server, used only to parse a head and write an answer.
class HttpListener::Pages final : private httplib::Server {
 public:
  static std::unique_ptr<Pages> make(std::function<std::string()> metrics,
                                     std::function<bool()> serves) {
    const KeepSigpipe keep;
    return std::make_unique<Pages>(std::move(metrics), std::move(serves));
  }
  Pages(std::function<std::string()> metrics, std::function<bool()> serves)
      : metrics_(std::move(metrics)), serves_(std::move(serves)) {
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
      return HandlerResponse::Handled;
    });
  }

  /// The answer to a request; empty: none.
  std::string answer_to(std::string_view head) {
    InMemory stream(head);
    bool closed = false;
    try {
      // Ignores ranges: a page in parts could be many times the page.
      process_request(stream, true, closed, [](httplib::Request& request) {
        request.ranges.clear();
        request.headers.erase("Range");
      });
    } catch (...) {  // the library throws on some heads
      return {};
    }
    return stream.take_answer();
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) const {
    if (request.get_header_value_count("Host") > 1 ||
        !is_loopback_host(request.get_header_value("Host"))) {
      response.status = 421;
      response.set_content("This is for programs of this machine: ask for localhost.\n",
                           "text/plain; charset=utf-8");
      return;
    }
    if (request.method == "GET" && request.path == "/metrics") {
      response.set_content(metrics_(), "text/plain; version=0.0.4; charset=utf-8");
    } else if (request.method == "GET" && request.path == "/healthz") {
      const bool serves = !serves_ || serves_();
      if (!serves) response.status = 503;
      response.set_content(serves ? "ok" : "starting", "text/plain; charset=utf-8");
    } else {
      response.status = 404;
      response.set_content("There are /metrics and /healthz.\n", "text/plain; charset=utf-8");
    }
  }

  std::function<std::string()> metrics_;
  std::function<bool()> serves_;
};

HttpListener::HttpListener(std::function<std::string()> metrics, std::uint64_t connection_ns,
                           std::function<bool()> serves)
    : pages_(Pages::make(std::move(metrics), std::move(serves))), connection_ns_(connection_ns) {}

HttpListener::~HttpListener() { stop(); }

Result<void> HttpListener::start(std::uint16_t port) {
  if (!wake_event_.open()) return base::refused_by_system();
  if (const auto bound = bind_to(AF_INET, port); !bound) return bound;
  const auto second = bind_to(AF_INET6, port_);
  if (!second) {
    const bool no_such_address = second.error() == Error{Code::system, 0, EAFNOSUPPORT} ||
                                 second.error() == Error{Code::system, 0, EADDRNOTAVAIL};
    // A port that was free for one address family may be in use for the other.
    const bool given = port == 0 && second.error().code == Code::already_exists;
    if (!no_such_address && !given) return second;
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {  // no thread available
    return base::refused_by_system(error.code().value());
  }
  return {};
}

Result<void> HttpListener::bind_to(int family, std::uint16_t port) {
  memory::Descriptor listening(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening) return base::refused_by_system();
  const int number = listening.number();
  const int one = 1;
  // Connections of a node that has just ended must not block the port.
  ::setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const base::LoopbackAddress address(family, port);
  if (family == AF_INET6) ::setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  if (::bind(number, address.get(), address.bytes()) != 0 || ::listen(number, kBacklog) != 0) {
    if (errno == EADDRINUSE) return fail(Code::already_exists, port);
    if (errno == EACCES) return fail(Code::invalid_argument, port);
    return base::refused_by_system();
  }
  if (port_ == 0) {
    sockaddr_in bound{};
    socklen_t bound_bytes = sizeof bound;
    if (::getsockname(number, reinterpret_cast<sockaddr*>(&bound), &bound_bytes) != 0) {
      return base::refused_by_system();
    }
    port_ = ntohs(bound.sin_port);
  }
  sockets_.push_back(std::move(listening));
  return {};
}

void HttpListener::stop() {
  if (thread_.joinable()) {
    stopping_.store(true, std::memory_order_release);
    wake_event_.signal();
    thread_.join();
  }
  connections_.clear();
  sockets_.clear();
}

void HttpListener::run() {
  ::pthread_setname_np(::pthread_self(), "http");
  std::vector<pollfd> watched;
  while (!stopping_.load(std::memory_order_acquire)) {
    watched.clear();
    watched.push_back({wake_event_.number(), POLLIN, 0});
    for (const Connection& connection : connections_) {
      const short events = connection.phase == Phase::writing ? POLLOUT : POLLIN;
      watched.push_back({connection.socket.number(), events, 0});
    }
    if (!resting_) {
      for (const auto& socket : sockets_) watched.push_back({socket.number(), POLLIN, 0});
    }
    if (::poll(watched.data(), watched.size(), milliseconds_left()) < 0) continue;
    resting_ = false;
    const std::size_t connections = connections_.size();
    const std::uint64_t now = base::monotonic_ns();
    for (std::size_t i = connections; i != 0; --i) {  // backwards, since some are removed
      Connection& connection = connections_[i - 1];
      const bool news = watched[i].revents != 0;
      if (connection.until_ns > now && (!news || go_on(connection))) continue;
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    for (std::size_t i = connections + 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) accept_from(watched[i].fd);
    }
  }
}

// Rounded up, so that the thread does not wake before the timeout.
int HttpListener::milliseconds_left() const {
  constexpr std::uint64_t kMostMs = 3'600'000;
  if (resting_) return kRestMs;
  if (connections_.empty()) return -1;
  const auto first = std::ranges::min_element(connections_, {}, &Connection::until_ns);
  const std::uint64_t now = base::monotonic_ns();
  if (first->until_ns <= now) return 0;
  return static_cast<int>(std::min((first->until_ns - now) / 1'000'000 + 1, kMostMs));
}

void HttpListener::accept_from(int socket) {
  for (;;) {
    if (!has_room()) {
      resting_ = true;  // poll() would report the same client again
      return;
    }
    memory::Descriptor client(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) {
      // Without descriptors no client can be accepted, and poll() would report it again
      // immediately.
      if (!would_wait() && errno != ECONNABORTED) resting_ = true;
      return;
    }
    Connection connection;
    connection.socket = std::move(client);
    connection.since_ns = base::monotonic_ns();
    connection.until_ns = connection.since_ns + connection_ns_;
    make_room();
    connections_.push_back(std::move(connection));
  }
}

/// Whether there is a place for one more, free or by eviction.
bool HttpListener::has_room() const {
  if (connections_.size() < kConnectionsMax) return true;
  const auto oldest = std::ranges::min_element(connections_, {}, &Connection::since_ns);
  return base::monotonic_ns() - oldest->since_ns >= kSafeNs;
}

/// Evicts the oldest connection if there is no free place.
void HttpListener::make_room() {
  if (connections_.size() < kConnectionsMax) return;
  connections_.erase(std::ranges::min_element(connections_, {}, &Connection::since_ns));
}

/// Proceeds without blocking. Returns false when the connection is over.
bool HttpListener::go_on(Connection& connection) {
  if (connection.phase == Phase::reading && !read_head(connection)) return false;
  if (connection.phase == Phase::writing && !write_answer(connection)) return false;
  return connection.phase != Phase::draining || drain(connection);
}

bool HttpListener::read_head(Connection& connection) {
  std::string& head = connection.head;
  char bytes[2048];
  while (head.size() < kHeadBytesMax) {
    const std::size_t room = std::min(sizeof bytes, kHeadBytesMax - head.size());
    const ssize_t got = ::recv(connection.socket.number(), bytes, room, 0);
    if (got < 0 && would_wait()) return true;
    if (got <= 0) return false;
    const std::size_t looked = head.size() < kHeadEnd.size() ? 0 : head.size() - kHeadEnd.size();
    head.append(bytes, static_cast<std::size_t>(got));
    if (const std::size_t end = head.find(kHeadEnd, looked); end != std::string::npos) {
      connection.answer =
          pages_->answer_to(std::string_view(head).substr(0, end + kHeadEnd.size()));
      connection.phase = Phase::writing;
      return !connection.answer.empty();
    }
  }
  connection.answer = kHeadTooLong;
  connection.phase = Phase::writing;
  return true;
}

bool HttpListener::write_answer(Connection& connection) {
  const std::string_view answer = connection.answer;
  while (connection.written < answer.size()) {
    const std::string_view left = answer.substr(connection.written);
    const ssize_t sent =
        ::send(connection.socket.number(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && would_wait()) return true;
    if (sent < 0) return false;
    connection.written += static_cast<std::size_t>(sent);
  }
  connection.phase = Phase::draining;
  return ::shutdown(connection.socket.number(), SHUT_WR) == 0;
}

// A bounded amount, since others wait meanwhile.
bool HttpListener::drain(Connection& connection) {
  char bytes[16384];
  const ssize_t got = ::recv(connection.socket.number(), bytes, sizeof bytes, 0);
  if (got < 0) return would_wait();
  connection.drained += static_cast<std::size_t>(got);
  return got > 0 && connection.drained < kDrainBytesMax;
}

}  // namespace espalier::node
