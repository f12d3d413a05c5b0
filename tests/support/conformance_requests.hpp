// SPDX-License-Identifier: Apache-2.0
// Requests of the conformance tests: random keys, values and requests, invalid ones among them, and
// the answers to each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/types.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// An error in a comparable form.
[[nodiscard]] std::string error_text(const Error& error);

/// Mostly one of a few hundred short keys; sometimes empty, or too long.
[[nodiscard]] std::string conformance_key(Random& random);
/// Mostly short, sometimes too long for a node, rarely for any map.
[[nodiscard]] std::string conformance_value(Random& random);

/// Requests of one run, which are concurrent: either reads of all kinds, or writes of different
/// keys. Tags are their places.
class ConformanceRequests {
 public:
  static ConformanceRequests writes(Random& random) { return {random, true}; }
  static ConformanceRequests reads(Random& random) { return {random, false}; }
  ConformanceRequests(const ConformanceRequests&) = delete;
  ConformanceRequests& operator=(const ConformanceRequests&) = delete;

  [[nodiscard]] const std::vector<Request>& all() const { return requests_; }

 private:
  ConformanceRequests(Random& random, bool writes);

  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::vector<Request> requests_;  // of these
};

/// Collects completions by their tags.
struct Gather : Handler {
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> run) override;
  /// All of it as one text.
  [[nodiscard]] std::string all() const;

  std::map<std::uint64_t, std::string> said;
  Version newest = 0;  // of the versions that writes return
};

}  // namespace espalier::test
