// SPDX-License-Identifier: Apache-2.0
// A regular expression with RE2's semantics, searched by Hyperscan where that has the same meaning.
//
// Both engines take time linear in the text, whatever the pattern; neither backtracks. The cost of
// a pattern is bounded besides: its length, RE2's memory, and the size of its program, which is the
// factor of that linear time.
//
// Thread: any; immutable but for RE2's cache of states, which locks itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "regex/hyperscan.hpp"
#include "regex/regex.hpp"

namespace re2 {
class RE2;
}

namespace espalier::regex {

enum class Engines : std::uint8_t {
  all,       // Hyperscan where it means the same
  re2_only,  // the oracle
};

class CompiledRegex final : public table::Regex {
 public:
  static constexpr std::size_t kPatternBytesMax = 1024;
  /// Of RE2: the program, and its state cache.
  static constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 20;
  /// Instructions of RE2's program. Those with more than the second are RE2's alone: compiling
  /// them with Hyperscan may take long.
  static constexpr int kProgramMax = 4096;
  static constexpr int kHyperscanProgramMax = 400;

  /// Errors: in words, RE2's message and the position, or the limit exceeded.
  /// Cost: some microseconds with RE2, up to milliseconds with Hyperscan.
  static std::expected<std::shared_ptr<const CompiledRegex>, std::string> compile(
      std::string_view pattern, table::RegexOptions options, Engines engines = Engines::all);
  ~CompiledRegex() override;
  CompiledRegex(const CompiledRegex&) = delete;
  CompiledRegex& operator=(const CompiledRegex&) = delete;

  void search(std::span<const std::string_view> texts, std::size_t ahead,
              std::uint8_t* found) const override;

  /// Whether Hyperscan searches at least texts of ASCII.
  [[nodiscard]] bool has_hyperscan() const { return hyperscan_.has_value(); }

 private:
  explicit CompiledRegex(std::unique_ptr<re2::RE2> re2);
  [[nodiscard]] bool search_re2(std::string_view text) const;

  std::unique_ptr<re2::RE2> re2_;
  std::optional<HyperscanPattern> hyperscan_;
  bool ascii_only_ = false;  // Hyperscan knows texts of ASCII only
};

}  // namespace espalier::regex
