// SPDX-License-Identifier: Apache-2.0
// Recreates hash maps from their records.
#include <string>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/redo_effect.hpp"
#include "catalog/transaction_part.hpp"
#include "engine/redo_target.hpp"
#include "kinds/hash/apply_redo.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/offload/hash_copy.hpp"
#include "kinds/hash/offload/hash_offloads.hpp"
#include "kinds/hash/redo_record.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Result<void> restore_a_hash_map(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made =
      hash::restore_hash_map(hash::hash_store_of(target.services().catalog()), created);
  return made ? Result<void>() : std::unexpected(made.error());
}

Result<void> apply_to_a_hash_map(RedoTarget& target, const catalog::RedoHead& head,
                                 std::string_view record) {
  return catalog::apply_to<hash::HashMap>(
      target.services().catalog(), head.object, [&](hash::HashMap& map) -> Result<void> {
        const auto lease = hash::HashThreadLease::take(map.store().threads);
        if (!lease) return std::unexpected(lease.error());
        return hash::apply_redo(**lease, map, record);
      });
}

Result<void> describe_a_hash_write(std::string_view record, const TakeEffect& take) {
  const auto redo = hash::read_hash_redo(record, hash::kValueBytesMax);
  if (!redo) return std::unexpected(redo.error());
  const bool erases = redo->op == hash::RedoOp::erase;
  const catalog::RedoNumber numbers[] = {{"version", redo->version},
                                         {"value_bytes", redo->value.size()}};
  take({erases ? "erase" : "put", redo->key, std::span(numbers).first(erases ? 1 : 2)});
  return {};
}

Result<std::uint64_t> steps_of_a_hash_write(std::string_view record,
                                            std::vector<catalog::TransactionStep>& to) {
  const auto redo = hash::read_hash_redo(record, hash::kValueBytesMax);
  if (!redo) return std::unexpected(redo.error());
  if (redo->op == hash::RedoOp::invalid) return catalog::corrupt(catalog::RedoFault::type);
  const bool erases = redo->op == hash::RedoOp::erase;
  to.push_back(
      {erases ? catalog::StepKind::erase : catalog::StepKind::put, redo->key, redo->value, {}});
  return redo->version;
}

std::vector<std::string> audit_a_hash_map(catalog::Object& object) {
  auto& map = static_cast<hash::HashMap&>(object);
  map.trim();
  return hash::audit(map).wrong;
}

}  // namespace

const KindRedo kHashRedo{.restore = restore_a_hash_map,
                         .apply = apply_to_a_hash_map,
                         .versions_record = {sizeof(hash::HashCountedRecord), hash::write_counted},
                         .describe = describe_a_hash_write,
                         .audit = audit_a_hash_map,
                         .copy = copy_a_hash_map,
                         .steps = steps_of_a_hash_write};

}  // namespace espalier::offload
