// SPDX-License-Identifier: Apache-2.0
#include "base/user_wait.hpp"

#include <immintrin.h>

#include "base/atomic_bytes.hpp"

namespace espalier::base {

// The line is watched before the word is read for the last time: a write after that ends the rest.
__attribute__((target("waitpkg"))) void rest_until_written(const std::byte* word,
                                                           std::uint32_t seen) {
  constexpr unsigned kLightRest = 1;  // C0.1: quicker to wake from than C0.2
  // umonitor only reads; its parameter lacks the const.
  _umonitor(const_cast<std::byte*>(word));
  if (load_shared<std::uint32_t>(word, std::memory_order_acquire) != seen) return;
  _umwait(kLightRest, __builtin_ia32_rdtsc() + kUserWaitCycles);
}

}  // namespace espalier::base
