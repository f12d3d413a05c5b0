// SPDX-License-Identifier: Apache-2.0
// How much memory this machine has, and how much of it this process may use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace espalier::base {

/// The machine's memory in bytes; 0: unknown.
[[nodiscard]] std::uint64_t machine_memory_bytes();

/// Where the system describes control groups; tests have others.
struct CgroupPlaces {
  std::string of_process = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

/// The least limit on the memory of this process's control group and those around it: memory.max of
/// version 2, memory.limit_in_bytes of version 1, as far as they can be read. Nothing: there is
/// none. Version 1 without a limit reports one beyond all memory.
[[nodiscard]] std::optional<std::uint64_t> cgroup_memory_bytes(const CgroupPlaces& places = {});

/// The machine's memory, or the limit of the control group if that is less; 0: neither is known.
[[nodiscard]] std::uint64_t usable_memory_bytes(const CgroupPlaces& places = {});

/// What a store may take when no limit is given: three quarters of what this process may use, or 1
/// GiB where that is not known.
[[nodiscard]] std::uint64_t default_store_bytes(const CgroupPlaces& places = {});

}  // namespace espalier::base
