// SPDX-License-Identifier: Apache-2.0
// For tests: a source of choices. It is a seed, or a fuzzer's bytes as long as there are any, so
// the same code serves random tests and fuzzers.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "base/testing/fuzz_input.hpp"

namespace espalier::client {

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(seed), input_(nullptr, 0) {}
  Choices(const std::uint8_t* data, std::size_t size) : input_(data, size) {}

  /// Whether the bytes have ended: all choices are 0 from then on.
  [[nodiscard]] bool over() const { return !random_ && input_.over(); }

  /// 0 <= result < n. Takes as few bytes as possible, which helps a fuzzer.
  std::uint64_t below(std::uint64_t n) { return random_ ? random_->below(n) : input_.below(n); }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == n - 1; }
  std::uint64_t word() { return random_ ? (*random_)() : below(~std::uint64_t{0}); }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(of.size())];
  }
  std::string bytes(std::size_t count) {
    std::string drawn(count, '\0');
    for (char& c : drawn) c = static_cast<char>(below(256));
    return drawn;
  }

 private:
  std::optional<base::Random> random_;
  base::FuzzInput input_;
};

}  // namespace espalier::client
