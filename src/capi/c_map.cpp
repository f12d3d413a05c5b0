// SPDX-License-Identifier: Apache-2.0
// Of the C API: what is asked of a map, one call at a time.
#include <optional>
#include <string_view>

#include "capi/c_handles.hpp"
#include "channel/public_call.hpp"
#include "kinds/map/client/map_impl.hpp"
#include "wire/object.hpp"

namespace c = espalier::client::c;
using espalier::Result;
using espalier::Written;
using espalier::client::call;
using espalier::client::MapImpl;

namespace {

Result<Written> answer(const Result<Written>& result, espalier_written* written) {
  if (result && written != nullptr) {
    *written = {result->version, result->applied ? 1u : 0u, result->existed ? 1u : 0u};
  }
  return result;
}

Result<std::uint64_t> answer(const Result<std::uint64_t>& result, std::uint64_t* number) {
  if (result && number != nullptr) *number = *result;
  return result;
}

c::Check good_bytes(const espalier_bytes* bytes, const char* argument) {
  return bytes == nullptr ? c::Check{} : c::good(*bytes, argument);
}

std::optional<std::string_view> view(const espalier_bytes* bytes) {
  return bytes == nullptr ? std::nullopt : std::optional(c::view(*bytes));
}

}  // namespace

espalier_code espalier_map_get_options(const espalier_map* map, espalier_map_options* options) {
  return c::run(__func__,
                {c::given(map, "map"), c::given(options, "options"), c::sized(options, "options")},
                [&]() -> Result<void> {
                  const espalier::MapOptions& made_of = map->map.options();
                  c::fill(options, {sizeof *options, made_of.node_bytes, made_of.log_bytes,
                                    made_of.versions ? 1u : 0u, made_of.snapshot_bytes_max,
                                    espalier::wire::number_of(made_of.durability), 0,
                                    c::bytes_of(made_of.group)});
                  return {};
                });
}

espalier_code espalier_map_key_bytes_max(const espalier_map* map, uint32_t* bytes) {
  return c::run(__func__, {c::given(map, "map"), c::given(bytes, "bytes")}, [&]() -> Result<void> {
    *bytes = map->map.max_key_bytes();
    return {};
  });
}

espalier_code espalier_map_get_stats(const espalier_map* map, espalier_map_stats* stats) {
  return c::run(__func__,
                {c::given(map, "map"), c::given(stats, "stats"), c::sized(stats, "stats")},
                [&]() -> Result<void> {
                  const auto now = map->map.stats();
                  if (!now) return std::unexpected(now.error());
                  c::fill(stats, {.struct_bytes = sizeof *stats,
                                  .height = now->height,
                                  .items = now->items,
                                  .leaves = now->leaves,
                                  .interior_nodes = now->interior_nodes,
                                  .node_bytes = now->node_bytes,
                                  .value_bytes = now->value_bytes,
                                  .retired_bytes = now->retired_bytes,
                                  .log_merges = now->log_merges,
                                  .splits = now->splits,
                                  .redistributions = now->redistributions,
                                  .merges = now->merges,
                                  .read_version = now->read_version,
                                  .write_version = now->write_version,
                                  .snapshots = now->snapshots});
                  return {};
                });
}

espalier_code espalier_map_get(const espalier_map* map, espalier_bytes key, espalier_item* item,
                               uint32_t* found) {
  return c::run(
      __func__,
      {c::given(map, "map"), c::good(key, "key"), c::given(item, "item"), c::given(found, "found")},
      [&]() -> Result<void> {
        // Straight into the item, whose room is used again. The key may lie in it.
        item->asked.assign(c::view(key));
        espalier::Version version = 0;
        MapImpl& behind = MapImpl::of(map->map);
        const auto there =
            call(behind, [&] { return behind.get(item->asked, item->value, version); });
        if (!there) return std::unexpected(there.error());
        *found = *there ? 1 : 0;
        if (!*there) item->value.clear();
        if (!*there) item->asked.clear();
        item->key.swap(item->asked);
        item->version = version;
        return {};
      });
}

espalier_code espalier_map_floor(const espalier_map* map, espalier_bytes key, espalier_item* item,
                                 uint32_t* found) {
  return c::run(
      __func__,
      {c::given(map, "map"), c::good(key, "key"), c::given(item, "item"), c::given(found, "found")},
      [&] {
        auto result = map->map.floor(c::view(key));
        if (result) c::take(std::move(*result), *item, *found);
        return result;
      });
}

espalier_code espalier_map_put(espalier_map* map, espalier_bytes key, espalier_bytes value,
                               espalier_written* written) {
  return c::run(__func__, {c::given(map, "map"), c::good(key, "key"), c::good(value, "value")},
                [&] { return answer(map->map.put(c::view(key), c::view(value)), written); });
}

espalier_code espalier_map_insert(espalier_map* map, espalier_bytes key, espalier_bytes value,
                                  espalier_written* written) {
  return c::run(__func__, {c::given(map, "map"), c::good(key, "key"), c::good(value, "value")},
                [&] { return answer(map->map.insert(c::view(key), c::view(value)), written); });
}

espalier_code espalier_map_update(espalier_map* map, espalier_bytes key, espalier_bytes value,
                                  espalier_written* written) {
  return c::run(__func__, {c::given(map, "map"), c::good(key, "key"), c::good(value, "value")},
                [&] { return answer(map->map.update(c::view(key), c::view(value)), written); });
}

espalier_code espalier_map_erase(espalier_map* map, espalier_bytes key, espalier_written* written) {
  return c::run(__func__, {c::given(map, "map"), c::good(key, "key")},
                [&] { return answer(map->map.erase(c::view(key)), written); });
}

espalier_code espalier_map_compare_and_set(espalier_map* map, espalier_bytes key,
                                           const espalier_bytes* expected,
                                           const espalier_bytes* desired,
                                           espalier_written* written) {
  return c::run(__func__,
                {c::given(map, "map"), c::good(key, "key"), good_bytes(expected, "expected"),
                 good_bytes(desired, "desired")},
                [&] {
                  return answer(
                      map->map.compare_and_set(c::view(key), view(expected), view(desired)),
                      written);
                });
}

espalier_code espalier_map_add(espalier_map* map, espalier_bytes key, uint64_t amount,
                               uint64_t* sum) {
  return c::run(__func__, {c::given(map, "map"), c::good(key, "key")},
                [&] { return answer(map->map.add(c::view(key), amount), sum); });
}

espalier_code espalier_map_scan(const espalier_map* map, espalier_bytes low, espalier_bytes high,
                                const espalier_scan_options* options, espalier_items_fn visit,
                                void* context, uint64_t* count) {
  return c::run(__func__,
                {c::given(map, "map"), c::good(low, "low"), c::good(high, "high"),
                 c::good_scan(options), c::given(visit, "visit")},
                [&] { return c::scan(map->map, low, high, options, visit, context, count); });
}

espalier_code espalier_map_count(const espalier_map* map, espalier_bytes low, espalier_bytes high,
                                 uint64_t* count) {
  return c::run(
      __func__,
      {c::given(map, "map"), c::good(low, "low"), c::good(high, "high"), c::given(count, "count")},
      [&] { return answer(map->map.count(c::view(low), c::view(high)), count); });
}

espalier_code espalier_map_count_estimate(const espalier_map* map, espalier_bytes low,
                                          espalier_bytes high, uint64_t* count) {
  return c::run(
      __func__,
      {c::given(map, "map"), c::good(low, "low"), c::good(high, "high"), c::given(count, "count")},
      [&] { return answer(map->map.count_estimate(c::view(low), c::view(high)), count); });
}

espalier_code espalier_map_write(espalier_map* map, const espalier_batch* batch,
                                 espalier_written* written) {
  return c::run(__func__, {c::given(map, "map"), c::given(batch, "batch")},
                [&] { return answer(map->map.write(batch->batch), written); });
}
