// SPDX-License-Identifier: Apache-2.0
// Stands for the compiler of regular expressions where only executors are tested: its patterns are
// texts that are looked for as they stand, but for ASCII letters where case is ignored.
#pragma once

#include <algorithm>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "regex/regex.hpp"

namespace espalier::table {

class LiteralRegex final : public Regex {
 public:
  LiteralRegex(std::string_view pattern, bool ignore_case)
      : ignore_case_(ignore_case), pattern_(folded(pattern)) {}

  void search(std::span<const std::string_view> texts, std::size_t,
              std::uint8_t* found) const override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      found[i] = folded(texts[i]).find(pattern_) != std::string::npos ? 1 : 0;
    }
  }

 private:
  [[nodiscard]] std::string folded(std::string_view text) const {
    std::string all(text);
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    if (ignore_case_) std::ranges::transform(all, all.begin(), lower);
    return all;
  }

  bool ignore_case_;
  std::string pattern_;
};

class LiteralRegexes final : public RegexCompiler {
 public:
  std::expected<std::shared_ptr<const Regex>, std::string> compile(std::string_view pattern,
                                                                   RegexOptions options) override {
    return std::make_shared<LiteralRegex>(pattern, options.ignore_case);
  }
};

}  // namespace espalier::table
