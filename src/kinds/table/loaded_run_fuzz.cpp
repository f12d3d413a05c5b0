// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the run of a loaded pipeline: they are refused, or come back as they were, and
// what they make of a pipeline is one, or is refused.
//
// Input: the run.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/pipeline_builder.hpp"

namespace espalier::table {
namespace {

using base::want;

const PipelineMessage& loaded() {
  static const PipelineMessage message = [] {
    PipelineBuilder builder;
    builder.filter(builder.binary(wire::ExpressionKind::less, builder.column(0),
                                  builder.constant(integer_constant(10))));
    builder.filter(builder.like(builder.column(1), text_constant("a%")));
    const PipelineBuilder::NodeId items[] = {builder.column(0),
                                             builder.constant(text_constant("b"))};
    builder.project(items);
    return builder.message();
  }();
  return message;
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::span<const std::byte> bytes(exact.get(), size);
  const auto decoded = decode_loaded_run(bytes);
  if (!decoded) {
    want(!decoded.error().message().empty(), "refused without a word");
    return;
  }
  want(is_loaded_run(bytes), "a run that is none");
  const std::vector<std::byte> again = encode_loaded_run(decoded->pipeline, decoded->constants);
  const auto same = decode_loaded_run(again);
  want(same && same->pipeline == decoded->pipeline &&
           same->constants.heap == decoded->constants.heap &&
           same->constants.values.size() == decoded->constants.values.size(),
       "a run that came back as another");
  const auto message = with_constants(loaded(), decoded->constants);
  if (!message) return;
  const auto schema = Schema::parse("a i64, b text(9)");
  const auto pipeline = check_pipeline(*message, *schema);
  if (!pipeline) return;
  // Where one ends in a blank, all of them are there again without.
  const std::size_t constants = pipeline->constants.size();
  want((constants == 3 || constants == 6) && pipeline->items.size() == 2, "another pipeline");
  for (const Constant& constant : pipeline->constants) {
    want(constant.text.size() <= wire::kConstantTextBytesMax, "a text that is too long");
  }
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run(data, size);
  return 0;
}
