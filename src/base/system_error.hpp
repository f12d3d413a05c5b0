// SPDX-License-Identifier: Apache-2.0
// What the operating system refused, as an error.
#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>

#include "espalier/error.hpp"

namespace espalier::base {

/// Code::system with an errno as detail: by default that of the call that has just failed.
[[nodiscard]] inline std::unexpected<Error> refused_by_system(int number = errno) {
  return fail(Code::system, static_cast<std::uint32_t>(number));
}

}  // namespace espalier::base
