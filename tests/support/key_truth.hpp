// SPDX-License-Identifier: Apache-2.0
// The values that a key of a durable store may have after a crash: the one acknowledged or seen
// last, and those of writes begun since.
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

 private:
  struct Write {
    std::uint64_t number = 0;
    Value value;
  };

 public:
  /// A write begins, after those before it. Returns its number.
  std::uint64_t begin(Value value) {
    all_.push_back({++begun_, value});
    may_be_.push_back({begun_, std::move(value)});
    return begun_;
  }
  /// It was acknowledged: earlier values are gone for good.
  void acknowledged(std::uint64_t number) {
    std::erase_if(may_be_, [&](const Write& each) { return each.number < number; });
  }
  /// It was not done, and never will be.
  void refused(std::uint64_t number) {
    std::erase_if(may_be_, [&](const Write& each) { return each.number == number; });
  }
  /// Whether a reader may see this value, until a read shows what a crash has left.
  [[nodiscard]] bool may_be(const Value& value) const {
    return std::ranges::find(may_be_, value, &Write::value) != may_be_.end();
  }
  /// A reader has seen this value. Returns whether it is possible.
  [[nodiscard]] bool seen(const Value& value) {
    const auto at = std::ranges::find(may_be_, value, &Write::value);
    if (at == may_be_.end()) return false;
    may_be_.erase(may_be_.begin(), at);
    return true;
  }
  /// The values that a reader which begins now may see, however long it takes: the present
  /// possibilities, and what is written until it ends. Other readers may see newer ones meanwhile.
  class Since {
   public:
    Since() = default;
    explicit Since(const KeyTruth& truth) : may_be_(truth.may_be_), begun_(truth.begun_) {}
    [[nodiscard]] bool may_have_been(const KeyTruth& truth, const Value& value) const {
      const auto is = [&](const Write& each) { return each.value == value; };
      return std::ranges::any_of(may_be_, is) ||
             std::ranges::any_of(
                 truth.all_, [&](const Write& each) { return each.number > begun_ && is(each); });
    }

   private:
    std::vector<Write> may_be_;
    std::uint64_t begun_ = 0;
  };
  /// The value after a crash; other possibilities are gone. Returns whether it is possible.
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
  std::uint64_t begun_ = 0;
  std::vector<Write> may_be_{Write{}};  // in their order
  std::vector<Write> all_;
};

/// The possible values of counts: of adds, rows, numbers taken.
struct NumberTruth {
  std::uint64_t acknowledged = 0;
  std::uint64_t asked = 0;

  /// Whether this value is possible.
  [[nodiscard]] bool may_be(std::uint64_t number) const {
    return acknowledged <= number && number <= asked;
  }
  [[nodiscard]] std::string text() const {
    return "acknowledged " + std::to_string(acknowledged) + ", asked " + std::to_string(asked);
  }
};

}  // namespace espalier::test
