// SPDX-License-Identifier: Apache-2.0
// Any bytes as the text of tables: either they are refused with a line and a reason, or lookups in
// them stay inside, and they come back as the same.
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "dataplane/table_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = dataplane::parse_tables(text);
  if (!parsed) {
    base::want(!parsed.error().reason.empty() && parsed.error().line <= size + 1, "a fault");
    return 0;
  }
  base::want(dataplane::check(*parsed), "tables that are good");
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{size}, ~std::uint64_t{0}}) {
    const auto found = parsed->ways.empty() ? dataplane::Found{} : dataplane::find(*parsed, key);
    base::want(found.sets <= parsed->sets.size(), "a lookup");
    const bool leads_on = found.next != dataplane::kNoNode && !parsed->ways.empty();
    base::want(!leads_on || found.next < parsed->beyond, "a node beyond");
  }
  const auto again = dataplane::parse_tables(dataplane::to_text(*parsed));
  base::want(again && *again == *parsed, "tables that come back");
  return 0;
}
