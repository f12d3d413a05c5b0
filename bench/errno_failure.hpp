// SPDX-License-Identifier: Apache-2.0
// The reason of a failed system call, for benchmarks that cannot continue.
#pragma once

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace espalier::bench {

[[noreturn]] inline void fail_with_errno(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace espalier::bench
