// SPDX-License-Identifier: Apache-2.0
// Where numbers begin and end is found for 64 characters at a time; then each number is read by
// itself, its last eight characters by one word.
#include "kinds/embedding/model/id_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/atomic_bytes.hpp"

namespace espalier::embedding {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kBlock = 64;

/// Which of 64 characters are digits, the first one lowest; false: one is neither that nor a space.
bool find_digits(const char* text, std::uint64_t& digits) {
  std::uint64_t found = 0;
  std::uint64_t spaces = 0;
#if defined(__SSE2__)  // every x86-64 has it
  for (int at = 0; at < 64; at += 16) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + at));
    const __m128i value = _mm_sub_epi8(some, _mm_set1_epi8('0'));
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
    const __m128i is_space = _mm_cmpeq_epi8(some, _mm_set1_epi8(' '));
    found |= static_cast<std::uint64_t>(_mm_movemask_epi8(is_digit)) << at;
    spaces |= static_cast<std::uint64_t>(_mm_movemask_epi8(is_space)) << at;
  }
#else
  for (std::size_t i = 0; i < kBlock; ++i) {
    found |= std::uint64_t{text[i] >= '0' && text[i] <= '9'} << i;
    spaces |= std::uint64_t{text[i] == ' '} << i;
  }
#endif
  digits = found;
  return (found | spaces) == ~std::uint64_t{0};
}

/// What digits come to. Requires: 1 to 8 of them, the last one the highest byte; zeros before them.
std::uint32_t number_of(std::uint64_t digits) {
  std::uint64_t all = digits * 10 + (digits >> 8);  // in each second byte a number of two digits
  all = (all & 0x00FF'00FF'00FF'00FF) * 100 + ((all >> 16) & 0x00FF'00FF'00FF'00FF);
  return static_cast<std::uint32_t>((all & 0xFFFF) * 10'000 + ((all >> 32) & 0xFFFF));
}

/// The number of some digits; beyond 32 bits where it has more. Requires: its text lies there.
std::uint64_t read_plainly(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char digit : digits) {
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
    if (number > std::numeric_limits<std::uint32_t>::max()) break;
  }
  return number;
}

std::uint64_t read_number(std::string_view text, std::size_t start, std::size_t end) {
  const std::size_t digits = end - start;
  if (digits > kWord || end < kWord) [[unlikely]]
    return read_plainly(text.substr(start, digits));
  const auto eight = base::load_plain<std::uint64_t>(
      reinterpret_cast<const std::byte*>(text.data() + end - kWord));
  constexpr std::uint64_t kLower = 0x0F0F'0F0F'0F0F'0F0F;
  return number_of(eight & kLower & ~std::uint64_t{0} << (64 - 8 * digits));
}

/// Returns how many there are; nothing: as of read_spaced_ids(). Requires: room for as many.
std::optional<std::size_t> read_ids(std::string_view text, std::uint32_t* into) {
  std::size_t count = 0;
  std::size_t start = 0;    // of the number that is open
  std::uint64_t open = 0;   // 1: the character before is a digit
  std::uint64_t wrong = 0;  // bits beyond those of ids
  const auto add = [&](std::size_t end) {
    const std::uint64_t number = read_number(text, start, end);
    wrong |= number >> 32;
    into[count++] = static_cast<std::uint32_t>(number);
  };
  for (std::size_t base = 0; base < text.size(); base += kBlock) {
    std::array<char, kBlock> last;
    const char* block = text.data() + base;
    if (text.size() - base < kBlock) {
      last.fill(' ');
      std::memcpy(last.data(), block, text.size() - base);
      block = last.data();
    }
    std::uint64_t digits = 0;
    if (!find_digits(block, digits)) return std::nullopt;
    const std::uint64_t before = digits << 1 | open;
    std::uint64_t starts = digits & ~before;
    std::uint64_t ends = ~digits & before;
    if (open == 0) {
      start = base + static_cast<std::size_t>(std::countr_zero(starts));
      starts &= starts - 1;
    }
    for (; ends != 0; ends &= ends - 1) {
      add(base + static_cast<std::size_t>(std::countr_zero(ends)));
      start = base + static_cast<std::size_t>(std::countr_zero(starts));
      starts &= starts - 1;
    }
    open = digits >> 63;
  }
  if (open != 0) add(text.size());
  if (wrong != 0) return std::nullopt;
  return count;
}

}  // namespace

bool read_spaced_ids(std::string_view text, std::vector<std::uint32_t>& into) {
  if constexpr (std::endian::native != std::endian::little) return false;
  const std::size_t before = into.size();
  into.resize(before + text.size() / 2 + 1);
  const auto count = read_ids(text, into.data() + before);
  into.resize(before + count.value_or(0));
  return count.has_value();
}

}  // namespace espalier::embedding
