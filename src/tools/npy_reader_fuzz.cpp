// SPDX-License-Identifier: Apache-2.0
// Any bytes as a NumPy file: it is refused in words, or has as many rows as its header says, each
// with the values that stand in the file.
//
// The first byte is the size of the pieces in which the bytes arrive.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/npy_reader.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

/// As many values as a row of a table has at most.
constexpr std::uint64_t kColumnsMax = 1024;
constexpr std::size_t kRowsAtATime = 3;

void want_npy(bool holds) {
  if (!holds) std::abort();
}

/// Reads all rows; `file` ends with them if it is good.
void read_rows(NpyReader& reader, const NpyShape& shape, const std::string& file) {
  std::vector<float> rows(kRowsAtATime * shape.columns);
  std::string values;
  for (std::uint64_t there = 0;;) {
    const auto some = reader.read(rows);
    if (!some) return want_npy(!some.error().empty());
    if (*some == 0) {
      want_npy(there == shape.rows && file.ends_with(values));
      return;
    }
    want_npy(*some <= kRowsAtATime);
    there += *some;
    values.append(reinterpret_cast<const char*>(rows.data()),
                  *some * shape.columns * sizeof(float));
  }
}

void run_npy(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  MemorySource source(file, 1 + data[0]);
  NpyReader reader(source);
  const auto shape = reader.open();
  if (!shape) return want_npy(!shape.error().empty());
  // No table is made of others, and no row of them is read.
  if (shape->columns == 0 || shape->columns > kColumnsMax) return;
  read_rows(reader, *shape, file);
}

}  // namespace
}  // namespace espalier::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::tools::run_npy(data, size);
  return 0;
}
