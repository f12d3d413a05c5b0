// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to one_sided_table: nothing behind them is read, unknown
// fields change nothing, and a place that is made of them lies in the region.
//
// Input: the fields.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "kinds/table/client/table_opening.hpp"

namespace espalier::client {
namespace {

using base::want;

bool alike(const TableOpening& a, const TableOpening& b) {
  return base::bytes_of(a.region) == base::bytes_of(b.region) &&
         base::bytes_of(a.table) == base::bytes_of(b.table) &&
         base::bytes_of(a.lease) == base::bytes_of(b.lease);
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view payload(exact.get(), size);
  const auto opening = TableOpening::read(payload);
  wire::FieldHeader unknown{};
  unknown.kind = 0x7FFF;
  unknown.bytes = 3;
  std::string more(base::bytes_of(unknown));
  more += std::string("new") + std::string(5, 0);
  more += payload;
  const auto again = TableOpening::read(more);
  want(again.has_value() == opening.has_value(), "an unknown field changed something");
  if (!opening) {
    want(opening.error().code == Code::corrupt, "refused as something else");
    return;
  }
  want(alike(*opening, *again), "an unknown field changed something");
  if (const auto table = opening->place_of(opening->table.table_id)) {
    want(table->header_offset < opening->region.bytes &&
             opening->region.bytes - table->header_offset >= wire::kTableHeaderBytes,
         "a table outside of the region");
    want(!opening->place_of(table->table_id + 1), "a table that was not asked for");
  }
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
