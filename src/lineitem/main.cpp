// SPDX-License-Identifier: Apache-2.0
// The program `lineitem`: rows of TPC-H's table lineitem as CSV, on standard output.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "base/standard_descriptors.hpp"
#include "lineitem/lineitem.hpp"

namespace {

using espalier::lineitem::Generator;

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int misused() {
  std::fprintf(stderr,
               "usage: lineitem schema | lineitem SCALE [SEED]\n"
               "Prints the schema, or the rows as CSV. SCALE is %g to %g; 1 is 6 million rows.\n",
               Generator::kScaleMin, Generator::kScaleMax);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  espalier::base::open_standard_descriptors();
  double scale = 0;
  std::uint64_t seed = 1;
  if (argc == 2 && std::string_view(argv[1]) == "schema") {
    return std::puts(std::string(espalier::lineitem::kSchema).c_str()) < 0 ? 1 : 0;
  }
  if (argc < 2 || argc > 3 || !parse(argv[1], scale) || (argc == 3 && !parse(argv[2], seed)) ||
      !(scale >= Generator::kScaleMin && scale <= Generator::kScaleMax)) {
    return misused();
  }
  Generator generator(scale, seed);
  std::string text;
  espalier::lineitem::append_csv_header(text);
  bool more = true;
  while (more) {
    const espalier::lineitem::Row* const row = generator.next();
    more = row != nullptr;
    if (more) espalier::lineitem::append_csv(*row, text);
    if (more && text.size() < kWriteBytes) continue;
    if (!write_all(text)) {
      std::fprintf(stderr, "lineitem: cannot write: %s\n", std::strerror(errno));
      return 1;
    }
    text.clear();
  }
  return 0;
}
