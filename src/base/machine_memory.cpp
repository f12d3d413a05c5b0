// SPDX-License-Identifier: Apache-2.0
#include "base/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "base/number_text.hpp"

namespace espalier::base {
namespace {

/// The least limit so far, and the files that may hold a lower one.
class LeastLimit {
 public:
  /// Looks into the folder and all below it that lie on the way along `path`. A container often
  /// sees the path that its group has outside, and its group's own files in the root.
  void look(const std::string& root, std::string_view path, const std::string& file) {
    read(root + "/" + file);
    // A path out of the root is that of a group which cannot be seen from here.
    if (path.find("/..") != std::string_view::npos) return;
    for (std::size_t at = 1; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      read(root + std::string(path.substr(0, end)) + "/" + file);
      at = end + 1;
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> bytes() const { return bytes_; }

 private:
  void read(const std::string& file) {
    std::string text;
    if (std::ifstream in(file); !std::getline(in, text)) return;
    const auto limit = parse_digits<std::uint64_t>(text);  // "max" is none
    if (limit && (!bytes_ || *limit < *bytes_)) bytes_ = limit;
  }

  std::optional<std::uint64_t> bytes_;
};

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "memory") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

std::optional<std::uint64_t> cgroup_memory_bytes(const CgroupPlaces& places) {
  LeastLimit least;
  std::ifstream in(places.of_process);
  // HIERARCHY:CONTROLLERS:PATH; version 2 has hierarchy 0 and names no controllers.
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers.empty()) {
      least.look(places.root, path, "memory.max");
    } else if (names_memory(controllers)) {
      least.look(places.root + "/memory", path, "memory.limit_in_bytes");
    }
  }
  return least.bytes();
}

std::uint64_t usable_memory_bytes(const CgroupPlaces& places) {
  const std::uint64_t machine = machine_memory_bytes();
  const auto limit = cgroup_memory_bytes(places);
  if (!limit) return machine;
  return machine == 0 ? *limit : std::min(machine, *limit);
}

std::uint64_t default_store_bytes(const CgroupPlaces& places) {
  const std::uint64_t all = usable_memory_bytes(places);
  return all != 0 ? all / 4 * 3 : std::uint64_t{1} << 30;
}

}  // namespace espalier::base
