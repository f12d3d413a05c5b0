// SPDX-License-Identifier: Apache-2.0
// The options of a benchmark, each declared once: flag, where its value goes, what is allowed, and
// its help. The same rows make the command line, and hold values against what is allowed, whoever
// set them.
//
// Thread: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bench/command_options.hpp"
#include "bench/point_options.hpp"
#include "cmdline/number_option.hpp"

namespace espalier::bench {

/// Of `--dir`.
inline constexpr const char* kFolderHelp =
    "where files are made, on the disk that is to be measured; they are removed at the end "
    "(default: the folder for temporary files)";

class OptionRows {
 public:
  /// Adds what is declared to the command.
  explicit OptionRows(CLI::App& command) : command_(&command) {}
  /// Checks what is declared.
  OptionRows() = default;

  template <cmdline::Number N>
  using Range = std::type_identity_t<cmdline::Range<N>>;

  template <cmdline::Number N>
  void number(const std::string& flags, N& to, Range<N> range, const std::string& help) {
    if (command_ != nullptr) {
      cmdline::add_number(*command_, flags, to, help);
    } else {
      check(flags, to, range);
    }
  }
  /// A list, of one number at least.
  template <cmdline::Number N>
  void numbers(const std::string& flags, std::vector<N>& to, Range<N> range,
               const std::string& help) {
    if (command_ == nullptr) {
      require(!to.empty(), flags + " names no number");
    }
    any_numbers(flags, to, range,
                to.empty() ? help : fmt::format("{}; {} by default", help, fmt::join(to, ",")));
  }
  /// A list that may be empty.
  template <cmdline::Number N>
  void any_numbers(const std::string& flags, std::vector<N>& to, Range<N> range,
                   const std::string& help) {
    if (command_ != nullptr) {
      cmdline::add_numbers(*command_, flags, to, help);
      return;
    }
    for (const N value : to) check(flags, value, range);
  }
  /// One of some names, which `help` begins with. `to` may be an optional.
  template <class To, class Parse>
  void choice(const std::string& flag, To& to, Parse parse, const std::string& help) {
    if (command_ != nullptr) add_choice(*command_, flag, to, parse, help);
  }
  /// A list of such, of one at least.
  template <class To, class Parse>
  void choices(const std::string& flag, std::vector<To>& to, Parse parse, const std::string& help) {
    if (command_ == nullptr) require(!to.empty(), flag + " names none");
    any_choices(flag, to, parse, help);
  }
  /// A list of such that may be empty.
  template <class To, class Parse>
  void any_choices(const std::string& flag, std::vector<To>& to, Parse parse,
                   const std::string& help) {
    if (command_ != nullptr) add_choices(*command_, flag, to, parse, help);
  }
  void on_or_off(const std::string& flag, bool& to, const std::string& help);
  void flag(const std::string& flag, bool& to, const std::string& help) {
    if (command_ != nullptr) command_->add_flag(flag, to, help);
  }
  void text(const std::string& flag, std::string& to, const std::string& help) {
    if (command_ != nullptr) command_->add_option(flag, to, help);
  }
  void texts(const std::string& flag, std::vector<std::string>& to, const std::string& help) {
    if (command_ != nullptr) add_list(*command_, flag.c_str(), to, help);
  }
  /// Where a node is that runs already, and by which secret one comes to it.
  void node_address(std::string& to, const std::string& help);

  /// What benchmarks of points share.
  void of_points(PointOptions& to);
  /// The ways to print.
  void of_output(PointOptions& to);
  void json(PointOptions& to) { flag("--json", to.json, "JSON lines instead of a table"); }

  /// What several options have to do with each other, or one that is no number: a problem if it
  /// does not hold. Nothing where rows are added.
  void require(bool holds, std::string_view problem) {
    if (command_ == nullptr && !holds && !problem_) problem_ = problem;
  }
  /// The same; nothing: all is well.
  void require_none(std::optional<std::string> problem) {
    if (problem) require(false, *problem);
  }
  /// Whether values are checked: what costs something to find out is asked only then.
  [[nodiscard]] bool checks() const { return command_ == nullptr; }
  /// What is wrong with the first that is, in one sentence.
  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  template <cmdline::Number N>
  void check(const std::string& flags, N value, cmdline::Range<N> range) {
    const bool holds = value >= range.min && value <= range.max;
    if (holds) return;
    // Of several names the last.
    const std::string name = flags.substr(flags.find(',') + 1);
    require(false, range.max == cmdline::Range<N>{}.max
                       ? fmt::format("{} must be {} or more", name, range.min)
                       : fmt::format("{} must be {} to {}", name, range.min, range.max));
  }

  CLI::App* command_ = nullptr;  // null: values are checked
  std::optional<std::string> problem_;
};

}  // namespace espalier::bench
