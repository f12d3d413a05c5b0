// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bytes.hpp"

namespace espalier::base {

void Random::fill(std::span<std::byte> bytes) noexcept {
  while (bytes.size() >= 8) {
    store_le<std::uint64_t>(bytes.data(), (*this)());
    bytes = bytes.subspan(8);
  }
  if (bytes.empty()) return;
  std::byte last[8];
  store_le<std::uint64_t>(last, (*this)());
  std::memcpy(bytes.data(), last, bytes.size());
}

std::uint64_t seed_from_environment(std::uint64_t otherwise) {
  std::uint64_t seed = otherwise;
  if (const char* text = std::getenv("ESPALIER_SEED"); text != nullptr && *text != '\0') {
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(text, &end, 0);
    if (*end == '\0' && errno == 0 && *text != '-') {
      seed = value;
    } else {
      std::fprintf(stderr, "ESPALIER_SEED=%s is no number; it is ignored\n", text);
    }
  }
  std::fprintf(stderr, "seed: ESPALIER_SEED=%" PRIu64 "\n", seed);
  return seed;
}

}  // namespace espalier::base
