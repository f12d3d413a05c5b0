// SPDX-License-Identifier: Apache-2.0
#include "base/uninherited.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace espalier::base {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kNumbers = 65536;

// A bit for each. No lock: another thread could hold it when this one forks.
constinit std::array<std::atomic<std::uint64_t>, kNumbers / kWordBits> words{};
constinit std::atomic<std::size_t> words_used{0};

void close_all() {
  const std::size_t used = words_used.load(std::memory_order_relaxed);
  for (std::size_t word = 0; word < used; ++word) {
    std::uint64_t bits = words[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      ::close(static_cast<int>(word * kWordBits + bit));
    }
  }
}

[[gnu::constructor(101)]] void close_in_forks() {
  if (::pthread_atfork(nullptr, nullptr, close_all) != 0) std::abort();
}

}  // namespace

void close_in_children(int number) {
  const auto at = static_cast<std::size_t>(number);
  if (number < 0 || at >= kNumbers) return;
  const std::size_t word = at / kWordBits;
  std::size_t used = words_used.load(std::memory_order_relaxed);
  while (used <= word && !words_used.compare_exchange_weak(used, word + 1)) {
  }
  words[word].fetch_or(std::uint64_t{1} << (at % kWordBits), std::memory_order_relaxed);
}

void inherit_again(int number) {
  const auto at = static_cast<std::size_t>(number);
  if (number < 0 || at >= kNumbers) return;
  words[at / kWordBits].fetch_and(~(std::uint64_t{1} << (at % kWordBits)),
                                  std::memory_order_relaxed);
}

}  // namespace espalier::base
