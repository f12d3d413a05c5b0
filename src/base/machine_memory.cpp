// SPDX-License-Identifier: Apache-2.0
#include "base/machine_memory.hpp"

#include <unistd.h>

namespace espalier::base {

std::uint64_t machine_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

std::uint64_t default_store_bytes() {
  const std::uint64_t all = machine_memory_bytes();
  return all != 0 ? all / 4 * 3 : std::uint64_t{1} << 30;
}

}  // namespace espalier::base
