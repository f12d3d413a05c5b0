// SPDX-License-Identifier: Apache-2.0
#include "tree/write/apply_redo.hpp"

#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "tree/redo_record.hpp"
#include "tree/write/batch.hpp"

namespace espalier::tree {
namespace {

using catalog::RedoFault;

// No map takes so many, and behind it there are still as many to be taken.
constexpr std::uint64_t kVersionMax = ~std::uint64_t{0} >> 1;

Result<std::vector<BatchWrite>> read_writes(const MapRedo& redo, std::uint32_t key_bytes_max) {
  // No more than can follow, whatever the record says.
  if (redo.writes > kBatchWritesMax || redo.writes > redo.rest.size() / sizeof(WriteFields)) {
    return catalog::corrupt(RedoFault::count);
  }
  std::vector<BatchWrite> writes;
  writes.reserve(redo.writes);
  wire::PayloadReader reader(redo.rest);
  for (std::uint32_t i = 0; i < redo.writes; ++i) {
    const auto write = read_write(reader);
    if (!write) return std::unexpected(write.error());
    if (write->key.size() > key_bytes_max) return catalog::corrupt(RedoFault::key_bytes);
    writes.push_back({write->key, write->value, write->op == WriteOp::erase});
  }
  if (!reader.complete()) return catalog::corrupt(RedoFault::count);
  return writes;
}

}  // namespace

Result<void> apply_redo(ThreadContext& context, MapCore& map, std::string_view record) {
  ESPALIER_ASSERT(map.redo() == nullptr);  // the records of what is applied are there
  const auto redo = read_map_redo(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->map != map.id) return catalog::corrupt(RedoFault::object);
  if ((redo->version != 0) != map.options.versions || redo->version > kVersionMax) {
    return catalog::corrupt(RedoFault::version);
  }
  const auto writes = read_writes(*redo, map.geometry.key_bytes_max);
  if (!writes) return std::unexpected(writes.error());
  if (redo->type == RedoType::restructured) {
    map.clock.go_on_above(redo->version);
    return {};
  }
  if (map.options.versions) map.clock.go_on_above(redo->version - 1);
  const auto applied = apply_batch(context, map, *writes, {});
  if (!applied) return std::unexpected(applied.error());
  return {};
}

}  // namespace espalier::tree
