// SPDX-License-Identifier: Apache-2.0
// Items as messages carry them: a header, the key, the value, each behind the one before. Those of
// maps, and the lists of objects.
#pragma once

#include <string_view>

#include "wire/message.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::wire {

/// Takes the first item off `payload`: key, value and version. Returns false if there is no whole
/// one.
template <class Item>
[[nodiscard]] bool take_item(std::string_view& payload, Item& item) {
  PayloadReader reader(payload);
  const auto header = reader.take<ItemHeader>();
  item.key = reader.text(header.key_bytes);
  item.value = reader.text(header.value_bytes);
  item.version = header.version;
  if (!reader.good()) return false;
  payload = reader.rest();
  return true;
}

}  // namespace espalier::wire
