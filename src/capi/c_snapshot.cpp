// SPDX-License-Identifier: Apache-2.0
// Of the C API: a map as it was.
#include "capi/c_handles.hpp"

namespace c = espalier::client::c;
using espalier::Result;

espalier_code espalier_snapshot_open(const espalier_map* map, espalier_snapshot** snapshot) {
  return c::run(__func__, {c::given(map, "map"), c::given(snapshot, "snapshot")},
                [&]() -> Result<void> {
                  auto taken = map->map.snapshot();
                  if (!taken) return std::unexpected(taken.error());
                  *snapshot = new espalier_snapshot{c::Use(map->uses), std::move(*taken)};
                  return {};
                });
}

void espalier_snapshot_close(espalier_snapshot* snapshot) { delete snapshot; }

espalier_code espalier_snapshot_version(const espalier_snapshot* snapshot,
                                        espalier_version_number* version) {
  return c::run(__func__, {c::given(snapshot, "snapshot"), c::given(version, "version")},
                [&]() -> Result<void> {
                  *version = snapshot->snapshot.version();
                  return {};
                });
}

espalier_code espalier_snapshot_get(const espalier_snapshot* snapshot, espalier_bytes key,
                                    espalier_item* item, uint32_t* found) {
  return c::run(
      __func__,
      {c::given(snapshot, "snapshot"), c::good(key, "key"), c::given(item, "item"),
       c::given(found, "found")},
      [&]() -> Result<void> {
        auto result = snapshot->snapshot.get(c::view(key));
        if (!result) return std::unexpected(result.error());
        std::optional<espalier::FoundItem> there;
        if (*result) {
          there = {std::string(c::view(key)), std::move((*result)->value), (*result)->version};
        }
        c::take(std::move(there), *item, *found);
        return {};
      });
}

espalier_code espalier_snapshot_floor(const espalier_snapshot* snapshot, espalier_bytes key,
                                      espalier_item* item, uint32_t* found) {
  return c::run(__func__,
                {c::given(snapshot, "snapshot"), c::good(key, "key"), c::given(item, "item"),
                 c::given(found, "found")},
                [&] {
                  auto result = snapshot->snapshot.floor(c::view(key));
                  if (result) c::take(std::move(*result), *item, *found);
                  return result;
                });
}

espalier_code espalier_snapshot_scan(const espalier_snapshot* snapshot, espalier_bytes low,
                                     espalier_bytes high, const espalier_scan_options* options,
                                     espalier_items_fn visit, void* context, uint64_t* count) {
  return c::run(
      __func__,
      {c::given(snapshot, "snapshot"), c::good(low, "low"), c::good(high, "high"),
       c::good_scan(options), c::given(visit, "visit")},
      [&] { return c::scan(snapshot->snapshot, low, high, options, visit, context, count); });
}
