// SPDX-License-Identifier: Apache-2.0
// Iterates over all items of a hash map, bin by bin, concurrently with writers.
//
// Each key has a place in one order that growth does not change: its partition, its bin's number,
// its hash (KeyHash::order), and among keys of one hash the key. So a walk can stop behind any item
// and resume later from its key alone, whatever was split meanwhile, and an item that is present
// throughout is delivered exactly once. Items that are inserted or erased meanwhile may be
// delivered, and none is delivered twice.
//
//   partition 0: bin 0 of each segment in the order of the directory, then bin 1 of each, ... 207
//   partition 1: ...
//
// Each item has the state that a get returns: its newest released one, at the moment at which the
// walk visits it. The items share no common version.
//
// Thread: one at a time, any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

/// The bytes are valid during the call that receives them.
struct WalkedItem {
  std::string_view key;
  std::string_view value;
  std::uint64_t version = 0;
};

class HashWalk {
 public:
  /// Begins behind a key, which need not exist; empty: at the beginning. Copies the key. Requires:
  /// the map outlives it; the key is no longer than keys are. Throws std::bad_alloc.
  explicit HashWalk(const HashMap& map, std::string_view after = {});

  [[nodiscard]] bool at_end() const { return place_.partition == map_.partitions().size(); }

  /// Visits one bin, and calls `take(const WalkedItem&)` for each of its items. If that returns
  /// false the walk stops behind that item, and step() returns false. `take` must not throw.
  /// Cost: a line, and for each item 2; writers of the bin that force kLooksMax restarts wait for
  /// the next look, under their partition's lock. Throws std::bad_alloc, and then the walk is over.
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
      after_.reserve(next.key.size());  // before it is taken, because then the walk is past it
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
    std::uint64_t order = 0;  // of a hash: where the walk resumes
  };
  struct Candidate {
    std::uint64_t order = 0;  // of its hash
    std::string_view key;
  };
  /// The items of a bin still to deliver, in order, except those erased since.
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
  std::string after_;  // the key behind which it resumes, of the hash of its place; empty: none
};

}  // namespace espalier::hash
