// SPDX-License-Identifier: Apache-2.0
// For fuzzers: the bytes that decide what happens next, and what becomes of a check that fails.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <source_location>
#include <span>

namespace espalier::base {

/// Ends the program, and says where, unless it is so.
inline void want(bool good, const char* what,
                 const std::source_location& where = std::source_location::current()) {
  if (good) return;
  std::fprintf(stderr, "%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()), what);
  std::abort();
}

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  /// Whether the bytes have ended: all that is drawn is 0 from then on.
  [[nodiscard]] bool over() const { return rest_.empty(); }
  /// 0 <= result < n, of as few bytes as it needs.
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t drawn = 0;
    for (std::uint64_t reach = n - 1; reach != 0; reach >>= 8) drawn = drawn << 8 | byte();
    return drawn % n;
  }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }
  template <class T>
  T number() {
    T drawn = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) drawn = static_cast<T>(drawn << 4 << 4 | byte());
    return drawn;
  }
  /// A small number, or one at a border, or any.
  template <class T>
  T odd_number() {
    const std::uint8_t kind = byte();
    if (kind < 0xC0) return kind;
    if (kind < 0xD0) return static_cast<T>(T{1} << byte() % (8 * sizeof(T)));
    if (kind < 0xE0) return static_cast<T>(~T{0} - byte());
    return number<T>();
  }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(of.size())];
  }
  /// Takes as many bytes as there are, the rest of `into` stays.
  void fill(std::span<std::byte> into) {
    const auto taken = rest_.first(std::min(into.size(), rest_.size()));
    std::ranges::copy(std::as_bytes(taken), into.begin());
    rest_ = rest_.subspan(taken.size());
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace espalier::base
