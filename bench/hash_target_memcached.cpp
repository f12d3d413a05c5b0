// SPDX-License-Identifier: Apache-2.0
// A memcached process with one worker on the last core, over its UNIX socket: a batch is sent as a
// whole, then its answers are read.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "bench/errno_failure.hpp"
#include "bench/hash_target.hpp"
#include "bench/redis_server.hpp"
#include "bench/resident.hpp"
#include "bench/server_process.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kMemcached = "memcached";
constexpr std::uint64_t kStartsNsMax = 30'000'000'000;
constexpr std::uint64_t kPairBytes = 200;  // enough to keep one

std::vector<std::string> memcached_words(const std::string& socket, std::uint64_t pairs) {
  const auto program = find_program(kMemcached, std::getenv("PATH"));
  if (!program) {
    throw std::runtime_error(
        fmt::format("{} is not installed: apt-get install memcached", kMemcached));
  }
  const std::uint64_t mebibytes = 64 + (pairs * kPairBytes >> 20);
  std::vector<std::string> words{*program, "-s", socket, "-t",
                                 "1",      "-L", "-m",   std::to_string(mebibytes)};
  if (::geteuid() == 0) words.insert(words.end(), {"-u", "root"});
  return words;
}

/// A process without output.
class MemcachedServer {
 public:
  explicit MemcachedServer(std::uint64_t pairs)
      : socket_((folder_ / "memcached.sock").string()),
        nowhere_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
        process_(memcached_words(socket_, pairs), nowhere_.number()) {}

  /// Waits until it accepts connections. Errors: throws std::runtime_error.
  [[nodiscard]] memory::Descriptor connect() {
    const auto address = base::UnixAddress::file(socket_);
    if (!address) throw std::runtime_error("the path of memcached's socket is too long");
    for (const base::Stopwatch watch; watch.elapsed_ns() < kStartsNsMax;) {
      memory::Descriptor end(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!end) fail_with_errno("cannot make a socket");
      if (::connect(end.number(), address->get(), address->bytes()) == 0) return end;
      if (!process_.runs()) break;
      std::this_thread::yield();  // while it makes its socket
    }
    throw std::runtime_error("memcached does not start");
  }
  /// How much of its memory lies on huge pages, which -L only asks for.
  [[nodiscard]] Resident memory() const { return resident(process_.process()); }

 private:
  base::TemporaryFolder folder_;
  std::string socket_;
  memory::Descriptor nowhere_;
  ServerProcess process_;
};

/// Its text protocol. Errors: throws std::runtime_error if the connection breaks, or on an invalid
/// answer.
class MemcachedConnection {
 public:
  explicit MemcachedConnection(memory::Descriptor end) : end_(std::move(end)) {}

  void append(const Request& request) {
    if (request.op == Op::get) {
      out_.append("get ").append(request.key).append("\r\n");
      return;
    }
    out_ += fmt::format("set {} 0 0 {}\r\n", request.key, request.value.size());
    out_.append(request.value).append("\r\n");
  }
  void send() {
    for (std::string_view left = out_; !left.empty();) {
      const ssize_t sent = ::send(end_.number(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR) fail_with_errno("cannot send to memcached");
      if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    }
    out_.clear();
  }
  void take(const Request& request, HashAnswers& answers) {
    const std::string_view first = line();
    if (request.op != Op::get) {
      answers.put += first == "STORED" ? 1 : 0;
      answers.failed += first == "STORED" ? 0 : 1;
      return;
    }
    if (first == "END") return;
    if (!first.starts_with("VALUE ")) throw std::runtime_error("memcached answers nonsense");
    const std::string digits(first.substr(first.rfind(' ') + 1));
    const std::size_t bytes = std::strtoul(digits.c_str(), nullptr, 10);
    answers.value(piece(bytes + 2).substr(0, bytes));
    if (line() != "END") throw std::runtime_error("memcached answers nonsense");
  }

 private:
  /// The next bytes, valid until the next call.
  std::string_view piece(std::size_t bytes) {
    while (in_.size() - at_ < bytes) receive();
    const std::string_view taken = std::string_view(in_).substr(at_, bytes);
    at_ += bytes;
    return taken;
  }
  std::string_view line() {
    std::size_t end = in_.find("\r\n", at_);
    for (; end == std::string::npos; end = in_.find("\r\n", at_)) receive();
    const std::size_t bytes = end - at_;
    return piece(bytes + 2).substr(0, bytes);
  }
  void receive() {
    if (at_ != 0) in_.erase(0, at_);
    at_ = 0;
    char bytes[16384];
    const ssize_t got = ::recv(end_.number(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) throw std::runtime_error("memcached has gone");
    in_.append(bytes, static_cast<std::size_t>(got));
  }

  memory::Descriptor end_;
  std::string out_;
  std::string in_;
  std::size_t at_ = 0;  // of the unread bytes
};

class MemcachedTarget final : public HashTarget {
 public:
  explicit MemcachedTarget(const HashTargetOptions& options)
      : server_(options.pairs), connection_(server_.connect()) {}

  void run(std::span<const Request> requests, std::uint32_t batch, HashAnswers& answers) override {
    for (std::size_t i = 0; i < requests.size(); i += batch) {
      const auto some = requests.subspan(i, std::min<std::size_t>(batch, requests.size() - i));
      for (const Request& request : some) connection_.append(request);
      connection_.send();
      for (const Request& request : some) connection_.take(request, answers);
    }
  }
  [[nodiscard]] std::string settings() const override {
    return "memcached, one worker, over a UNIX socket, " + page_message({}, server_.memory());
  }

 private:
  MemcachedServer server_;
  MemcachedConnection connection_;
};

}  // namespace

std::unique_ptr<HashTarget> make_memcached_target(const HashTargetOptions& options) {
  return std::make_unique<MemcachedTarget>(options);
}

}  // namespace espalier::bench
