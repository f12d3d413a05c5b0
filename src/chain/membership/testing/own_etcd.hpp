// SPDX-License-Identifier: Apache-2.0
// An etcd of a test's own, in a folder and on ports of its own, which ends with the test.
//
// Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"

namespace espalier::chain {

/// Only a machine that hangs takes so long.
inline constexpr std::uint64_t kEtcdSoonNs = 60'000'000'000;

/// Ports of this machine that are free at the moment.
[[nodiscard]] std::vector<std::uint16_t> free_ports(std::size_t count);

/// Runs a program to its end, whose output goes to a file. Returns its exit code.
int run_program(const std::vector<std::string>& words, const std::string& output);

/// Makes a certificate of this machine that signs itself, DIR/NAME.crt, and its key, DIR/NAME.key.
/// It has no common name, as which etcd would take its own gateway for a user.
/// Returns whether it was made.
[[nodiscard]] bool make_certificate(const base::TemporaryFolder& folder, const std::string& name);

class OwnEtcd {
 public:
  /// `more`: arguments besides. `scheme`: by which clients come.
  explicit OwnEtcd(const base::TemporaryFolder& folder, std::vector<std::string> more = {},
                   const std::string& scheme = "http");
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;
  ~OwnEtcd();

  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Its sockets stay open. Returns whether it stands still by now.
  [[nodiscard]] bool stop() const;
  /// Waits until something listens there that answers, by whatever scheme.
  [[nodiscard]] bool answers() const;
  /// Kills it, and starts it with what its folder has.
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
