// SPDX-License-Identifier: Apache-2.0
// Takes texts of tables apart: lines, and words of a line. Empty lines and those that begin with #
// say nothing.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "dataplane/index_tables.hpp"

namespace espalier::dataplane {

class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text), all_(text.size()) {}

  /// Goes to the next line that says something. Returns whether there is one.
  bool next_line() {
    while (!rest_.empty()) {
      begin_ = line_end();
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      skip_blanks();
      if (!line_.empty() && line_.front() != '#') return true;
    }
    line_ = {};
    return false;
  }
  /// Of the line that it is at; the first is 1.
  [[nodiscard]] std::size_t number() const { return number_; }
  /// Where the line that it is at begins, and where the next one does.
  [[nodiscard]] std::size_t line_begin() const { return begin_; }
  [[nodiscard]] std::size_t line_end() const { return all_ - rest_.size(); }
  [[nodiscard]] bool at_end() const { return line_.empty(); }
  std::string_view word() {
    const std::size_t end = std::min(line_.find_first_of(" \t\r"), line_.size());
    const std::string_view found = line_.substr(0, end);
    line_.remove_prefix(end);
    skip_blanks();
    return found;
  }
  template <class T>
  bool number(T& into, int base = 10) {
    return parse(word(), into, base);
  }
  bool way(Way& into) {
    const std::string_view found = word();
    const std::size_t arrow = found.find('>');
    into.next = kNoNode;
    if (!parse(found.substr(0, arrow), into.address, 16)) return false;
    return arrow == std::string_view::npos ||
           (parse(found.substr(arrow + 1), into.next, 10) && into.next != kNoNode);
  }

 private:
  void skip_blanks() {
    line_.remove_prefix(std::min(line_.find_first_not_of(" \t\r"), line_.size()));
  }
  template <class T>
  static bool parse(std::string_view word, T& into, int base) {
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, into, base);
    return !word.empty() && read.ec == std::errc() && read.ptr == end;
  }

  std::string_view rest_;
  std::size_t all_ = 0;    // bytes of the text
  std::size_t begin_ = 0;  // of the line
  std::string_view line_;
  std::size_t number_ = 0;
};

}  // namespace espalier::dataplane
