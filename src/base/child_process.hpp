// SPDX-License-Identifier: Apache-2.0
// The end of a process that this one has started.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>

namespace espalier::base {

/// Waits until a child ends, and lets the system forget it. Returns its exit code, or minus the
/// signal that ended it. Requires: nobody has waited for it yet.
inline int wait_for_child(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace espalier::base
