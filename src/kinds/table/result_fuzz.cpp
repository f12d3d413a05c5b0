// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the rows that a node sends for a query: the client merges them to no more rows
// than came, whatever they are, takes none beyond the limit, and can give every value.
//
// Input: 8 bytes, from which schema and pipeline are drawn; then chunks, each behind a byte that
// says how many rows it has.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "base/testing/fuzz_input.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

using base::want;

void read_values(const Pipeline& pipeline, const std::byte* row) {
  for (const Item& item : pipeline.items) {
    const Value value = answer_value(pipeline, item, row);
    want(!to_text(value, answer_type(item)).empty() || !value.null, "a null without a word");
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  std::uint64_t seed = 0;
  if (size < sizeof seed) return;
  std::memcpy(&seed, data, sizeof seed);
  base::Random random(seed);
  const Pipeline pipeline = random_pipeline(random, random_small_schema(random));
  const std::size_t row_bytes = pipeline.result.row_bytes();
  ResultMerge merge(pipeline, random());
  std::span<const std::uint8_t> left(data + sizeof seed, size - sizeof seed);
  std::uint64_t came = 0;
  std::uint64_t taken = 0;
  while (!left.empty()) {
    const std::size_t wanted = left[0];
    left = left.subspan(1);
    const std::size_t rows = std::min(wanted, left.size() / row_bytes);
    std::vector<std::byte> chunk(rows * row_bytes);  // exact, so that a byte too far is seen
    if (!chunk.empty()) std::memcpy(chunk.data(), left.data(), chunk.size());
    left = left.subspan(chunk.size());
    came += rows;
    const std::size_t of_answer = merge.take(chunk);
    if (!merge.is_streaming()) continue;
    want(of_answer <= rows, "more rows than came");
    taken += of_answer;
    for (std::size_t i = 0; i < of_answer; ++i) read_values(pipeline, chunk.data() + i * row_bytes);
  }
  if (merge.is_streaming()) {
    want(!pipeline.limit || taken <= *pipeline.limit, "rows beyond the limit");
    return;
  }
  const bool one_always = pipeline.grouped && pipeline.keys == 0;
  want(merge.size() <= came + (one_always ? 1 : 0), "more rows than came");
  for (std::size_t i = 0; i < merge.size(); ++i) read_values(pipeline, merge.row(i));
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run(data, size);
  return 0;
}
