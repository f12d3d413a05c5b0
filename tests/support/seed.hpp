// SPDX-License-Identifier: Apache-2.0
// Seeds and sizes of random tests: printed, and taken from the environment to repeat a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/random.hpp"

namespace espalier::test {

using base::seed_from_environment;

/// ESPALIER_STEPS, or a test's own default: how many steps a random test makes. Requires: no thread
/// changes the environment meanwhile.
[[nodiscard]] inline std::uint64_t steps_or(std::uint64_t otherwise) {
  const char* text = std::getenv("ESPALIER_STEPS");
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

/// For SCOPED_TRACE: how to repeat the test.
[[nodiscard]] inline std::string seed_text(std::uint64_t seed) {
  return "repeat with ESPALIER_SEED=" + std::to_string(seed);
}

/// Random values for tests, besides numbers.
class Random : public base::Random {
 public:
  using base::Random::Random;

  bool one_in(std::uint64_t n) { return below(n) == 0; }

  template <class Container>
  const auto& pick(const Container& from) {
    return from[static_cast<std::size_t>(below(std::size(from)))];
  }
};

/// Whether ThreadSanitizer is on; only g++'s is used here.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitized = true;
#else
constexpr bool kThreadSanitized = false;
#endif

/// Whether a sanitizer makes everything several times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

/// A number of rounds or steps, reduced under a sanitizer.
[[nodiscard]] constexpr std::uint64_t scaled(std::uint64_t rounds) {
  return kSanitized ? (rounds + 9) / 10 : rounds;
}

}  // namespace espalier::test
