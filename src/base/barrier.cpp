// SPDX-License-Identifier: Apache-2.0
#include "base/barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

namespace espalier::base {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool register_asymmetric_barriers() {
  if (kThreadSanitizer) return false;
  const long offered = membarrier(MEMBARRIER_CMD_QUERY);
  if (offered < 0 || (offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) return false;
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

void heavy_barrier() {
  // It cannot fail once registered; if it did, to go on would free memory under readers.
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0) std::terminate();
}

}  // namespace espalier::base
