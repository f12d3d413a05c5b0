// SPDX-License-Identifier: Apache-2.0
#include "regex/regex_cache.hpp"

#include <utility>

#include "regex/compiled_regex.hpp"

namespace espalier::regex {

std::shared_ptr<const table::Regex> RegexCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++numbers_.misses;
    return nullptr;
  }
  ++numbers_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().regex;
}

void RegexCache::keep(std::string key, const std::shared_ptr<const table::Regex>& regex) {
  std::list<Entry> dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  entries_.push_front({std::move(key), regex});
  by_key_.emplace(entries_.front().key, entries_.begin());
  if (entries_.size() > kPatternsMax) {
    by_key_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
}

std::expected<std::shared_ptr<const table::Regex>, std::string> RegexCache::compile(
    std::string_view pattern, table::RegexOptions options) {
  std::string key(options.ignore_case ? "i" : "-");
  key += pattern;
  if (auto regex = find(key)) return regex;
  auto compiled = CompiledRegex::compile(pattern, options);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  std::shared_ptr<const table::Regex> regex = *std::move(compiled);
  keep(std::move(key), regex);
  return regex;
}

RegexCache::Numbers RegexCache::numbers() const {
  const std::lock_guard lock(mutex_);
  Numbers numbers = numbers_;
  numbers.patterns = entries_.size();
  return numbers;
}

}  // namespace espalier::regex
