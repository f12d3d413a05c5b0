// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the rows of a page: a pipeline reads them by batches as the reference does, to
// the bit, and nothing beside them.
//
// Input: 8 bytes, from which schema and pipeline are drawn; then rows.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/testing/fuzz_input.hpp"
#include "kinds/table/group_table.hpp"
#include "kinds/table/testing/memory_rows.hpp"
#include "kinds/table/testing/random_pipeline.hpp"
#include "kinds/table/testing/run_checks.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kRowsMax = 700;

void run(const std::uint8_t* data, std::size_t size) {
  std::uint64_t seed = 0;
  if (size < sizeof seed) return;
  std::memcpy(&seed, data, sizeof seed);
  base::Random random(seed);
  const Schema schema = random_small_schema(random);
  const Pipeline pipeline = random_pipeline(random, schema);
  const std::span<const std::uint8_t> bytes(data + sizeof seed, size - sizeof seed);
  const std::size_t row_bytes = schema.row_bytes();
  const std::size_t rows = std::min(bytes.size() / row_bytes, kRowsMax);
  std::vector<std::byte> page(rows * row_bytes);  // exact, so that a byte too far is seen
  if (!page.empty()) std::memcpy(page.data(), bytes.data(), page.size());
  SeenInRuns seen;
  const std::string wrong = difference_of_runs(random, MemoryRows(schema, std::move(page)),
                                               pipeline, GroupTable::kBytesMin, seen);
  base::want(wrong.empty(), wrong.c_str());
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run(data, size);
  return 0;
}
