// SPDX-License-Identifier: Apache-2.0
#include "memory/page_choice.hpp"

#include <fstream>

namespace espalier::memory {
namespace {

// Each explicit extent is a mapping of its own, and so is what lies between two of them.
constexpr std::uint64_t kMappingsPerExtent = 2;
constexpr std::uint64_t kOtherMappings = 8192;  // of the rest of the process

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t number_in(const char* path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  file >> number;
  return file ? number : otherwise;
}

std::string why_not_explicit(const PageFacts& facts, std::uint64_t extents) {
  if (facts.explicit_free == 0) return "no explicit ones are free";
  if (facts.explicit_free < extents) {
    return "only " + std::to_string(facts.explicit_free) + " of " + std::to_string(extents) +
           " explicit ones are free";
  }
  return "explicit ones need as many mappings: raise vm.max_map_count";
}

}  // namespace

PageFacts read_page_facts() {
  PageFacts facts;
  const auto free = number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", 0);
  const auto promised = number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", 0);
  facts.explicit_free = free > promised ? free - promised : 0;
  const std::string mode = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.transparent_available =
      mode.find("[always]") != std::string::npos || mode.find("[madvise]") != std::string::npos;
  facts.mappings_max = number_in("/proc/sys/vm/max_map_count", facts.mappings_max);
  facts.strict_overcommit = number_in("/proc/sys/vm/overcommit_memory", 0) == 2;
  return facts;
}

PageChoice choose_pages(const PageFacts& facts, std::uint64_t extents, bool huge_pages) {
  if (!huge_pages) return {PageKind::small, "4 KiB pages (huge pages were not asked for)"};
  const bool mappable = extents * kMappingsPerExtent + kOtherMappings <= facts.mappings_max;
  if (facts.explicit_free >= extents && mappable) {
    return {PageKind::explicit_huge,
            "explicit 2 MiB pages (" + std::to_string(extents) + " are free for them)"};
  }
  const std::string why = why_not_explicit(facts, extents);
  const std::string hint = facts.explicit_free < extents ? ": raise vm.nr_hugepages" : "";
  if (facts.transparent_available) {
    return {PageKind::transparent, "transparent huge pages (" + why + hint + ")"};
  }
  return {PageKind::small, "4 KiB pages (huge pages: " + why +
                               ", and transparent ones are switched off in "
                               "/sys/kernel/mm/transparent_hugepage/enabled)"};
}

}  // namespace espalier::memory
