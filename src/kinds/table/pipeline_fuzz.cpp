// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pipeline over one table with every type: it is refused in words, or both executors
// agree on it.
//
// The first byte chooses the room of the sink and the steps.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/testing/fuzz_input.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/reference.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/testing/literal_regexes.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

using base::want;

const MemoryRows& rows() {
  static const MemoryRows rows = [] {
    base::Random random(1);
    const Schema schema = *Schema::parse(
        "a i8, b i16 not null, c i32, d i64, e float, f double, g decimal(12,2), h date,"
        " i timestamp, j bool, k char(5), l text(9), m text(100) not null, n decimal(18,9)");
    return random_small_rows(random, schema, 300, 3);
  }();
  return rows;
}

/// The whole answer, or the error.
struct Answer {
  std::string error;
  std::vector<std::byte> rows;
};

Answer answer_of(const BatchProgram& program, std::uint8_t choice) {
  MemorySource source(rows(), 100);
  MemorySink sink(program.pipeline().result.row_bytes() * std::size_t{1u + choice % 16});
  BatchRun run(program, source, sink, {GroupTable::kBytesMin, choice});
  RunState state = RunState::running;
  while (state == RunState::running || state == RunState::stalled) {
    state = run.step(1u + choice);
    if (state == RunState::stalled) sink.give_room();
  }
  if (state == RunState::failed) return {run.error().message(), {}};
  ResultMerge merge(program.pipeline(), 2);
  const std::size_t taken = merge.take(sink.rows());
  const std::size_t row_bytes = program.pipeline().result.row_bytes();
  if (merge.is_streaming()) {
    const auto all = sink.rows().first(taken * row_bytes);
    return {"", {all.begin(), all.end()}};
  }
  Answer answer;
  for (std::size_t i = 0; i < merge.size(); ++i) {
    answer.rows.insert(answer.rows.end(), merge.row(i), merge.row(i) + row_bytes);
  }
  // Sums of reals of partial groups are rounded otherwise: only their number is compared.
  if (run.numbers().flushes != 0) answer.rows.assign(answer.rows.size(), std::byte{0});
  if (run.numbers().unsure_rows != 0 && program.pipeline().limit) answer.error = "unsure";
  return answer;
}

void run_one(std::span<const std::uint8_t> data) {
  if (data.empty()) return;
  const std::uint8_t choice = data[0];
  const auto bytes = std::as_bytes(data.subspan(1));
  const auto message = decode_pipeline(bytes);
  if (!message) {
    want(!message.error().message().empty(), "a refusal without words");
    return;
  }
  const std::vector<std::byte> again = encode_pipeline(*message);
  want(again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), again.size()) == 0,
       "decoded and encoded, it has other bytes");
  auto pipeline = check_pipeline(*message, rows().schema());
  if (!pipeline) {
    want(!pipeline.error().message().empty(), "a refusal without words");
    return;
  }
  // The rows here are plain.
  pipeline->decrypt = false;
  LiteralRegexes regexes;
  want(compile_regexes(*pipeline, regexes).has_value(), "a refusal of a literal");
  MemorySource source(rows());
  const auto expected = run_reference(*pipeline, source);
  const BatchProgram program(*std::move(pipeline));
  const Answer found = answer_of(program, choice);
  if (found.error == "unsure") return;
  want(found.error == (expected ? "" : expected.error().message()), "other errors");
  if (!expected) return;
  want(found.rows.size() == expected->rows.size(), "another number of rows");
  const bool compared = found.rows.empty() || std::ranges::all_of(found.rows, [](std::byte b) {
                          return b == std::byte{0};
                        });
  want(compared || found.rows == expected->rows, "other rows");
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run_one({data, size});
  return 0;
}
