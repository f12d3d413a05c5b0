// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/testing/own_etcd.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "chain/membership/etcd_gateway.hpp"

namespace espalier::chain {
namespace {

pid_t start_program(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

std::vector<std::string> arguments_of(const base::TemporaryFolder& folder,
                                      const std::string& clients, const std::string& peers,
                                      std::vector<std::string> more) {
  std::vector<std::string> words = {"etcd",
                                    "--data-dir=" + (folder / "etcd").string(),
                                    "--listen-client-urls=" + clients,
                                    "--advertise-client-urls=" + clients,
                                    "--listen-peer-urls=" + peers,
                                    "--initial-advertise-peer-urls=" + peers,
                                    "--initial-cluster=default=" + peers};
  for (std::string& word : more) words.push_back(std::move(word));
  return words;
}

}  // namespace

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

int run_program(const std::vector<std::string>& words, const std::string& output) {
  return base::wait_for_child(start_program(words, output));
}

bool make_certificate(const base::TemporaryFolder& folder, const std::string& name) {
  const std::string path = (folder / name).string();
  return run_program({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/O=" + name,
                      "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out",
                      path + ".crt"},
                     path + ".log") == 0;
}

OwnEtcd::OwnEtcd(const base::TemporaryFolder& folder, std::vector<std::string> more,
                 const std::string& scheme)
    : log_((folder / "etcd.log").string()) {
  const auto ports = free_ports(2);
  endpoint_ = "127.0.0.1:" + std::to_string(ports[0]);
  arguments_ = arguments_of(folder, scheme + "://" + endpoint_,
                            "http://127.0.0.1:" + std::to_string(ports[1]), std::move(more));
  start();
}

OwnEtcd::~OwnEtcd() { kill_it(); }

void OwnEtcd::start() { process_ = start_program(arguments_, log_); }

void OwnEtcd::kill_it() {
  ::kill(process_, SIGKILL);
  base::wait_for_child(process_);
}

void OwnEtcd::restart() {
  kill_it();
  start();
}

bool OwnEtcd::stop() const {
  if (::kill(process_, SIGSTOP) != 0) return false;
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED) != 0) {
    if (errno != EINTR) return false;
  }
  return info.si_code == CLD_STOPPED;
}

// An etcd that refuses the client answers, too.
bool OwnEtcd::answers() const {
  EtcdGateway gateway({endpoint_}, {});
  for (const base::Stopwatch watch; watch.elapsed_ns() < kEtcdSoonNs;) {
    const auto answer = gateway.post("/v3/kv/range", R"({"key":"bm90aGluZw=="})");
    if (answer || answer.error().words.find("status") != std::string::npos) return true;
    ::poll(nullptr, 0, 20);
  }
  return false;
}

}  // namespace espalier::chain
