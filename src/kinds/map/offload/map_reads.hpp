// SPDX-License-Identifier: Apache-2.0
// Serves READs by a map's shared region keys (fabric/shared_map.hpp): each returns the beginning of
// one node, as of one moment, or zeros.
//
// A node is copied inside an epoch and checked again behind its last byte. So the result needs no
// confirming READ, whatever its address, and tables in switches keep no memory alive. The pool's
// own table decides whether a buffer begins at an address; addresses in READs are only looked up
// there.
//
// READs of a dropped map return zeros.
// Thread: any; one READ at a time, the others wait.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/epoch.hpp"
#include "fabric/shared_map.hpp"
#include "kinds/map/offload/index_reads.hpp"

namespace espalier::tree {
class MapCore;
struct StoreCore;
}  // namespace espalier::tree

namespace espalier::offload {

class MapReads final : public fabric::SharedReads {
 public:
  /// `prefix`: what key numbers omit (dataplane/key_number.hpp). `counts`: of the node; null: not
  /// counted. The store and the counts outlive it; the map need not.
  /// Errors: too_many_participants, system.
  static Result<std::shared_ptr<MapReads>> create(tree::StoreCore& store,
                                                  std::weak_ptr<const tree::MapCore> map,
                                                  std::string prefix,
                                                  IndexReadCounts* counts = nullptr);

  /// Cost: a descent, and a copy.
  void read_keyed(std::uint64_t number, std::span<std::byte> into) override;
  void read_at(std::uint64_t offset, std::span<std::byte> into) override;

 private:
  MapReads(std::weak_ptr<const tree::MapCore> map, std::string prefix, base::EpochSlot slot,
           IndexReadCounts* counts);
  /// Returns whether a node was copied. `find` returns, within the epoch, where it begins.
  template <class Find>
  bool answer(std::span<std::byte> into, const Find& find);
  static bool copy(const tree::MapCore& map, std::uint64_t offset, std::span<std::byte> into);

  const std::weak_ptr<const tree::MapCore> map_;
  const std::string prefix_;
  std::mutex mutex_;  // guards slot_
  base::EpochSlot slot_;
  IndexReadCounts* const counts_;
};

}  // namespace espalier::offload
