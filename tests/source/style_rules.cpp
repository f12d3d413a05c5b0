// SPDX-License-Identifier: Apache-2.0
#include "tests/source/style_rules.hpp"

#include <algorithm>
#include <cctype>
#include <regex>
#include <stdexcept>

namespace espalier::source {
namespace {

std::size_t columns(std::string_view line) {
  // Every byte of UTF-8 but the continuations begins a character.
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

/// Words that mark unfinished work; in two parts, so that this file does not hold them itself.
const std::regex& unfinished_mark() {
  static const std::regex marks(R"(\b()" "FIX" "ME|TO" "DO|XX" R"(X)\b)");
  return marks;
}

/// Calls that make a run depend on more than its seed, and where they may stand.
struct Banned {
  std::regex pattern;
  std::string why;
};

const std::vector<Banned>& banned_calls() {
  static const std::vector<Banned> banned = [] {
    std::vector<Banned> list;
    const auto add = [&list](const char* pattern, const char* why) {
      list.push_back({std::regex(pattern), why});
    };
    add(R"(\bs?rand\s*\()", "the C library's random numbers; use base/random.hpp");
    add(R"(\brandom_device\b)", "an unrepeatable seed; take one from the caller");
    add(R"(\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\()", "sleeping; wait for the event");
    add(R"(\bsystem_clock\b)", "the date; use base/clock.hpp");
    return list;
  }();
  return banned;
}

bool may_call_anything(std::string_view path) {
  const bool test = path.ends_with("_test.cpp");
  return !test && (path.starts_with("src/base/") || path.starts_with("src/tools/"));
}

}  // namespace

std::vector<Finding> check_text(const SourceFile& file) {
  std::vector<Finding> findings;
  const auto lines = split_lines(file.text);
  const auto licensed = [&lines](std::size_t i) {
    return i < lines.size() &&
           lines[i].find("SPDX-License-Identifier: Apache-2.0") != std::string_view::npos;
  };
  if (!licensed(0) && !licensed(1)) findings.push_back({file.path, 1, "no SPDX licence line"});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const auto add = [&](const std::string& what) { findings.push_back({file.path, i + 1, what}); };
    if (columns(line) > kLineColumnsMax) add(std::to_string(columns(line)) + " columns");
    if (line.find('\t') != std::string_view::npos) add("a tab");
    if (line.ends_with(' ') || line.ends_with('\r')) add("blanks at the end of the line");
    if (std::regex_search(line.begin(), line.end(), unfinished_mark())) add("unfinished work");
  }
  return findings;
}

std::vector<Finding> check_code(const SourceFile& file,
                                const std::map<std::string, std::string>& long_files) {
  std::vector<Finding> findings;
  const std::string code = blank_comments_and_strings(file.text);
  const auto lines = split_lines(code);
  const bool header = file.path.ends_with(".hpp");
  if (lines.size() > kFileLinesMax && !long_files.contains(file.path)) {
    findings.push_back({file.path, kFileLinesMax + 1,
                        std::to_string(lines.size()) +
                            " lines; split the file, or give a reason in tests/long_files.txt"});
  }
  if (header && code.find("#pragma once") == std::string::npos) {
    findings.push_back({file.path, 1, "a header without #pragma once"});
  }
  for (const FunctionSpan& span : find_functions(file.text)) {
    if (span.lines() <= kFunctionLinesMax || long_files.contains(file.path)) continue;
    findings.push_back({file.path, span.first_line,
                        "a function of " + std::to_string(span.lines()) + " lines"});
  }
  static const std::regex using_namespace(R"(\busing\s+namespace\b)");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line(lines[i]);
    const bool x86 =
        line.starts_with("#include <immintrin.h>") || line.starts_with("#include <cpuid.h>");
    if (x86 && !file.path.starts_with("src/base/") &&
        (i == 0 || !lines[i - 1].starts_with("#if defined(__x86_64__)"))) {
      findings.push_back({file.path, i + 1, "x86 without a way around it"});
    }
    if (header && std::regex_search(line, using_namespace)) {
      findings.push_back({file.path, i + 1, "using namespace in a header"});
    }
    if (may_call_anything(file.path)) continue;
    for (const Banned& banned : banned_calls()) {
      if (std::regex_search(line, banned.pattern)) {
        findings.push_back({file.path, i + 1, banned.why});
      }
    }
  }
  return findings;
}

namespace {

/// All words of `text` that `refused` has; `word_of` makes an entry of a name.
template <class WordOf>
std::vector<Finding> find_words(const std::string& path, std::string_view text,
                                const std::map<std::string, std::string>& refused, WordOf word_of) {
  const auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  std::vector<Finding> findings;
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && in_name(line[end])) ++end;
      const std::string word = word_of(std::string(line.substr(at, end - at)));
      at = end + 1;
      const auto entry = refused.find(word);
      if (entry == refused.end()) continue;
      findings.push_back({path, i + 1, word + ": rather " + entry->second});
    }
  }
  return findings;
}

}  // namespace

std::vector<Finding> check_names(const SourceFile& file,
                                 const std::map<std::string, std::string>& refused) {
  return find_words(file.path, blank_comments_and_strings(file.text), refused,
                    [](std::string name) {
                      while (name.ends_with('_')) name.pop_back();
                      return name;
                    });
}

std::vector<Finding> check_comment_words(const SourceFile& file,
                                         const std::map<std::string, std::string>& refused) {
  return find_words(file.path, only_comments(file.text), refused, [](std::string word) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    return word;
  });
}

std::map<std::string, std::string> parse_reasons(std::string_view text) {
  std::map<std::string, std::string> reasons;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || colon + 2 == line.size()) {
      throw std::runtime_error("not \"path: reason\": " + std::string(line));
    }
    reasons.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  return reasons;
}

}  // namespace espalier::source
