// SPDX-License-Identifier: Apache-2.0
#include "regex/compiled_regex.hpp"

#include <re2/re2.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/prefetch.hpp"
#include "regex/common_subset.hpp"

namespace espalier::regex {
namespace {

/// As a number, for what lies beside the text.
std::uintptr_t address_of(std::string_view text) {
  return reinterpret_cast<std::uintptr_t>(text.data());
}

bool is_ascii(std::string_view text) {
  constexpr std::size_t kWords = 8;
  std::array<std::uint64_t, kWords> sums{};  // that do not wait for each other
  std::array<std::uint64_t, kWords> words;
  std::size_t at = 0;
  for (; at + sizeof words <= text.size(); at += sizeof words) {
    std::memcpy(words.data(), text.data() + at, sizeof words);
    for (std::size_t i = 0; i < kWords; ++i) sums[i] |= words[i];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all |= sum;
  for (; at + 8 <= text.size(); at += 8) {
    std::memcpy(words.data(), text.data() + at, 8);
    all |= words[0];
  }
  for (; at < text.size(); ++at) all |= static_cast<unsigned char>(text[at]);
  return (all & 0x8080'8080'8080'8080) == 0;
}

/// E.g. "the regular expression is wrong at 3, '(': missing )".
std::string words_of(const re2::RE2& re2, std::string_view pattern) {
  std::string words = "the regular expression is wrong";
  const std::string& piece = re2.error_arg();
  const std::size_t at = piece.empty() ? std::string_view::npos : pattern.find(piece);
  if (at != std::string_view::npos) {
    words += " at " + std::to_string(at + 1) + ", '" + piece + "'";
  }
  return words + ": " + re2.error();
}

}  // namespace

CompiledRegex::CompiledRegex(std::unique_ptr<re2::RE2> re2) : re2_(std::move(re2)) {}
CompiledRegex::~CompiledRegex() = default;

std::expected<std::shared_ptr<const CompiledRegex>, std::string> CompiledRegex::compile(
    std::string_view pattern, table::RegexOptions options, Engines engines) {
  if (pattern.size() > kPatternBytesMax) {
    return std::unexpected("the regular expression has more than 1024 bytes");
  }
  re2::RE2::Options re2_options;
  re2_options.set_log_errors(false);
  re2_options.set_max_mem(kMemoryBytesMax);
  re2_options.set_case_sensitive(!options.ignore_case);
  re2_options.set_never_capture(true);
  auto re2 =
      std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), re2_options);
  if (!re2->ok()) return std::unexpected(words_of(*re2, pattern));
  const int program = re2->ProgramSize();
  if (program > kProgramMax) {
    return std::unexpected("the regular expression is too large: its program has " +
                           std::to_string(program) + " instructions, and may have " +
                           std::to_string(kProgramMax));
  }
  std::shared_ptr<CompiledRegex> regex(new CompiledRegex(std::move(re2)));
  // A pattern that matches the empty text is rare, and Hyperscan has rules of its own for it.
  if (engines == Engines::all && program <= kHyperscanProgramMax && !regex->search_re2({})) {
    if (const auto common = common_pattern(pattern, options.ignore_case)) {
      regex->hyperscan_ = HyperscanPattern::compile(common->text);
      regex->ascii_only_ = common->ascii_only;
    }
  }
  return regex;
}

bool CompiledRegex::search_re2(std::string_view text) const {
  return re2_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(),
                     re2::RE2::UNANCHORED, nullptr, 0);
}

void CompiledRegex::search(std::span<const std::string_view> texts, std::size_t ahead,
                           std::uint8_t* found) const {
  const bool fast = hyperscan_ && hyperscan_->prepare();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    for (std::size_t at = ahead; ahead != 0 && at < ahead + text.size(); at += base::kLineBytes) {
      base::prefetch_line(reinterpret_cast<const void*>(address_of(text) + at));
    }
    std::optional<bool> matches;
    if (fast && text.empty()) matches = false;
    if (fast && !text.empty() && (!ascii_only_ || is_ascii(text))) {
      matches = hyperscan_->search(text);
    }
    if (!matches) matches = search_re2(text);
    found[i] = *matches ? 1 : 0;
  }
}

}  // namespace espalier::regex
