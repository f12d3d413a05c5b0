// SPDX-License-Identifier: Apache-2.0
// Any text as a query: it is refused in words, at a position within it, or its pipeline is one.
#include <string>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "kinds/table/pipeline_message.hpp"
#include "sql/query.hpp"

namespace espalier::sql {
namespace {

using base::want;

void check_refusal(const SqlError& error, std::string_view text) {
  want(error.position <= text.size() && !error.reason.empty(), "a refusal");
}

void run_one(std::string_view text) {
  static const table::Schema schema = *table::Schema::parse(
      "a i32 not null, b decimal(12,2), c text(20), d double, e bool, f date, g timestamp");
  const auto statement = parse(text);
  if (!statement) return check_refusal(statement.error(), text);
  const auto query = translate(*statement, schema);
  if (!query) return check_refusal(query.error(), text);
  const auto message = table::decode_pipeline(query->message);
  want(message && !query->columns.empty(), "a pipeline");
}

}  // namespace
}  // namespace espalier::sql

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::sql::run_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
