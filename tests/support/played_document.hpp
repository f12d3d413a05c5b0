// SPDX-License-Identifier: Apache-2.0
// Executes documents: the commands of their fenced blocks, and of the examples of manual pages, in
// order, in a copy of the project's folder, as this user or another one.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.hpp"
#include "tests/support/node_program.hpp"

namespace espalier::test {

/// A fenced block.
struct Block {
  std::string language;
  std::string text;  ///< lines, each with its end
};

/// The content of a file. Throws std::runtime_error if it cannot be read.
[[nodiscard]] std::string text_of_file(const std::filesystem::path& path);

/// A manual page as a Markdown document: text between .EX and .EE becomes a block of "sh", and text
/// between .nf and .fi one without a language.
[[nodiscard]] std::string document_of_manual(const std::string& page);

/// All fenced blocks of a document, in order. Throws std::runtime_error if one has no end.
[[nodiscard]] std::vector<Block> blocks_of(const std::string& document);

/// A command of a block, and its expected output; nothing: none is given.
struct Typed {
  std::string command;
  std::optional<std::string> shown;
};

/// The commands of a block: in "console" the lines that begin with "$ ", in "sh" all. A line that
/// ends with a backslash continues on the next one. Other languages: none.
[[nodiscard]] std::vector<Typed> commands_of(const Block& block);

/// Lines of a document that look like commands, but are in no block of commands_of: in an indented
/// block, a block of another language, or after a fence that does not begin its line.
[[nodiscard]] std::vector<std::string> untyped_commands_of(const std::string& document);

/// An unprivileged user, without files in the project.
inline constexpr unsigned kOtherUser = 65534;

/// A copy of the project's folder after a release build, in which commands may write. Background
/// processes end with it.
class Workplace {
 public:
  /// `programs` is the folder of the build's programs, `sources` that of the project. `as_other`:
  /// runs all as kOtherUser, which requires root.
  Workplace(const std::filesystem::path& programs, const std::filesystem::path& sources,
            bool as_other);

  /// Runs a command, and fails the test if it fails: one that ends with " &" stays in the
  /// background and must start to serve; one whose comment begins with "fails" must fail. Returns
  /// its standard output, without progress and remarks.
  std::string type(const std::string& command);

 private:
  std::string run(const std::string& command, bool fails);
  void start(const std::string& command);
  [[nodiscard]] std::string shell_line(const std::string& script) const;

  base::TemporaryFolder folder_;
  bool as_other_;
  std::string exports_;
  std::size_t started_ = 0;
  std::vector<std::unique_ptr<NodeProgram>> programs_;
};

}  // namespace espalier::test
