// SPDX-License-Identifier: Apache-2.0
// The exit of a child process.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>

namespace espalier::base {

/// Waits until a child exits, and reaps it. Returns its exit code, or minus the signal that ended
/// it. Requires: it has not been reaped yet.
inline int wait_for_child(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace espalier::base
