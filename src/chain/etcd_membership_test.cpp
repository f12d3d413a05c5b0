// SPDX-License-Identifier: Apache-2.0
// A chain in an etcd of the test's own, in a folder and on ports of its own.
#include "chain/etcd_membership.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/temporary_folder.hpp"

namespace espalier::chain {
namespace {

constexpr std::uint64_t kEtcdSoonNs = 60'000'000'000;  // only a machine that hangs takes so long

View etcd_view(std::uint64_t epoch) {
  return {.chain = 12,
          .epoch = epoch,
          .fence_ms = 400,
          .members = {{1, "a", "roce://10.0.0.1/a"}, {2, "b", "roce://10.0.0.2/b"}}};
}

/// Ports of this machine that nobody has just now.
std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<std::uint16_t> ports;
  std::vector<int> sockets;
  for (std::size_t i = 0; i < count; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(sockets.back(), any, bytes), 0);
    EXPECT_EQ(::getsockname(sockets.back(), any, &bytes), 0);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int socket : sockets) ::close(socket);
  return ports;
}

/// Ends with the test.
class OwnEtcd {
 public:
  explicit OwnEtcd(const base::TemporaryFolder& folder) {
    const auto ports = free_ports(2);
    endpoint_ = "127.0.0.1:" + std::to_string(ports[0]);
    const std::string clients = "http://" + endpoint_;
    const std::string peers = "http://127.0.0.1:" + std::to_string(ports[1]);
    const std::vector<std::string> arguments = {"etcd",
                                                "--data-dir=" + (folder / "etcd").string(),
                                                "--listen-client-urls=" + clients,
                                                "--advertise-client-urls=" + clients,
                                                "--listen-peer-urls=" + peers,
                                                "--initial-advertise-peer-urls=" + peers,
                                                "--initial-cluster=default=" + peers};
    const std::string log = (folder / "etcd.log").string();
    std::vector<char*> words;
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvp("etcd", words.data());
    ::_exit(127);
  }
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;
  ~OwnEtcd() {
    ::kill(process_, SIGKILL);
    base::wait_for_child(process_);
  }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Its sockets stay open. Returns whether it stands still by now.
  [[nodiscard]] bool stop() const {
    if (::kill(process_, SIGSTOP) != 0) return false;
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED) != 0) {
      if (errno != EINTR) return false;
    }
    return info.si_code == CLD_STOPPED;
  }
  /// Waits until it answers.
  [[nodiscard]] bool answers() const {
    EtcdMembership membership({{endpoint_}, "nothing"});
    for (const base::Stopwatch watch; watch.elapsed_ns() < kEtcdSoonNs;) {
      if (membership.read()) return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  }

 private:
  std::string endpoint_;
  pid_t process_ = -1;
};

TEST(EtcdMembership, AViewGoesOnFromTheOneBefore) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers()) << "Is etcd installed? scripts/install-packages.sh --tests does it.";
  EtcdMembership membership({{etcd.endpoint()}, "espalier/kv"});
  EtcdMembership other({{etcd.endpoint()}, "espalier/kv"});
  EXPECT_EQ(membership.read().value(), std::nullopt);
  EXPECT_EQ(membership.replace(etcd_view(2)), false);  // there is none yet
  EXPECT_EQ(membership.replace(etcd_view(1)), true);
  EXPECT_EQ(other.replace(etcd_view(1)), false);
  EXPECT_EQ(other.replace(etcd_view(2)), true);
  EXPECT_EQ(membership.replace(etcd_view(2)), false);
  EXPECT_EQ(membership.replace(etcd_view(4)), false);
  EXPECT_EQ(membership.read().value(), etcd_view(2));
}

TEST(EtcdMembership, AnEtcdThatWasStoppedIsGivenUpAndTheNextOneIsAsked) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers());
  const std::string nobody = "127.0.0.1:" + std::to_string(free_ports(1)[0]);
  EtcdMembership both({{nobody, etcd.endpoint()}, "chain"});
  EXPECT_EQ(both.replace(etcd_view(1)), true);
  EXPECT_EQ(both.read().value(), etcd_view(1));
  ASSERT_TRUE(etcd.stop());
  const auto stopped = both.read();
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().find("etcd at "), std::string::npos);
  ::kill(etcd.process(), SIGCONT);
  for (const base::Stopwatch watch; watch.elapsed_ns() < kEtcdSoonNs;) {
    if (both.read()) break;
  }
  EXPECT_EQ(both.read().value(), etcd_view(1));
}

TEST(EtcdMembershipConcurrency, OfThoseWhoProposeOneWins) {
  const base::TemporaryFolder folder;
  const OwnEtcd etcd(folder);
  ASSERT_TRUE(etcd.answers());
  constexpr std::uint64_t kEpochs = 10;
  ASSERT_EQ(EtcdMembership({{etcd.endpoint()}, "chain"}).replace(etcd_view(1)), true);
  std::vector<std::vector<bool>> won(3, std::vector<bool>(kEpochs + 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < won.size(); ++i) {
    threads.emplace_back([&, i] {
      EtcdMembership membership({{etcd.endpoint()}, "chain"});
      for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) {
        const auto taken = membership.replace(etcd_view(epoch));
        won[i][epoch] = taken && *taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) {
    const auto winners =
        std::ranges::count_if(won, [&](const auto& of_thread) { return of_thread[epoch]; });
    EXPECT_LE(winners, 1) << epoch;
  }
}

}  // namespace
}  // namespace espalier::chain
