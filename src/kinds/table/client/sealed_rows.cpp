// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/sealed_rows.hpp"

#include <cstring>

#include "kinds/table/format/table.hpp"
#include "kinds/table/format/table_calls.hpp"

namespace espalier::client {

bool seal_rows(std::span<std::byte> rows, std::size_t row_bytes, std::string_view slots,
               table::CtrCipher& cipher) {
  const std::size_t most = (wire::kRowPageBytes - sizeof(wire::RowPageHeader)) / row_bytes;
  for (; !slots.empty(); slots.remove_prefix(sizeof(wire::ReservedSlots))) {
    wire::ReservedSlots some{};
    if (slots.size() < sizeof some) return false;
    std::memcpy(&some, slots.data(), sizeof some);
    const std::size_t bytes = some.slots * row_bytes;
    if (std::size_t{some.first_slot} + some.slots > most || bytes > rows.size()) return false;
    cipher.apply(some.cipher_page, sizeof(wire::RowPageHeader) + some.first_slot * row_bytes,
                 rows.data(), rows.data(), bytes);
    rows = rows.subspan(bytes);
  }
  return rows.empty();
}

}  // namespace espalier::client
