// SPDX-License-Identifier: Apache-2.0
#include "tools/split_tsv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cmdline/text_codec.hpp"

namespace espalier::tools {

std::optional<std::string> split_tsv(std::string_view content,
                                     std::vector<std::string_view>& fields, std::string& scratch) {
  fields.clear();
  scratch.clear();
  scratch.reserve(content.size());
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(content.find('\t', at), content.size());
    const std::string_view field = content.substr(at, end - at);
    if (field.find('\\') == std::string_view::npos) {
      fields.push_back(field);
    } else {
      const std::size_t start = scratch.size();
      if (auto wrong = decode_to(scratch, field, cmdline::Encoding::tsv)) {
        return fmt::format("column {}: {}", fields.size() + 1, *wrong);
      }
      fields.push_back(std::string_view(scratch).substr(start));
    }
    if (end == content.size()) return std::nullopt;
    at = end + 1;
  }
}

}  // namespace espalier::tools
