// SPDX-License-Identifier: Apache-2.0
#include "bench/persist.hpp"

#include <cpuid.h>

#include <cstdint>

#include "base/prefetch.hpp"

namespace espalier::bench {
namespace {

bool has_clwb() {
  constexpr unsigned kClwbBit = 1U << 24;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClwbBit) != 0;
}

}  // namespace

void persist(std::span<const std::byte> bytes) noexcept {
  static const bool keeps_lines = has_clwb();
  if (bytes.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::byte* const end = bytes.data() + bytes.size();
  for (const std::byte* line = bytes.data() - begin % base::kLineBytes; line < end;
       line += base::kLineBytes) {
    // Older processors lose the line as they write it back.
    if (keeps_lines) {
      asm volatile("clwb %0" : : "m"(*line) : "memory");
    } else {
      asm volatile("clflush %0" : : "m"(*line) : "memory");
    }
  }
  asm volatile("sfence" : : : "memory");
}

}  // namespace espalier::bench
