// SPDX-License-Identifier: Apache-2.0
#include "tools/number_lines.hpp"

#include "espalier/error.hpp"

namespace espalier::tools {

std::unexpected<std::string> NumberLines::wrong(const std::string& words) const {
  return std::unexpected("line " + std::to_string(line_) + ": " + words);
}

// The next byte, which stays the next one; or kEnd.
std::expected<int, std::string> NumberLines::look() {
  if (at_ == end_) {
    const auto some = source_.read(buffer_);
    if (!some) return std::unexpected(message(some.error()));
    at_ = 0;
    end_ = *some;
    bytes_ += *some;
    if (*some == 0) return kEnd;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

std::expected<void, std::string> NumberLines::read_number() {
  constexpr std::int64_t kMax = std::int64_t{1} << 53;
  bool negative = false;
  bool digits = false;
  std::int64_t number = 0;
  for (;;) {
    const auto byte = look();
    if (!byte) return std::unexpected(byte.error());
    if (*byte == '-' && !digits && !negative) {
      negative = true;
    } else if (*byte >= '0' && *byte <= '9') {
      digits = true;
      number = number * 10 + (*byte - '0');
      if (number > kMax) return wrong("a number is too large");
    } else {
      break;
    }
    ++at_;
  }
  if (!digits) return wrong("there is something that is no number");
  if (numbers_.size() == kNumbersMax) return wrong("there are more than 2^24 numbers");
  numbers_.push_back(negative ? -number : number);
  return {};
}

std::expected<bool, std::string> NumberLines::next() {
  numbers_.clear();
  ++line_;
  for (bool first = true;; first = false) {
    const auto byte = look();
    if (!byte) return std::unexpected(byte.error());
    if (*byte == kEnd) return !first;
    if (*byte == '\n') {
      ++at_;
      return true;
    }
    if (*byte == ' ' || *byte == '\t' || *byte == ',' || *byte == '\r') {
      ++at_;
    } else if (*byte == '#') {
      ++at_;
      if (numbers_.size() == kNumbersMax) return wrong("there are more than 2^24 numbers");
      numbers_.push_back(kMark);
    } else if (auto read = read_number(); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
}

}  // namespace espalier::tools
