// SPDX-License-Identifier: Apache-2.0
// Unpredictable numbers: of pairs, first packets and connections. They come from the system; or
// from a seed, so that a test or a simulation is reproducible. An attacker who sees some numbers of
// a seed can compute the others (base::Random is no cipher), so an endpoint that talks to untrusted
// peers must not use a seed.
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/random.hpp"
#include "espalier/error.hpp"

namespace espalier::fabric {

class NumberSource {
 public:
  /// Errors: system, if it gives no random numbers. It goes on giving them if it gave some.
  static Result<NumberSource> of_system();
  /// The numbers of base::Random(seed).
  static NumberSource of_seed(std::uint64_t seed) { return NumberSource(base::Random(seed)); }

  [[nodiscard]] std::uint64_t draw() {
    if (seeded_) return (*seeded_)();
    if (left_ == 0) refill();
    // A used number must not stay in memory.
    const std::uint64_t number = batch_[--left_];
    batch_[left_] = 0;
    return number;
  }

 private:
  // The most that getrandom() returns uninterrupted, and in one call for many connections.
  static constexpr std::size_t kBatch = 256 / sizeof(std::uint64_t);

  NumberSource() = default;
  explicit NumberSource(const base::Random& seeded) : seeded_(seeded) {}
  [[nodiscard]] bool ask_system();
  void refill();

  std::optional<base::Random> seeded_;
  std::array<std::uint64_t, kBatch> batch_{};
  std::size_t left_ = 0;
};

}  // namespace espalier::fabric
