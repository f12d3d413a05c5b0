// SPDX-License-Identifier: Apache-2.0
// Copies a hash map as records: the put of each item that a walk delivers, then the version above
// which its clock continues.
#include "kinds/hash/offload/hash_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "catalog/catalog.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "kinds/hash/hash_thread_lease.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/hash/hash_walk.hpp"
#include "kinds/hash/redo_record.hpp"

namespace espalier::offload {
namespace {

/// All versions taken before it began are released before it reads the first bin, so the copy has
/// every item that has not changed since.
class HashCopy final : public ObjectCopy {
 public:
  explicit HashCopy(std::shared_ptr<hash::HashMap> map)
      : map_(std::move(map)), wait_for_(map_->clock().taken()), walk_(*map_) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    if (map_->is_dropped()) return CopyStep::done;
    const bool is_visible = map_->clock().released_now() >= wait_for_;
    if (!is_visible && !planted(Bug::copy_waits_for_nothing)) return CopyStep::wait;
    const auto lease = hash::HashThreadLease::take(map_->store().threads);
    if (!lease) return std::unexpected(lease.error());
    // An item without memory is lost to the walk, and so is the copy (CopyPiece::starved).
    const auto take = [&](const hash::WalkedItem& item) {
      const auto room = piece.add(hash::written_bytes(item.key, item.value));
      if (room.empty()) return false;
      hash::write_written(room, map_->id(), item.version, hash::RedoOp::put, item.key, item.value);
      return !piece.full();
    };
    while (!walk_.at_end()) {
      if (!walk_.step(**lease, take) || piece.full()) return CopyStep::more;
    }
    add_version(piece);
    return CopyStep::done;
  }

 private:
  void add_version(CopyPiece& piece) {
    const std::uint64_t version = map_->clock().taken();
    if (version == 0) return;
    const auto room = piece.add(sizeof(hash::HashCountedRecord));
    if (!room.empty()) hash::write_counted(room, map_->id(), version);
  }

  const std::shared_ptr<hash::HashMap> map_;
  const std::uint64_t wait_for_;
  hash::HashWalk walk_;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_a_hash_map(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  auto map = std::static_pointer_cast<hash::HashMap>(entry->object);
  if (!map->versions) return fail(Code::unsupported, entry->id);
  return std::make_unique<HashCopy>(std::move(map));
}

}  // namespace espalier::offload
