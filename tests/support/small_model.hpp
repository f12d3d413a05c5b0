// SPDX-License-Identifier: Apache-2.0
// A compact model for searches over thousands of states: the contents of a map with few keys as an
// array of numbers, and operations compiled to tests and assignments of its slots.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/history.hpp"

namespace espalier::test {

/// One number per key, in key order: 0 if it is absent, else its value's number.
using SmallState = std::vector<std::uint32_t>;

/// A condition on a slot.
struct SlotTest {
  enum class Is : std::uint8_t { absent, present, equal, other };
  std::uint32_t slot = 0;
  Is is = Is::absent;
  std::uint32_t value = 0;
};

/// One operation over slots. It may happen if its conditions hold and its delivered items are
/// present.
struct CompiledOperation {
  enum class Reads : std::uint8_t { nothing, range, from_floor, count };
  std::vector<SlotTest> tests;
  Reads reads = Reads::nothing;
  bool reverse = false;
  std::uint64_t limit = 0;
  std::uint32_t begin = 0;  // slots [begin, end) are in the range
  std::uint32_t end = 0;
  std::uint32_t floor_end = 0;  // the floor is the last one present below this slot
  std::vector<std::pair<std::uint32_t, std::uint32_t>> delivered;  // slot, value
  std::uint64_t counted = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> assignments;
};

/// Translates the operations of one history.
class SmallModel {
 public:
  explicit SmallModel(const History& history);

  [[nodiscard]] const SmallState& initial() const { return initial_; }
  [[nodiscard]] const CompiledOperation& compiled(std::size_t index) const {
    return compiled_[index];
  }

 private:
  void collect(const Operation& operation);
  [[nodiscard]] std::uint32_t slot(std::string_view key) const;        // first key >= key
  [[nodiscard]] std::uint32_t slot_above(std::string_view key) const;  // first key > key
  [[nodiscard]] std::uint32_t number(std::string_view value) const;
  [[nodiscard]] CompiledOperation compile(const Operation& operation) const;
  void compile_batch(const Operation& operation, CompiledOperation& out) const;
  void compile_range(const Operation& operation, CompiledOperation& out) const;

  std::vector<std::string_view> keys_;
  std::vector<std::string_view> values_;
  SmallState initial_;
  std::vector<CompiledOperation> compiled_;
};

/// Whether an operation may happen now.
[[nodiscard]] bool possible(const CompiledOperation& operation, const SmallState& state);

}  // namespace espalier::test
