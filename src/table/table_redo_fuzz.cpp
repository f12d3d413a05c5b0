// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as records of a table: what is applied leaves rows that can be read, of whole
// pages, and what is refused changes nothing.
//
// Input: a byte that says whether the table is encrypted; then records, each behind its length in 2
// bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "table/redo_record.hpp"
#include "table/snapshot.hpp"
#include "table/table_replay.hpp"
#include "table/testing/random_table.hpp"

namespace espalier::table {
namespace {

using base::want;

void apply(Table& table, const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint64_t> aligned(size / 8 + 1);
  std::memcpy(aligned.data(), data, size);
  const std::uint64_t rows = table.rows();
  const auto applied = apply_redo(table, {reinterpret_cast<const char*>(aligned.data()), size});
  if (applied) return;
  want(table.rows() == rows, "what was refused has changed something");
  if (applied.error().code == Code::out_of_memory) return;
  want(applied.error().code == Code::corrupt, "another error than corrupt");
  want(!text_of(static_cast<catalog::RedoFault>(applied.error().detail)).empty(),
       "a fault without words");
}

void run(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  TableStore store;
  const auto table =
      store.create(schema_of("d decimal(1) not null, t text(6)"), {.encrypted = data[0] % 2 != 0});
  std::uint16_t bytes = 0;
  for (std::size_t at = 1; size - at >= sizeof bytes;) {
    std::memcpy(&bytes, data + at, sizeof bytes);
    at += sizeof bytes;
    const std::size_t record = std::min<std::size_t>(bytes, size - at);
    apply(*table, data + at, record);
    at += record;
  }
  const TableSnapshot snapshot(table);
  std::uint64_t rows = 0;
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto span = snapshot.page(page);
    want(span.has_value() && span->first_row == rows, "a page does not go on where one ends");
    rows += span->count;
  }
  want(rows == snapshot.rows(), "rows are in no page");
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run(data, size);
  return 0;
}
