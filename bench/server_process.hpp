// SPDX-License-Identifier: Apache-2.0
// A peer's server as a child process, which ends with this process, also in a crash.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace espalier::bench {

class ServerProcess {
 public:
  ServerProcess() = default;
  /// Starts `words`, of which the first is the program's path; its output goes to `output`. It is
  /// killed with this object, or when the calling thread ends. Errors: throws std::runtime_error
  /// with the reason.
  ServerProcess(std::vector<std::string> words, int output);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  [[nodiscard]] pid_t process() const { return process_; }
  /// Whether it is still running. Cost: a system call.
  [[nodiscard]] bool runs();

 private:
  pid_t process_ = -1;
};

}  // namespace espalier::bench
