// SPDX-License-Identifier: Apache-2.0
// LRU cache of compiled regular expressions by their text, so that repeated queries find them
// compiled.
//
// An evicted pattern lives on while a query uses it. Invalid patterns are not cached.
//
// Thread: any. Compiling holds no lock: two threads may compile the same pattern, and one of both
// is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "regex/regex.hpp"

namespace espalier::regex {

class RegexCache final : public table::RegexCompiler {
 public:
  static constexpr std::size_t kPatternsMax = 256;

  /// Errors: those of CompiledRegex::compile().
  [[nodiscard]] std::expected<std::shared_ptr<const table::Regex>, std::string> compile(
      std::string_view pattern, table::RegexOptions options) override;

  struct Numbers {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::size_t patterns = 0;
  };
  [[nodiscard]] Numbers numbers() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const table::Regex> regex;
  };

  std::shared_ptr<const table::Regex> find(const std::string& key);
  void keep(std::string key, const std::shared_ptr<const table::Regex>& regex);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used last, first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  Numbers numbers_;
};

}  // namespace espalier::regex
