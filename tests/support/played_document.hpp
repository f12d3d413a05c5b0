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

/// A block between fences.
struct Block {
  std::string language;
  std::string text;  ///< lines, each with its end
};

/// The whole of a file. Throws std::runtime_error where it cannot be read.
[[nodiscard]] std::string text_of_file(const std::filesystem::path& path);

/// A manual page as a document of the others' form: what stands between .EX and .EE is a block of
/// "sh", and what stands between .nf and .fi one of no language.
[[nodiscard]] std::string document_of_manual(const std::string& page);

/// All fenced blocks of a document, in order. Throws std::runtime_error at one without an end.
[[nodiscard]] std::vector<Block> blocks_of(const std::string& document);

/// What a block has one type, and what it says is shown then; nothing: it does not say.
struct Typed {
  std::string command;
  std::optional<std::string> shown;
};

/// The commands of a block: of "console" the lines that begin with "$ ", of "sh" all. A line that
/// ends with a backslash goes on in the next one. Of another language: none.
[[nodiscard]] std::vector<Typed> commands_of(const Block& block);

/// The lines of a document that look like commands, and that commands_of has in none of its blocks:
/// in a block that is made by indentation, or in one of another language, or of a fence that does
/// not begin its line.
[[nodiscard]] std::vector<std::string> untyped_commands_of(const std::string& document);

/// A user without rights, of whom no file of the project is.
inline constexpr unsigned kOtherUser = 65534;

/// A folder that looks like the project after a release build, in which commands may write. What is
/// started in the background ends with it.
class Workplace {
 public:
  /// `programs` is the folder of the build's programs, `sources` that of the project. With
  /// `as_other` all is done as kOtherUser, which root alone can do.
  Workplace(const std::filesystem::path& programs, const std::filesystem::path& sources,
            bool as_other);

  /// Types a command, and fails the test where it does not end well: one that ends with " &" stays
  /// in the background and must come so far that it serves; one whose comment begins with "fails"
  /// must fail. Returns what it prints to standard output; progress and remarks are left out.
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
