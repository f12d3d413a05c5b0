// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/apply_redo.hpp"

#include <utility>

#include "base/assert.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::hash {
namespace {

using catalog::RedoFault;

// No map takes so many, and behind it there are still as many to be taken.
constexpr std::uint64_t kRedoVersionMax = ~std::uint64_t{0} >> 1;

}  // namespace

Result<void> apply_redo(HashThread& thread, HashMap& map, std::string_view record) {
  ESPALIER_ASSERT(map.redo() == nullptr);  // the records of what is applied are there
  const auto redo = read_hash_redo(record, kValueBytesMax);
  if (!redo) return std::unexpected(redo.error());
  if (redo->map != map.id()) return catalog::corrupt(RedoFault::object);
  if ((redo->version != 0) != map.versions || redo->version > kRedoVersionMax) {
    return catalog::corrupt(RedoFault::version);
  }
  if (map.is_dropped()) return {};
  if (redo->op == RedoOp::invalid) {
    map.clock().go_on_above(redo->version);
    return {};
  }
  if (map.versions) map.clock().go_on_above(redo->version - 1);
  const WriteOp op = redo->op == RedoOp::erase ? WriteOp::erase : WriteOp::put;
  const auto written = map.write(thread, op, redo->key, redo->value);
  if (!written) return std::unexpected(written.error());
  if (map.versions) map.clock().go_on_above(redo->version);  // an erase of nothing takes none
  return {};
}

Result<std::shared_ptr<HashMap>> restore_hash_map(HashStore& store,
                                                  const catalog::CreatedObject& created) {
  wire::PayloadReader reader(created.form);
  const auto shape = reader.take<HashShape>();
  const std::string_view group = reader.rest();
  const bool good = reader.good() && !hash_calls::fault_of_shape(shape, group);
  if (!good) return catalog::corrupt(RedoFault::form);
  return store.catalog.restore<HashMap>(created, [&](std::uint32_t id, std::string own_name) {
    HashOptions options = options_of(shape, group);
    options.durability = created.durability;
    return make_hash_map(store, id, std::move(own_name), options);
  });
}

}  // namespace espalier::hash
