// SPDX-License-Identifier: Apache-2.0
// Of the C API: items, and what scans of all kinds have in common.
#include "capi/c_handles.hpp"

namespace espalier::client::c {

Check good_scan(const espalier_scan_options* options) {
  const Check size = sized(options, sizeof(espalier_scan_options), "options");
  if (size.complaint != nullptr) return size;
  const espalier_scan_options known = taken(options, ESPALIER_SCAN_OPTIONS_INIT);
  for (const Check& check :
       {either(known.reverse, "options.reverse"), either(known.from_floor, "options.from_floor")}) {
    if (check.complaint != nullptr) return check;
  }
  return {};
}

void take(std::optional<FoundItem>&& found, espalier_item& item, std::uint32_t& there) {
  there = found ? 1 : 0;
  if (!found) found.emplace();
  item.key = std::move(found->key);
  item.value = std::move(found->value);
  item.version = found->version;
}

}  // namespace espalier::client::c

namespace c = espalier::client::c;

espalier_code espalier_item_create(espalier_item** item) {
  return c::run(__func__, {c::given(item, "item")}, [&]() -> espalier::Result<void> {
    *item = new espalier_item;
    return {};
  });
}

void espalier_item_destroy(espalier_item* item) { delete item; }

espalier_bytes espalier_item_key(const espalier_item* item) {
  return item == nullptr ? espalier_bytes{nullptr, 0} : c::bytes_of(item->key);
}

espalier_bytes espalier_item_value(const espalier_item* item) {
  return item == nullptr ? espalier_bytes{nullptr, 0} : c::bytes_of(item->value);
}

espalier_version_number espalier_item_version(const espalier_item* item) {
  return item == nullptr ? 0 : item->version;
}
