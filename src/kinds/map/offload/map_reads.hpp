// SPDX-License-Identifier: Apache-2.0
// What READs by a map's shared keys bring (fabric/shared_map.hpp): the beginning of one node, as it
// was at one moment, or zeros.
//
// A node is copied inside an epoch and looked at again behind its last byte: so what comes needs no
// second READ to be believed, whoever named the address, and tables in switches hold no memory. A
// buffer is believed to be one by the pool's own table; what a READ says is only looked up there.
//
// A map that is dropped brings zeros from then on.
//
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
  /// `prefix`: what the numbers of keys leave out (dataplane/key_number.hpp). `counts`: of the
  /// node; null: nothing is counted. The store and the counts outlive it; the map need not.
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
  /// Returns whether a node came. `find` says within the epoch where it begins.
  template <class Find>
  bool answer(std::span<std::byte> into, const Find& find);
  static bool copy(const tree::MapCore& map, std::uint64_t offset, std::span<std::byte> into);

  const std::weak_ptr<const tree::MapCore> map_;
  const std::string prefix_;
  std::mutex mutex_;  // of the slot
  base::EpochSlot slot_;
  IndexReadCounts* const counts_;
};

}  // namespace espalier::offload
