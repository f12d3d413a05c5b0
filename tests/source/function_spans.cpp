// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "tests/source/style_rules.hpp"

namespace espalier::source {
namespace {

/// Blanks preprocessor lines, continued ones too.
void blank_directives(std::string& text) {
  bool in_directive = false;
  std::size_t line_begin = 0;
  while (line_begin < text.size()) {
    const std::size_t line_end = std::min(text.find('\n', line_begin), text.size());
    const std::size_t first = text.find_first_not_of(" \t", line_begin);
    in_directive = in_directive || (first < line_end && text[first] == '#');
    if (in_directive) {
      in_directive = line_end > line_begin && text[line_end - 1] == '\\';
      std::fill(text.begin() + static_cast<std::ptrdiff_t>(line_begin),
                text.begin() + static_cast<std::ptrdiff_t>(line_end), ' ');
    }
    line_begin = line_end + 1;
  }
}

bool has_word(std::string_view head, std::string_view word) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = head.find(word); at != std::string_view::npos;
       at = head.find(word, at + 1)) {
    const bool begins = at == 0 || !is_part(head[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == head.size() || !is_part(head[end]))) return true;
  }
  return false;
}

/// The text before an opening brace determines what it opens.
bool opens_scope(std::string_view head) {
  if (has_word(head, "namespace") || has_word(head, "enum")) return true;
  // A class may have parentheses in its attributes, a function `class` in its template head; but
  // only of a function the part before the parameters holds no such word outside angle brackets.
  std::string outside;
  int depth = 0;
  for (const char c : head) {
    if (c == '<') ++depth;
    if (c == '>' && depth > 0) --depth;
    if (depth == 0) outside += c;
  }
  const std::string before(outside.substr(0, outside.find('(')));
  for (const std::string_view word : {"class", "struct", "union"}) {
    if (has_word(before, word)) return true;
  }
  return has_word(before, "extern") && outside.find('(') == std::string::npos;
}

class Scanner {
 public:
  explicit Scanner(std::string text) : text_(std::move(text)) {}

  std::vector<FunctionSpan> run() {
    for (at_ = 0; at_ < text_.size(); ++at_) {
      switch (text_[at_]) {
        case '\n': ++line_; break;
        case '{': open(); break;
        case '}': close(); break;
        case '(': ++parentheses_; break;
        case ')': --parentheses_; break;
        case ';':
          if (parentheses_ == 0 && !in_function()) new_head();
          break;
        case ':':
          if (!in_function() && head_is_access_specifier()) new_head();
          break;
        default: note_first_line(); break;
      }
    }
    return std::move(spans_);
  }

 private:
  enum class Block { scope, function, inner };

  void note_first_line() {
    if (head_line_ == 0 && std::isspace(static_cast<unsigned char>(text_[at_])) == 0) {
      head_line_ = line_;
    }
  }
  void new_head() {
    head_begin_ = at_ + 1;
    head_line_ = 0;
  }
  [[nodiscard]] std::string_view head() const {
    return std::string_view(text_).substr(head_begin_, at_ - head_begin_);
  }
  [[nodiscard]] bool head_is_access_specifier() const {
    const auto words = head();
    return words.size() < 40 &&
           (has_word(words, "public") || has_word(words, "protected") ||
            has_word(words, "private")) &&
           words.find_first_of("({") == std::string_view::npos && !opens_scope(words);
  }
  [[nodiscard]] bool in_function() const {
    return std::find(blocks_.begin(), blocks_.end(), Block::function) != blocks_.end();
  }

  void open() {
    if (in_function() || parentheses_ > 0) {
      blocks_.push_back(Block::inner);
    } else if (opens_scope(head())) {
      blocks_.push_back(Block::scope);
      new_head();
    } else if (head().find('(') != std::string_view::npos) {
      blocks_.push_back(Block::function);
    } else {
      blocks_.push_back(Block::inner);
    }
  }

  void close() {
    if (blocks_.empty()) return;
    const Block block = blocks_.back();
    blocks_.pop_back();
    if (block == Block::function) {
      // After the braces of a member's initialiser its function continues.
      const std::size_t next = text_.find_first_not_of(" \t\n", at_ + 1);
      if (next != std::string::npos && (text_[next] == ',' || text_[next] == '{')) return;
      spans_.push_back({head_line_, line_});
    }
    if (!in_function() && parentheses_ == 0) new_head();
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  int parentheses_ = 0;
  std::size_t head_begin_ = 0;
  std::size_t head_line_ = 0;
  std::vector<Block> blocks_;
  std::vector<FunctionSpan> spans_;
};

}  // namespace

std::vector<FunctionSpan> find_functions(std::string_view text) {
  std::string code = blank_comments_and_strings(text);
  blank_directives(code);
  return Scanner(std::move(code)).run();
}

}  // namespace espalier::source
