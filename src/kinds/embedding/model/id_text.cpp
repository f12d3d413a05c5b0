// SPDX-License-Identifier: Apache-2.0
// Where numbers begin and end is found for 64 characters at a time, eight of them by one word; then
// each number is read by itself, its last eight characters by one word.
#include "kinds/embedding/model/id_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/atomic_bytes.hpp"

namespace espalier::embedding {
namespace {

constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;  // times a byte: that in each
constexpr std::size_t kWord = sizeof(std::uint64_t);

/// The highest bit of each byte that is not 0.
constexpr std::uint64_t bytes_not_zero(std::uint64_t bytes) {
  return (((bytes & kOnes * 0x7F) + kOnes * 0x7F) | bytes) & kOnes * 0x80;
}
/// Of bits 7, 15, 23 and so on the first eight, beside each other.
constexpr std::uint64_t beside_each_other(std::uint64_t bits) {
  return (bits >> 7) * 0x0102'0408'1020'4080 >> 56;
}

/// Which of eight characters are digits; false: one is neither that nor a space.
bool find_digits(std::uint64_t eight, std::uint64_t& digits) {
  const std::uint64_t upper = eight & kOnes * 0xF0;
  // Six more than a digit has the upper half of one, too.
  const std::uint64_t more = ((eight & kOnes * 0x7F) + kOnes * 6) & kOnes * 0xF0;
  const std::uint64_t others = bytes_not_zero((upper ^ kOnes * 0x30) | (more ^ kOnes * 0x30));
  digits = beside_each_other(~others & kOnes * 0x80);
  return (others & bytes_not_zero(eight ^ kOnes * ' ')) == 0;
}

/// The word at this place, or as much of the text as is left there, and spaces.
std::uint64_t word_at(std::string_view text, std::size_t at) {
  std::uint64_t word = kOnes * ' ';
  std::memcpy(&word, text.data() + at, std::min(kWord, text.size() - at));
  return word;
}

/// What digits come to. Requires: 1 to 8 of them, the last one the highest byte; zeros before them.
std::uint32_t number_of(std::uint64_t digits) {
  std::uint64_t all = digits * 10 + (digits >> 8);  // in each second byte a number of two digits
  all = (all & 0x00FF'00FF'00FF'00FF) * 100 + ((all >> 16) & 0x00FF'00FF'00FF'00FF);
  return static_cast<std::uint32_t>((all & 0xFFFF) * 10'000 + ((all >> 32) & 0xFFFF));
}

class IdReader {
 public:
  IdReader(std::string_view text, std::vector<std::uint32_t>& into) : text_(text), into_(into) {}

  bool run() {
    const std::size_t before = into_.size();
    for (std::size_t at = 0; at < text_.size() && good_; at += 64) read_block(at);
    if (open_) add(start_, text_.size());
    flush();
    if (!good_) into_.resize(before);
    return good_;
  }

 private:
  void read_block(std::size_t base) {
    std::uint64_t digits = 0;
    const std::size_t end = std::min<std::size_t>(text_.size() - base, 64);
    for (std::size_t at = 0; at < end; at += kWord) {
      const bool whole = text_.size() - base - at >= kWord;
      const std::uint64_t eight =
          whole ? base::load_plain<std::uint64_t>(
                      reinterpret_cast<const std::byte*>(text_.data() + base + at))
                : word_at(text_, base + at);
      std::uint64_t some = 0;
      good_ = find_digits(eight, some) && good_;
      digits |= some << at;
    }
    if (!good_) return;
    const std::uint64_t before = digits << 1 | (open_ ? 1 : 0);
    std::uint64_t starts = digits & ~before;
    const auto take_start = [&] {
      open_ = starts != 0;
      start_ = base + static_cast<std::size_t>(std::countr_zero(starts));
      starts &= starts - 1;
    };
    if (!open_) take_start();
    for (std::uint64_t ends = ~digits & before; ends != 0; ends &= ends - 1) {
      add(start_, base + static_cast<std::size_t>(std::countr_zero(ends)));
      take_start();
    }
  }

  void add(std::size_t start, std::size_t end) {
    const std::size_t digits = end - start;
    if (count_ == some_.size()) flush();
    if (digits > kWord || end < kWord) {
      return add_plainly(start, end);
    }
    const auto eight = base::load_plain<std::uint64_t>(
        reinterpret_cast<const std::byte*>(text_.data() + end - kWord));
    some_[count_++] = number_of(eight & kOnes * 0x0F & ~std::uint64_t{0} << (64 - 8 * digits));
  }

  void add_plainly(std::size_t start, std::size_t end) {
    std::uint64_t number = 0;
    for (const char digit : text_.substr(start, end - start)) {
      number = number * 10 + static_cast<std::uint64_t>(digit - '0');
      if (number > std::numeric_limits<std::uint32_t>::max()) good_ = false;
      if (!good_) return;
    }
    some_[count_++] = static_cast<std::uint32_t>(number);
  }

  void flush() {
    into_.insert(into_.end(), some_.begin(), some_.begin() + static_cast<std::ptrdiff_t>(count_));
    count_ = 0;
  }

  const std::string_view text_;
  std::vector<std::uint32_t>& into_;
  std::array<std::uint32_t, 64> some_;  // so that room is asked for once for so many
  std::size_t count_ = 0;
  std::size_t start_ = 0;  // of the number that is open
  bool open_ = false;      // the character before is a digit
  bool good_ = true;
};

}  // namespace

bool read_spaced_ids(std::string_view text, std::vector<std::uint32_t>& into) {
  if constexpr (std::endian::native != std::endian::little) return false;
  return IdReader(text, into).run();
}

}  // namespace espalier::embedding
