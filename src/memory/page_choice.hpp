// SPDX-License-Identifier: Apache-2.0
// The choice of pages for a store's memory, from what the machine offers.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::memory {

enum class PageKind : std::uint8_t { small, transparent, explicit_huge, collapsed };

/// Facts about the machine on which the choice of pages depends.
struct PageFacts {
  std::uint64_t explicit_free = 0;     // free explicit huge pages of 2 MiB, not promised to others
  bool transparent_available = false;  // .../transparent_hugepage/enabled is "always" or "madvise"
  std::uint64_t mappings_max = 65530;  // vm.max_map_count
  bool strict_overcommit = false;      // vm.overcommit_memory is 2
};

/// Reads PageFacts from /proc and /sys. Unreadable facts count as absent.
PageFacts read_page_facts();

struct PageChoice {
  PageKind kind = PageKind::small;
  std::string message;
};

/// The kind of pages for a private region of so many extents, and one sentence on why.
PageChoice choose_pages(const PageFacts& facts, std::uint64_t extents, bool huge_pages);

}  // namespace espalier::memory
