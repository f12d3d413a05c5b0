// SPDX-License-Identifier: Apache-2.0
// Any bytes as an encoded schema and as the text of one: either is refused with a reason, or gives
// a schema that keeps its promises and comes back, from bytes and from text, as the same.
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::table {
namespace {

using base::want;

void check_schema(const Schema& schema) {
  want(!schema.columns().empty() && schema.columns().size() <= wire::kColumnsMax, "columns");
  want(schema.row_bytes() % 8 == 0 && schema.row_bytes() <= wire::kRowBytesMax, "row bytes");
  std::uint32_t end = 0;
  for (const Column& column : schema.columns()) {
    want(is_valid(column.type), "a type");
    want(column.offset >= end, "columns that overlap");
    end = column.offset + column.bytes;
    want(column.nullable == (column.null_mask != 0), "a null bit");
    want(column.null_byte < schema.row_bytes(), "a null bit outside");
  }
  want(end + schema.null_bytes() <= schema.row_bytes(), "columns outside");

  std::vector<std::byte> bytes(schema.encoded_bytes());
  schema.encode(bytes);
  const auto decoded = Schema::decode(bytes);
  want(decoded && *decoded == schema, "bytes that do not come back");
  const auto parsed = Schema::parse(schema.to_text());
  want(parsed && *parsed == schema, "text that does not come back");
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::span bytes(data, size);
  if (const auto decoded = table::Schema::decode(std::as_bytes(bytes))) {
    table::check_schema(*decoded);
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = table::Schema::parse(text);
  if (parsed) {
    table::check_schema(*parsed);
  } else {
    base::want(parsed.error().position <= size && !parsed.error().reason.empty(), "an error");
  }
  return 0;
}
