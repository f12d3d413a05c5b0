// SPDX-License-Identifier: Apache-2.0
// The reference for all other maps: a std::map, one operation at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/support/history.hpp"

namespace espalier::test {

class ReferenceMap {
 public:
  explicit ReferenceMap(Contents contents = {}) : contents_(std::move(contents)) {}

  /// The operation with its correct answer now, without versions.
  [[nodiscard]] Operation answered(Operation question) const;

  /// Applies the effect that the operation reports.
  void apply(const Operation& operation);

  /// Compares an operation's answer with the correct one, and applies it. Returns what is wrong.
  std::optional<std::string> follow(const Operation& operation);

  [[nodiscard]] const Contents& contents() const { return contents_; }

 private:
  [[nodiscard]] const std::string* find(const std::string& key) const;
  void answer_scan(Operation& operation) const;
  void answer_batch(Operation& operation) const;
  [[nodiscard]] bool holds(const WriteBatch::Check& check) const;
  // The first and the last but one item of a range.
  struct Range {
    Contents::const_iterator begin;
    Contents::const_iterator end;
  };
  [[nodiscard]] Range range(const Operation& operation) const;

  Contents contents_;
};

/// Whether two operations have the same answer, versions aside.
[[nodiscard]] bool same_answer(const Operation& a, const Operation& b);

}  // namespace espalier::test
