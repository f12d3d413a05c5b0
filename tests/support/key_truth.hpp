// SPDX-License-Identifier: Apache-2.0
// What a key of a durable store may have after a crash: what was acknowledged or seen last, and
// what was begun since.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace espalier::test {

class KeyTruth {
 public:
  using Value = std::string;  // empty: there is none

  /// A write begins, behind those before it. Returns its number.
  std::uint64_t begin(Value value) {
    may_be_.push_back({++begun_, std::move(value)});
    return begun_;
  }
  /// It was acknowledged: those before it are gone for good.
  void acknowledged(std::uint64_t number) {
    std::erase_if(may_be_, [&](const Write& each) { return each.number < number; });
  }
  /// It was not done, and never will be.
  void refused(std::uint64_t number) {
    std::erase_if(may_be_, [&](const Write& each) { return each.number == number; });
  }
  /// Whether a reader may see this, who does not know what a crash leaves of it.
  [[nodiscard]] bool may_be(const Value& value) const {
    return std::ranges::find(may_be_, value, &Write::value) != may_be_.end();
  }
  /// A reader has seen this. Returns whether it may be.
  [[nodiscard]] bool seen(const Value& value) {
    const auto at = std::ranges::find(may_be_, value, &Write::value);
    if (at == may_be_.end()) return false;
    may_be_.erase(may_be_.begin(), at);
    return true;
  }
  /// After a crash it has this, and nothing else any more. Returns whether it may.
  [[nodiscard]] bool found(const Value& value) {
    if (!seen(value)) return false;
    may_be_.resize(1);
    return true;
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Write& each : may_be_) all += "'" + each.value + "' ";
    return all;
  }

 private:
  struct Write {
    std::uint64_t number = 0;
    Value value;
  };
  std::uint64_t begun_ = 0;
  std::vector<Write> may_be_{Write{}};  // in their order
};

/// What numbers came to: of adds, rows, takes.
struct NumberTruth {
  std::uint64_t acknowledged = 0;
  std::uint64_t asked = 0;

  /// Whether it may be this.
  [[nodiscard]] bool may_be(std::uint64_t number) const {
    return acknowledged <= number && number <= asked;
  }
  [[nodiscard]] std::string text() const {
    return "acknowledged " + std::to_string(acknowledged) + ", asked " + std::to_string(asked);
  }
};

}  // namespace espalier::test
