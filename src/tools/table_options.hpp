// SPDX-License-Identifier: Apache-2.0
// CSV flags shared by several commands on tables.
#pragma once

#include <cstdint>
#include <string>

#include "kinds/table/csv_reader.hpp"
#include "tools/environment.hpp"

namespace CLI {
class App;
}

namespace espalier::tools {

struct CsvFlags {
  std::string delimiter = ",";
  std::string null_text;
  bool no_header = false;
  std::uint64_t skip_bad = 0;
};

enum class CsvUse : std::uint8_t { reading, writing };

void add_csv_flags(CLI::App& command, CsvFlags& flags, CsvUse use);
/// Adds --one-sided, for commands that read whole rows.
void add_one_sided_flag(CLI::App& command, Access& access);
[[nodiscard]] Outcome<table::CsvOptions> csv_options(const CsvFlags& flags);

}  // namespace espalier::tools
