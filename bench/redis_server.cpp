// SPDX-License-Identifier: Apache-2.0
// Detects in the server's log that it listens, without retries; if it does not start, the error has
// its own message.
#include "bench/redis_server.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/loopback_address.hpp"
#include "bench/errno_failure.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kStartNsMax = 30'000'000'000;
constexpr std::string_view kRedisListens = "eady to accept connections";  // all versions say it so

// Reserves a free TCP port until the server listens there: a bound port is not given to others. The
// server may bind it too, since both set SO_REUSEADDR and this socket does not listen.
class KeptPort {
 public:
  KeptPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const base::LoopbackAddress any_port(AF_INET, 0);
    const int yes = 1;
    sockaddr_in bound{};
    socklen_t bytes = sizeof bound;
    if (!socket_ ||
        ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(socket_.number(), any_port.get(), any_port.bytes()) != 0 ||
        ::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
      fail_with_errno("cannot find a free TCP port");
    }
    number_ = ntohs(bound.sin_port);
  }
  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  memory::Descriptor socket_;
  std::uint16_t number_ = 0;
};

// Reads the child's log until it listens. Errors: throws std::runtime_error with its message.
void wait_until_it_listens(int log) {
  const base::Stopwatch watch;
  std::string text;
  while (text.find(kRedisListens) == std::string::npos) {
    const std::uint64_t spent_ns = watch.elapsed_ns();
    pollfd at{.fd = log, .events = POLLIN, .revents = 0};
    const int left_ms =
        spent_ns < kStartNsMax ? static_cast<int>((kStartNsMax - spent_ns) / 1'000'000) : 0;
    const int ready = ::poll(&at, 1, left_ms);
    if (ready < 0 && errno == EINTR) continue;
    char bytes[4096];
    const ssize_t got = ready > 0 ? ::read(log, bytes, sizeof bytes) : 0;
    if (got <= 0) {
      throw std::runtime_error(fmt::format("{} does not start; its words: {}", kRedisProgram,
                                           text.empty() ? "none" : text));
    }
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::optional<std::string> find_program(std::string_view name, const char* path) {
  std::string_view left = path == nullptr ? "" : path;
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(left.size(), folder.size() + 1));
    std::string program = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

RedisServer::RedisServer(RedisDoor door) {
  const auto program = find_program(kRedisProgram, std::getenv("PATH"));
  if (!program) {
    throw std::runtime_error(
        fmt::format("{} is not installed: apt-get install redis-server, or name one that runs with "
                    "--redis-address",
                    kRedisProgram));
  }
  std::vector<std::string> words{
      *program, "--save", "", "--appendonly", "no", "--dir", folder_.string(), "--daemonize", "no"};
  std::optional<KeptPort> port;
  if (door == RedisDoor::tcp) {
    address_.host = "127.0.0.1";
    address_.port = port.emplace().number();
    words.insert(words.end(), {"--bind", address_.host, "--port", std::to_string(address_.port)});
  } else {
    address_.path = (folder_ / "redis.sock").string();
    words.insert(words.end(), {"--port", "0", "--unixsocket", address_.path});
  }
  // On the last core, as the workers of a node: clients begin with the first.
  const std::vector<unsigned> cores = base::usable_cores();
  if (cores.size() > 1) {
    words.emplace_back("--server_cpulist");
    words.push_back(std::to_string(cores.back()));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_with_errno("cannot make a pipe");
  const memory::Descriptor log(ends[0]);
  memory::Descriptor output(ends[1]);
  child_.emplace(std::move(words), output.number());
  output.close();
  wait_until_it_listens(log.number());  // later output is dropped
}

}  // namespace espalier::bench
