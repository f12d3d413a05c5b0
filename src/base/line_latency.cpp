// SPDX-License-Identifier: Apache-2.0
#include "base/line_latency.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/clock.hpp"
#include "base/random.hpp"

namespace espalier::base {
namespace {

constexpr std::uint64_t kUsualLatencyNs = 100;

std::atomic<bool> was_measured{false};

#if defined(__x86_64__)

constexpr std::size_t kProbedBytes = std::size_t{1} << 20;
constexpr std::size_t kProbedLines = 256;
constexpr std::size_t kApart = kProbedBytes / kProbedLines;
constexpr int kAttempts = 5;

/// A chain through lines that lie far apart, in an order that no prefetcher knows: each says where
/// the next one is.
class LineChain {
 public:
  explicit LineChain(std::byte* at) : at_(at) {
    Random random(kProbedLines);
    std::uint32_t order[kProbedLines];
    for (std::uint32_t i = 0; i < kProbedLines; ++i) order[i] = i;
    for (std::uint32_t i = kProbedLines - 1; i != 0; --i) {
      std::swap(order[i], order[random.below(i + 1)]);
    }
    for (std::size_t i = 0; i < kProbedLines; ++i) {
      const std::uint64_t next = order[(i + 1) % kProbedLines] * kApart;
      std::memcpy(at_ + order[i] * kApart, &next, sizeof next);
    }
  }
  /// The ns of a step when no cache has any of them.
  [[nodiscard]] std::uint64_t walk() const {
    for (std::size_t i = 0; i < kProbedLines; ++i) _mm_clflush(at_ + i * kApart);
    _mm_mfence();
    const std::uint64_t begun = monotonic_ns();
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < kProbedLines; ++i) std::memcpy(&next, at_ + next, sizeof next);
    [[maybe_unused]] const volatile std::uint64_t came = next;  // so that all of it is walked
    return (monotonic_ns() - begun) / kProbedLines;
  }

 private:
  std::byte* const at_;
};

#endif

}  // namespace

std::uint64_t line_latency_ns() noexcept {
#if defined(__x86_64__)
  const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[kProbedBytes]);
  if (memory == nullptr) return kUsualLatencyNs;
  const LineChain chain(memory.get());
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < kAttempts; ++i) least = std::min(least, chain.walk());
  return least;
#else
  return kUsualLatencyNs;
#endif
}

std::uint64_t line_latency_of_machine_ns() noexcept {
  static const std::uint64_t latency = line_latency_ns();
  was_measured.store(true, std::memory_order_relaxed);
  return latency;
}

bool line_latency_is_known() noexcept { return was_measured.load(std::memory_order_relaxed); }

}  // namespace espalier::base
