// SPDX-License-Identifier: Apache-2.0
// Options that take numbers. The parser's own conversion accepts invalid numbers, "-1" as the
// largest one, or "nan", and otherwise only reports that it could not convert. Here a number is
// decimal digits, for a fraction also with a point and an exponent, and within limits; anything
// else is refused with the option, the given text, and the expected form.
//
// Thread: any; no state.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace espalier::cmdline {

template <class T>
concept Number =
    std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t> || std::same_as<T, double>;

/// Range of an option: min to max, both included. Fractions are finite, whatever max is.
template <Number T>
struct Range {
  T min = 0;
  T max = std::numeric_limits<T>::max();
};

/// Parses the text; nullopt if it is not a number in the range.
template <Number T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text, Range<T> range);

/// "a whole number from 1 to 64", "a number of 0 or more".
template <Number T>
[[nodiscard]] std::string expected(Range<T> range);

/// The parser's error that `text`, given to the option with these names, is not `expected`.
[[nodiscard]] CLI::ValidationError not_expected(const std::string& names, const std::string& text,
                                                const std::string& expected);

/// Adds an option whose number `take` gets.
template <Number T>
CLI::Option* add_number_function(CLI::App& command, const std::string& names,
                                 std::function<void(T)> take, const std::string& description,
                                 std::type_identity_t<Range<T>> range = {}) {
  return command
      .add_option_function<std::string>(
          names,
          [names, take = std::move(take), range](const std::string& text) {
            const auto number = parse_number<T>(text, range);
            if (!number) throw not_expected(names, text, expected(range));
            take(*number);
          },
          description)
      ->type_name("N");
}

/// Adds an option that stores a number in `to`, and shows its default in the help.
template <Number T>
CLI::Option* add_number(CLI::App& command, const std::string& names, T& to,
                        const std::string& description, std::type_identity_t<Range<T>> range = {}) {
  return add_number_function<T>(
             command, names, [&to](T number) { to = number; }, description, range)
      ->default_str(fmt::format("{}", to));
}

/// Adds an option that takes comma-separated numbers; without it `to` is unchanged.
template <Number T>
CLI::Option* add_numbers(CLI::App& command, const std::string& names, std::vector<T>& to,
                         const std::string& description,
                         std::type_identity_t<Range<T>> range = {}) {
  return command
      .add_option_function<std::vector<std::string>>(
          names,
          [names, &to, range](const std::vector<std::string>& texts) {
            to.clear();
            for (const std::string& text : texts) {
              const auto number = parse_number<T>(text, range);
              if (!number) throw not_expected(names, text, expected(range));
              to.push_back(*number);
            }
          },
          description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...");
}

}  // namespace espalier::cmdline
