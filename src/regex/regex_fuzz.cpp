// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pattern and texts: it is refused in words, or both engines find the same.
//
// The first byte says whether case counts; the pattern ends at the next 0, and so does each text.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "regex/compiled_regex.hpp"
#include "regex/testing/random_regex.hpp"

namespace espalier::regex {
namespace {

void run_one(std::string_view data) {
  if (data.empty() || data.size() > 8192) return;
  const bool ignore_case = (data.front() & 1) != 0;
  data.remove_prefix(1);
  std::vector<std::string> parts;
  while (!data.empty()) {
    const std::size_t end = std::min(data.find('\0'), data.size());
    parts.emplace_back(data.substr(0, end));
    data.remove_prefix(std::min(end + 1, data.size()));
  }
  if (parts.empty()) return;
  const std::string pattern = std::move(parts.front());
  parts.front().clear();
  const Compared compared = compare_engines(pattern, {.ignore_case = ignore_case}, parts);
  base::want(compared.difference.empty(), "the engines differ");
}

}  // namespace
}  // namespace espalier::regex

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::regex::run_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
