// SPDX-License-Identifier: Apache-2.0
// A node in a process of its own, so that its use of memory and processors can be separated from
// that of its clients.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "memory/shared_memory.hpp"
#include "node/config.hpp"

namespace espalier::bench {

class NodeProcess {
 public:
  /// Forks, and waits until the child listens. The child ends with this object, or with the calling
  /// thread. Errors: throws std::runtime_error with the reason. Requires: no other thread of this
  /// process holds a lock that a node needs; at best there is none.
  explicit NodeProcess(const node::Config& config);
  ~NodeProcess();
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }
  /// Sleeps so long. Errors: throws std::runtime_error if the node ends meanwhile.
  void watch(double seconds) const;

 private:
  memory::Descriptor line_;  // each side detects the other's end by it
  pid_t process_ = -1;
};

/// Processor time of all threads that the process has now, in nanoseconds, from /proc. Errors:
/// throws std::runtime_error if the kernel does not report it.
[[nodiscard]] std::uint64_t cpu_ns_of(pid_t process);

/// How many descriptors it has open, from /proc. Errors: throws std::filesystem::filesystem_error.
[[nodiscard]] std::uint64_t descriptors_of(pid_t process);

}  // namespace espalier::bench
