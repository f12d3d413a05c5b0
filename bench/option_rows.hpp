// SPDX-License-Identifier: Apache-2.0
// The options of a benchmark, each declared once: flag, destination, allowed values, and help. The
// same rows parse the command line, and validate values set by code.
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
  /// Adds the declared options to the command.
  explicit OptionRows(CLI::App& command) : command_(&command) {}
  /// Checks the values of the declared options.
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
  /// A non-empty list.
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
  /// One of some names, with which `help` begins. `to` may be an optional.
  template <class To, class Parse>
  void choice(const std::string& flag, To& to, Parse parse, const std::string& help) {
    if (command_ != nullptr) add_choice(*command_, flag, to, parse, help);
  }
  /// A non-empty list of such.
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
  /// The address of a running node, and the secret for it.
  void node_address(std::string& to, const std::string& help);

  /// Options of all benchmarks of points.
  void of_points(PointOptions& to);
  /// Options of output.
  void of_output(PointOptions& to);
  void json(PointOptions& to) { flag("--json", to.json, "JSON lines instead of a table"); }

  /// A relation between several options, or a condition on one that is not a number: a problem if
  /// it does not hold. No effect while rows are added.
  void require(bool holds, std::string_view problem) {
    if (command_ == nullptr && !holds && !problem_) problem_ = problem;
  }
  /// The same; nothing: no problem.
  void require_none(std::optional<std::string> problem) {
    if (problem) require(false, *problem);
  }
  /// Whether values are being checked: do expensive checks only then.
  [[nodiscard]] bool checks() const { return command_ == nullptr; }
  /// The first problem, in one sentence.
  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  template <cmdline::Number N>
  void check(const std::string& flags, N value, cmdline::Range<N> range) {
    const bool holds = value >= range.min && value <= range.max;
    if (holds) return;
    // The last of several names.
    const std::string name = flags.substr(flags.find(',') + 1);
    require(false, range.max == cmdline::Range<N>{}.max
                       ? fmt::format("{} must be {} or more", name, range.min)
                       : fmt::format("{} must be {} to {}", name, range.min, range.max));
  }

  CLI::App* command_ = nullptr;  // null: values are checked
  std::optional<std::string> problem_;
};

}  // namespace espalier::bench
