// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_line.hpp"

#include <charconv>
#include <system_error>

namespace espalier::dataplane {

std::optional<ControlLine> read_control_line(std::string_view line) {
  const std::size_t blank = line.find(' ');
  ControlLine result{line.substr(0, blank), 0};
  if (blank == std::string_view::npos) return result;
  const char* const end = line.data() + line.size();
  const auto read = std::from_chars(line.data() + blank + 1, end, result.bytes);
  if (read.ec != std::errc() || read.ptr != end || result.bytes > kControlBytesMax) {
    return std::nullopt;
  }
  return result;
}

std::string control_text(std::string_view word, std::string_view body, bool always) {
  std::string text(word);
  if (!body.empty() || always) text.append(" ").append(std::to_string(body.size()));
  return text.append("\n").append(body);
}

}  // namespace espalier::dataplane
