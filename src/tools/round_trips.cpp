// SPDX-License-Identifier: Apache-2.0
#include "tools/round_trips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace espalier::tools {
namespace {

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

// Microseconds whatever the number, so that columns compare; but loads through a mapping take less.
std::string in_words(std::uint64_t ns) {
  if (ns < 100) return fmt::format("{:.3f} us", microseconds(ns));
  return fmt::format("{:.1f} us", microseconds(ns));
}

}  // namespace

RoundTrips::RoundTrips(std::vector<std::uint64_t> ns) : ns_(std::move(ns)) {
  std::ranges::sort(ns_);
}

std::uint64_t RoundTrips::at(std::size_t percent) const {
  const std::size_t rank = (ns_.size() * percent + 99) / 100;
  return ns_[std::max<std::size_t>(rank, 1) - 1];
}

std::string RoundTrips::text() const {
  return fmt::format("min {}, median {}, 99 % {}, max {}", in_words(ns_.front()), in_words(at(50)),
                     in_words(at(99)), in_words(ns_.back()));
}

void RoundTrips::add_to(nlohmann::ordered_json& object) const {
  object["min_us"] = microseconds(ns_.front());
  object["median_us"] = microseconds(at(50));
  object["p99_us"] = microseconds(at(99));
  object["max_us"] = microseconds(ns_.back());
}

}  // namespace espalier::tools
