// SPDX-License-Identifier: Apache-2.0
#include "tests/source/source_file.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace espalier::source {
namespace {

/// Walks over C++ text once and parts it: what is not code is blank in one copy, what is not a
/// comment in the other.
class Blanker {
 public:
  explicit Blanker(std::string_view text)
      : text_(text), result_(text), comments_(text.size(), ' ') {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') comments_[i] = '\n';
    }
  }

  void run() {
    while (at_ < text_.size()) {
      if (begins("//")) {
        comment_until(text_.find('\n', at_));
      } else if (begins("/*")) {
        comment_until(after(text_.find("*/", at_ + 2), 2));
      } else if (begins("R\"") && !after_word()) {
        raw_string();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !after_word())) {
        literal(text_[at_]);
      } else {
        ++at_;
      }
    }
  }

  std::string code() { return std::move(result_); }
  std::string comments() { return std::move(comments_); }

 private:
  [[nodiscard]] bool begins(std::string_view what) const {
    return text_.substr(at_, what.size()) == what;
  }
  /// A quote after a word is a digit separator, and an R after one is part of the word. The literal
  /// prefixes u8, u, U and L are not used in this project.
  [[nodiscard]] bool after_word() const {
    if (at_ == 0) return false;
    const auto before = static_cast<unsigned char>(text_[at_ - 1]);
    return std::isalnum(before) != 0 || before == '_';
  }
  static std::size_t after(std::size_t found, std::size_t size) {
    return found == std::string_view::npos ? found : found + size;
  }
  void comment_until(std::size_t end) {
    const std::size_t begin = at_;
    blank_until(end);
    text_.copy(comments_.data() + begin, at_ - begin, begin);
  }
  void blank_until(std::size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) {
      if (text_[at_] != '\n') result_[at_] = ' ';
    }
  }
  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return blank_until(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    at_ += 2;
    blank_until(after(text_.find(close, open), close.size()));
  }
  void literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    ++at_;
    blank_until(end);
    ++at_;
  }

  std::string_view text_;
  std::string result_;
  std::string comments_;
  std::size_t at_ = 0;
};

}  // namespace

std::string describe(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.path + ":" + std::to_string(finding.line) + ": " + finding.what + "\n";
  }
  return text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return std::move(text).str();
}

std::vector<SourceFile> read_sources(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders,
                                     const std::vector<std::string>& endings) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(root / folder)) continue;
    auto at = std::filesystem::recursive_directory_iterator(root / folder);
    for (const auto& entry : at) {
      // Packages of npm are others' sources.
      if (entry.path().filename() == "node_modules") at.disable_recursion_pending();
      const std::string ending = entry.path().extension().string();
      const bool wanted = std::find(endings.begin(), endings.end(), ending) != endings.end();
      const bool hidden = entry.path().filename().string().front() == '.';
      if (!entry.is_regular_file() || !wanted || hidden) continue;
      files.push_back(
          {entry.path().lexically_relative(root).generic_string(), read_text(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view quoted_include(std::string_view line) {
  const auto skip_blanks = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with("include")) return {};
  line.remove_prefix(std::string_view("include").size());
  skip_blanks();
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  return line.substr(0, line.find('"'));
}

std::string blank_comments_and_strings(std::string_view text) {
  Blanker blanker(text);
  blanker.run();
  return blanker.code();
}

std::string only_comments(std::string_view text) {
  Blanker blanker(text);
  blanker.run();
  return blanker.comments();
}

}  // namespace espalier::source

