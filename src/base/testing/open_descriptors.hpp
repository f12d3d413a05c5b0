// SPDX-License-Identifier: Apache-2.0
// For tests: how many descriptors this process has open.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace espalier::base {

/// Descriptors of this process; without pipes, unless `with_pipes`: clang's
/// UndefinedBehaviorSanitizer opens some for a moment, in any thread, to find out whether memory
/// can be read. Slow: a system call for each.
inline std::size_t open_descriptors(bool with_pipes = false) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && (with_pipes || !what.starts_with("pipe:"))) ++count;
  }
  return count;
}

}  // namespace espalier::base
