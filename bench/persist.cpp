// SPDX-License-Identifier: Apache-2.0
#include "bench/persist.hpp"

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/prefetch.hpp"

namespace espalier::bench {
namespace {

#if defined(__x86_64__)
bool has_clwb() {
  constexpr unsigned kClwbBit = 1U << 24;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClwbBit) != 0;
}

void write_back(const std::byte* line) noexcept {
  // Older processors lose the line as they write it back.
  static const bool keeps_lines = has_clwb();
  if (keeps_lines) {
    asm volatile("clwb %0" : : "m"(*line) : "memory");
  } else {
    asm volatile("clflush %0" : : "m"(*line) : "memory");
  }
}

void await_write_back() noexcept { asm volatile("sfence" : : : "memory"); }
#else
/// Where nothing is known of it, memory is not emulated further than by its order.
void write_back(const std::byte*) noexcept {}
void await_write_back() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
#endif

}  // namespace

void persist(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::byte* const end = bytes.data() + bytes.size();
  for (const std::byte* line = bytes.data() - begin % base::kLineBytes; line < end;
       line += base::kLineBytes) {
    write_back(line);
  }
  await_write_back();
}

}  // namespace espalier::bench
