// SPDX-License-Identifier: Apache-2.0
#include "memory/collapse.hpp"

#include <sys/mman.h>

#include "base/system_error.hpp"
#include "memory/region.hpp"

namespace espalier::memory {
namespace {

#if !defined(MADV_POPULATE_WRITE)
constexpr int MADV_POPULATE_WRITE = 23;
#endif
#if !defined(MADV_COLLAPSE)
constexpr int MADV_COLLAPSE = 25;
#endif
constexpr std::uint64_t kSmallPageBytes = 4096;

}  // namespace

Result<void> collapse(AddressRange& range, std::uint64_t offset) {
  // By the system, so that a writer that is there already notices nothing.
  if (!range.advise(offset, kSmallPageBytes, MADV_POPULATE_WRITE) ||
      !range.advise(offset, kExtentBytes, MADV_COLLAPSE)) {
    return base::refused_by_system();
  }
  return {};
}

Result<void> populate(AddressRange& range, std::uint64_t offset) {
  if (!range.advise(offset, kExtentBytes, MADV_POPULATE_WRITE)) return base::refused_by_system();
  return {};
}

}  // namespace espalier::memory
