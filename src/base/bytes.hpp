// SPDX-License-Identifier: Apache-2.0
// Numbers in bytes and bytes in order, without undefined behaviour: any address is aligned enough.
//
// Keys are byte strings in memcmp order. Read as big-endian numbers, their first bytes compare in
// the same order; hence `load_be64_prefix`: one comparison of integers nearly always decides.
//
// These are for memory that no other thread writes; base/atomic_bytes.hpp is for shared memory.
// Thread: safe, no state.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/assert.hpp"

namespace espalier::base {

/// An unsigned integer with a byte order.
template <class T>
concept Word = std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> ||
               std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

/// Reverses the bytes of a number.
template <Word T>
[[nodiscard]] constexpr T swap_bytes(T value) noexcept {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

/// Turns a number of this machine into one of the named byte order, or back.
template <Word T>
[[nodiscard]] constexpr T to_order(std::endian order, T value) noexcept {
  return order == std::endian::native ? value : swap_bytes(value);
}

/// Reads a little-endian number. Requires: sizeof(T) readable bytes.
template <Word T>
[[nodiscard]] inline T load_le(const void* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return to_order(std::endian::little, value);
}

/// Reads a big-endian number. Requires: sizeof(T) readable bytes.
template <Word T>
[[nodiscard]] inline T load_be(const void* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return to_order(std::endian::big, value);
}

/// Writes a little-endian number. Requires: sizeof(T) writable bytes.
template <Word T>
inline void store_le(void* at, T value) noexcept {
  value = to_order(std::endian::little, value);
  std::memcpy(at, &value, sizeof value);
}

/// Writes a big-endian number. Requires: sizeof(T) writable bytes.
template <Word T>
inline void store_be(void* at, T value) noexcept {
  value = to_order(std::endian::big, value);
  std::memcpy(at, &value, sizeof value);
}

/// Reads the first eight bytes of `text` as a big-endian number, as if zeros followed the text.
///
/// For two texts, prefix(a) < prefix(b) implies a < b, and a < b implies prefix(a) <= prefix(b).
/// Equal prefixes decide nothing: "a" and "a\0" have the same. Reads no byte outside `text`.
/// Cost: one load from eight bytes on; below that two that overlap, so that lengths share a path.
[[nodiscard]] inline std::uint64_t load_be64_prefix(std::string_view text) noexcept {
  const char* at = text.data();
  const std::size_t size = text.size();
  if (size >= 8) [[likely]] return load_be<std::uint64_t>(at);
  // The last bytes of the text end at this bit; where the two loads overlap they agree.
  const std::size_t end_bit = 64 - 8 * size;
  if (size >= 4) {
    const std::uint64_t first = load_be<std::uint32_t>(at);
    const std::uint64_t last = load_be<std::uint32_t>(at + size - 4);
    return first << 32 | last << end_bit;
  }
  if (size >= 2) {
    const std::uint64_t first = load_be<std::uint16_t>(at);
    const std::uint64_t last = load_be<std::uint16_t>(at + size - 2);
    return first << 48 | last << end_bit;
  }
  return size == 0 ? 0 : std::uint64_t{static_cast<unsigned char>(*at)} << 56;
}

/// Orders two byte strings as memcmp does, a shorter one before those that it begins.
/// Returns: below, equal to or above 0.
[[nodiscard]] inline int compare(std::string_view a, std::string_view b) noexcept {
  const std::size_t common = std::min(a.size(), b.size());
  if (common != 0) {
    if (const int order = std::memcmp(a.data(), b.data(), common); order != 0) return order;
  }
  return (a.size() > b.size()) - (a.size() < b.size());
}

/// Counts the bytes at the start in which two byte strings agree. Cost: eight bytes a step.
[[nodiscard]] inline std::size_t common_prefix_bytes(std::string_view a,
                                                     std::string_view b) noexcept {
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t at = 0;
  for (; at + 8 <= common; at += 8) {
    const std::uint64_t difference =
        load_le<std::uint64_t>(a.data() + at) ^ load_le<std::uint64_t>(b.data() + at);
    if (difference != 0) return at + static_cast<std::size_t>(std::countr_zero(difference)) / 8;
  }
  while (at < common && a[at] == b[at]) ++at;
  return at;
}

/// The bytes of an object as they lie in memory. They are `value`'s own.
template <class T>
requires std::has_unique_object_representations_v<T>
[[nodiscard]] inline std::string_view bytes_of(const T& value) noexcept {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Byte strings one behind the other, in memory of their own.
[[nodiscard]] inline std::vector<std::byte> joined(std::string_view first,
                                                   std::initializer_list<std::string_view> rest) {
  std::size_t bytes = first.size();
  for (const std::string_view part : rest) bytes += part.size();
  std::vector<std::byte> whole(bytes);
  std::byte* to = whole.data();
  const auto append = [&to](std::string_view part) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  };
  append(first);
  for (const std::string_view part : rest) append(part);
  return whole;
}

/// The next multiple of `unit` that is not below `value`. Requires: `unit` is a power of two, and
/// the result fits.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T round_up(T value, std::type_identity_t<T> unit) noexcept {
  ESPALIER_ASSERT(std::has_single_bit(unit));
  const T result = static_cast<T>((value + (unit - 1)) & ~(unit - 1));
  ESPALIER_ASSERT(result >= value);
  return result;
}

/// The last multiple of `unit` that is not above `value`. Requires: `unit` is a power of two.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T round_down(T value, std::type_identity_t<T> unit) noexcept {
  ESPALIER_ASSERT(std::has_single_bit(unit));
  return static_cast<T>(value & ~(unit - 1));
}

/// value / unit, rounded up. Requires: `unit` is not 0.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T divide_up(T value, std::type_identity_t<T> unit) noexcept {
  ESPALIER_ASSERT(unit != 0);
  return static_cast<T>(value / unit + (value % unit != 0));
}

}  // namespace espalier::base
