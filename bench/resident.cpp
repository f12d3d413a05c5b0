// SPDX-License-Identifier: Apache-2.0
#include "bench/resident.hpp"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

namespace espalier::bench {
namespace {

std::uint64_t growth(std::uint64_t before, std::uint64_t after) {
  return after > before ? after - before : 0;
}

}  // namespace

Resident resident() {
  Resident result;
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    const std::uint64_t bytes = kib * 1024;
    if (name == "Rss:") result.bytes += bytes;
    if (name == "AnonHugePages:" || name == "ShmemPmdMapped:") result.huge_bytes += bytes;
    if (name == "Private_Hugetlb:" || name == "Shared_Hugetlb:") {
      result.bytes += bytes;  // not counted in Rss
      result.huge_bytes += bytes;
    }
  }
  return result;
}

std::string page_message(const Resident& before, const Resident& after) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  return fmt::format("{} of {} MiB on huge pages",
                     growth(before.huge_bytes, after.huge_bytes) / kMib,
                     growth(before.bytes, after.bytes) / kMib);
}

}  // namespace espalier::bench
