// SPDX-License-Identifier: Apache-2.0
#include "cmdline/number_option.hpp"

#include <charconv>
#include <system_error>

#include "cmdline/parse.hpp"
#include "cmdline/text_codec.hpp"

namespace espalier::cmdline {

template <Number T>
std::optional<T> parse_number(std::string_view text, Range<T> range) {
  // from_chars() takes "inf" and "nan" too, and "-0", which no option means.
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (text.empty() || text.front() == '-') return std::nullopt;
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  // Written so that a number which is none would not pass.
  if (!(number >= range.min && number <= range.max)) return std::nullopt;
  return number;
}

template <Number T>
std::string expected(Range<T> range) {
  const std::string_view kind = std::same_as<T, double> ? "a number" : "a whole number";
  if (std::same_as<T, double> && range.max == std::numeric_limits<T>::max()) {
    return fmt::format("{} of {} or more", kind, range.min);
  }
  return fmt::format("{} from {} to {}", kind, range.min, range.max);
}

CLI::ValidationError not_expected(const std::string& names, const std::string& text,
                                  const std::string& expected) {
  const std::string name = names.substr(names.rfind(',') + 1);
  return CLI::ValidationError(
      name, fmt::format("'{}' is not {}", encode(text, Encoding::escaped), expected));
}

template std::optional<std::uint32_t> parse_number(std::string_view, Range<std::uint32_t>);
template std::optional<std::uint64_t> parse_number(std::string_view, Range<std::uint64_t>);
template std::optional<double> parse_number(std::string_view, Range<double>);
template std::string expected(Range<std::uint32_t>);
template std::string expected(Range<std::uint64_t>);
template std::string expected(Range<double>);

}  // namespace espalier::cmdline
