// SPDX-License-Identifier: Apache-2.0
// Hash maps out of their records.
#include "catalog/apply_record.hpp"
#include "engine/redo_target.hpp"
#include "kinds/hash/apply_redo.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/offload/hash_copy.hpp"
#include "kinds/hash/offload/hash_offloads.hpp"
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

}  // namespace

const KindRedo kHashRedo{restore_a_hash_map, apply_to_a_hash_map, copy_a_hash_map};

}  // namespace espalier::offload
