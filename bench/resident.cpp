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

// Calls `take(name, bytes)` for each line of a file like "Rss:   1234 kB".
template <class Take>
void read_sizes(const std::string& path, Take take) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib) take(name, kib * 1024);
  }
}

Resident read_rollup(const std::string& process) {
  Resident result;
  read_sizes("/proc/" + process + "/smaps_rollup",
             [&](const std::string& name, std::uint64_t bytes) {
               if (name == "Rss:") result.bytes += bytes;
               if (name == "AnonHugePages:" || name == "ShmemPmdMapped:")
                 result.huge_bytes += bytes;
               if (name == "Private_Hugetlb:" || name == "Shared_Hugetlb:") {
                 result.bytes += bytes;  // not counted in Rss
                 result.huge_bytes += bytes;
               }
             });
  return result;
}

}  // namespace

Resident resident() { return read_rollup("self"); }
Resident resident(pid_t process) { return read_rollup(std::to_string(process)); }

std::uint64_t available_bytes() {
  std::uint64_t result = 0;
  read_sizes("/proc/meminfo", [&](const std::string& name, std::uint64_t bytes) {
    if (name == "MemAvailable:") result = bytes;
  });
  return result;
}

std::string page_message(const Resident& before, const Resident& after) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  return fmt::format("{} of {} MiB on huge pages",
                     growth(before.huge_bytes, after.huge_bytes) / kMib,
                     growth(before.bytes, after.bytes) / kMib);
}

}  // namespace espalier::bench
