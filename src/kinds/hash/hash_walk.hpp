// SPDX-License-Identifier: Apache-2.0
// All items of a hash map, bin by bin, while others write.
//
// Each key has a place in one order that growth does not change: its partition, its bin's number,
// its hash (KeyHash::order), and among keys of one hash the key. So a walk can stop behind any item
// and go on later from its key alone, whoever split what meanwhile, and an item that is there all
// the time comes exactly once. Items that come or go meanwhile may come, and none comes twice.
//
//   partition 0: bin 0 of each segment in the order of the directory, then bin 1 of each, ... 207
//   partition 1: ...
//
// Each item is answered as a get answers it: its newest released state, at the moment when the walk
// comes by. There is no one version for all of them.
//
// Thread: one at a time, any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

/// The bytes are good during the call that is given them.
struct WalkedItem {
  std::string_view key;
  std::string_view value;
  std::uint64_t version = 0;
};

class HashWalk {
 public:
  /// Begins behind a key, which need not be there; behind none: at the beginning. Copies the key.
  /// Requires: the map outlives it; the key is no longer than keys are. Throws std::bad_alloc.
  explicit HashWalk(const HashMap& map, std::string_view after = {});

  [[nodiscard]] bool at_end() const { return place_.partition == map_.partitions().size(); }

  /// Goes over one bin, and calls `take(const WalkedItem&)` for each item of it. Where that returns
  /// false the walk ends behind that item. Returns false then. `take` must not throw.
  /// Cost: a line, and of each item 2; writers of the bin that have it begin again kLooksMax times
  /// wait for the next look, under their partition's lock. Throws std::bad_alloc, and then the walk
  /// is over.
  /// Requires: not at_end(); the thread exposes no epoch.
  template <class Take>
  bool step(HashThread& thread, const Take& take) {
    const ExposedEpoch exposed(thread);
    Bin bin;
    gather(thread, bin);
    for (std::uint32_t i = 0; i < bin.count; ++i) {
      const Candidate& next = bin.items[i];
      const KeyHash hash = KeyHash::of_order(next.order, map_.partition_bits);
      const HashAnswer answer = HashReader::get_exposed(map_, thread, next.key, hash);
      if (!answer.found) continue;
      after_.reserve(next.key.size());  // before it is taken, for then the walk goes on behind it
      if (take(WalkedItem{next.key, answer.value, answer.version})) continue;
      after_.assign(next.key);
      place_.order = next.order;
      return false;
    }
    leave(bin);
    return true;
  }

 private:
  struct Place {
    std::uint32_t partition = 0;
    std::uint32_t bin = 0;
    std::uint64_t order = 0;  // of a hash: where the walk goes on
  };
  struct Candidate {
    std::uint64_t order = 0;  // of its hash
    std::string_view key;
  };
  /// The items of a bin that are to come, in order, as far as they were not erased since.
  struct Bin {
    Candidate items[kChainMax * kSlotsPerBucket];
    std::uint32_t count = 0;
    std::uint64_t last = 0;  // hashes up to this one in order were in it
  };

  void gather(HashThread& thread, Bin& bin) const;
  [[nodiscard]] bool try_gather(Bin& bin) const;
  [[nodiscard]] bool take_slots(const BinPlace& from, Slot* slots, std::uint32_t& count) const;
  [[nodiscard]] bool is_behind(const Candidate& item) const;
  void leave(const Bin& bin);

  const HashMap& map_;
  Place place_;
  std::string after_;  // the key behind which it goes on, of the hash of its place; empty: none
};

}  // namespace espalier::hash
