// SPDX-License-Identifier: Apache-2.0
// Skewed choices: which of n items a request is for, as YCSB draws them.
//
//   Zipf            rank 0 is the hottest; rank r is drawn in proportion to 1 / (r + 1)^theta
//   ScrambledZipf   the same, with the hot ranks scattered over all items
//   Latest          the same, with the newest item the hottest; n grows
//
// Method: [Gray et al., Quickly generating billion-record synthetic databases, SIGMOD 1994, §3.2].
// It inverts the distribution function by a power law that is exact for the first two ranks. YCSB
// sums n terms once to normalise; here the sum is closed by the Euler-Maclaurin formula after some
// terms, so that construction and growth cost the same for any n.
// Thread: drawing does not change the generator; several threads may share one that does not grow.
#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace espalier::base {

/// The usual skew of YCSB.
inline constexpr double kZipfTheta = 0.99;

/// Sums 1 / i^theta for i = 1..n to within about 1e-12 of itself. Requires: n > 0, 0 < theta < 1.
[[nodiscard]] double zipf_sum(std::uint64_t n, double theta);

/// Draws ranks 0 <= rank < n.
class Zipf {
 public:
  /// Requires: n > 0, 0 < theta < 1. Cost: some hundred powers, whatever n is.
  explicit Zipf(std::uint64_t n, double theta = kZipfTheta);

  /// Cost: one power, about 20 ns.
  [[nodiscard]] std::uint64_t operator()(Random& random) const;
  [[nodiscard]] std::uint64_t size() const noexcept { return n_; }
  /// Goes on as if it had been made with this n. Cost: as the constructor.
  void resize(std::uint64_t n);

 private:
  std::uint64_t n_ = 0;
  double theta_;
  double second_;  ///< weight of the first two ranks, that of the first being 1
  double sum_ = 0;
  double eta_ = 0;
};

/// Draws items 0 <= item < n, hot ones scattered by a hash of their rank. As in YCSB two ranks may
/// fall on one item, and some items are never drawn.
class ScrambledZipf {
 public:
  explicit ScrambledZipf(std::uint64_t n, double theta = kZipfTheta) : zipf_(n, theta) {}
  [[nodiscard]] std::uint64_t operator()(Random& random) const {
    return scale(mix64(zipf_(random) + 1), zipf_.size());
  }

 private:
  Zipf zipf_;
};

/// Draws items 0 <= item < n, the last one most often.
class Latest {
 public:
  explicit Latest(std::uint64_t n, double theta = kZipfTheta) : zipf_(n, theta) {}
  [[nodiscard]] std::uint64_t operator()(Random& random) const {
    return zipf_.size() - 1 - zipf_(random);
  }
  /// Sets the number of items to n. Thread: no other thread may draw concurrently.
  void resize(std::uint64_t n) { zipf_.resize(n); }

 private:
  Zipf zipf_;
};

}  // namespace espalier::base
