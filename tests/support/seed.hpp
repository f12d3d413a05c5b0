// SPDX-License-Identifier: Apache-2.0
// Random numbers for tests: the same for the same seed on every machine and compiler, printed when a
// test fails, and taken from the environment to repeat a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace espalier::test {

/// A number from the environment, or a default. Requires: nobody changes the environment meanwhile.
[[nodiscard]] inline std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

/// ESPALIER_SEED, or a test's own default.
[[nodiscard]] inline std::uint64_t seed_or(std::uint64_t otherwise) {
  return environment_number("ESPALIER_SEED", otherwise);
}

/// ESPALIER_STEPS, or a test's own default: how many steps a random test makes.
[[nodiscard]] inline std::uint64_t steps_or(std::uint64_t otherwise) {
  return environment_number("ESPALIER_STEPS", otherwise);
}

/// For SCOPED_TRACE: how to repeat this.
[[nodiscard]] inline std::string seed_text(std::uint64_t seed) {
  return "repeat with ESPALIER_SEED=" + std::to_string(seed);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t next() { return engine_(); }
  /// Uniform enough for tests in [0, bound). Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  /// Uniform in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  template <class Container>
  const auto& pick(const Container& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

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

/// A number of rounds or steps, fewer where a sanitizer runs.
[[nodiscard]] constexpr std::uint64_t scaled(std::uint64_t rounds) {
  return kSanitized ? (rounds + 9) / 10 : rounds;
}

}  // namespace espalier::test
