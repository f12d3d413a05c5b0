// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to one_sided_table: nothing behind them is read, and a place
// that is made of them lies in the region.
//
// Input: the fields.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "kinds/table/client/table_opening.hpp"

namespace espalier::client {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const auto opening = TableOpening::read({exact.get(), size});
  if (!opening) {
    want(opening.error().code == Code::corrupt, "refused as something else");
    return;
  }
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
