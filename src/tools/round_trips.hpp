// SPDX-License-Identifier: Apache-2.0
// Statistics of round-trip times, for commands that measure them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace espalier::tools {

/// Times in ascending order, of which there is at least one.
class RoundTrips {
 public:
  /// Requires: at least one time.
  explicit RoundTrips(std::vector<std::uint64_t> ns);
  /// The smallest time that `percent` of all do not exceed.
  [[nodiscard]] std::uint64_t at(std::size_t percent) const;
  /// "min 1.0 us, median ...".
  [[nodiscard]] std::string text() const;
  /// Adds min_us, median_us, p99_us and max_us.
  void add_to(nlohmann::ordered_json& object) const;

 private:
  std::vector<std::uint64_t> ns_;
};

}  // namespace espalier::tools
