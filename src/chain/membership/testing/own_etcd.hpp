// SPDX-License-Identifier: Apache-2.0
// A test's own etcd process, with a folder and ports of its own; it ends with the test.
//
// Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"

namespace espalier::chain {

/// Timeout; only a machine that hangs exceeds it.
inline constexpr std::uint64_t kEtcdSoonNs = 60'000'000'000;

/// Ports of this machine that no process uses now.
[[nodiscard]] std::vector<std::uint16_t> free_ports(std::size_t count);

/// Runs a program to its end, with its output in a file. Returns its exit code.
int run_program(const std::vector<std::string>& words, const std::string& output);

/// Makes a self-signed certificate of this machine, DIR/NAME.crt, and its key, DIR/NAME.key. It has
/// no common name, since etcd would take that of its own gateway for a user's. Returns whether it
/// was made.
[[nodiscard]] bool make_certificate(const base::TemporaryFolder& folder, const std::string& name);

class OwnEtcd {
 public:
  /// `more`: additional arguments. `scheme`: of client connections.
  explicit OwnEtcd(const base::TemporaryFolder& folder, std::vector<std::string> more = {},
                   const std::string& scheme = "http");
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;
  ~OwnEtcd();

  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Stops the process (SIGSTOP); its sockets stay open. Returns whether it has stopped.
  [[nodiscard]] bool stop() const;
  /// Waits until the endpoint answers, by any scheme.
  [[nodiscard]] bool answers() const;
  /// Kills the process, and starts it again on its folder.
  void restart();

 private:
  void start();
  void kill_it();

  const std::string log_;
  std::string endpoint_;
  std::vector<std::string> arguments_;
  pid_t process_ = -1;
};

}  // namespace espalier::chain
