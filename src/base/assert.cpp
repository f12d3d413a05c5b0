// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace espalier::base {

void assertion_failed(const char* text, const std::source_location& where) noexcept {
  std::fprintf(stderr, "%s:%u: %s: assertion failed: %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name(), text);
  std::fflush(stderr);
  std::abort();
}

}  // namespace espalier::base
