// SPDX-License-Identifier: Apache-2.0
#include "base/zipf.hpp"

#include <algorithm>
#include <cmath>

namespace espalier::base {
namespace {

constexpr std::uint64_t kExactTerms = 256;

}  // namespace

double zipf_sum(std::uint64_t n, double theta) {
  ESPALIER_ASSERT(n > 0 && theta > 0 && theta < 1);
  double sum = 0;
  const std::uint64_t exact = std::min(n, kExactTerms);
  for (std::uint64_t i = 1; i <= exact; ++i) sum += std::pow(static_cast<double>(i), -theta);
  if (n == exact) return sum;

  // Euler-Maclaurin for the terms exact+1..n of f(x) = x^-theta: the integral, half of the end
  // terms' difference, and the first correction, f'/12. The next is below 1e-12 from x = 256 on.
  const auto a = static_cast<double>(exact);
  const auto b = static_cast<double>(n);
  const double f_a = std::pow(a, -theta);
  const double f_b = std::pow(b, -theta);
  const double integral = (b * f_b - a * f_a) / (1 - theta);
  const double slopes = theta * (f_a / a - f_b / b);
  return sum + integral + (f_b - f_a) / 2 + slopes / 12;
}

Zipf::Zipf(std::uint64_t n, double theta)
    : theta_(theta), second_(1 + std::pow(2.0, -theta)) {
  resize(n);
}

void Zipf::resize(std::uint64_t n) {
  sum_ = zipf_sum(n, theta_);
  n_ = n;
  eta_ = n <= 2 ? 0
                : (1 - std::pow(2.0 / static_cast<double>(n), 1 - theta_)) / (1 - second_ / sum_);
}

std::uint64_t Zipf::operator()(Random& random) const {
  const double u = random.unit();
  const double weight = u * sum_;
  if (weight < 1) return 0;
  if (weight < second_) return std::min<std::uint64_t>(1, n_ - 1);
  const double rank =
      static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - theta_));
  return std::min(static_cast<std::uint64_t>(rank), n_ - 1);
}

}  // namespace espalier::base
