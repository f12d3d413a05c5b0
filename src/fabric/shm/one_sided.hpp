// SPDX-License-Identifier: Apache-2.0
// READ, WRITE and atomics on the memory of the peer, as loads and stores of this thread.
//
// The kernel prevents stores through a mapping that was granted read-only. This side, the
// requester, checks all else itself: the key before and after, the range, the rights. A malicious
// peer that skips these checks reaches what the mapping covers, and no more.
//
// Invariants
// I1. A READ that completes as a success has read while its key was good, or brings zeros
//     throughout: its key is void. Until it completes, the memory that it fills may hold anything.
//     A WRITE may be one whose key was revoked or made void in the middle of it: a store cannot be
//     undone.
//
// Thread: that of the queue pair's endpoint.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "base/prefetch.hpp"
#include "fabric/placed_write.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/queue_pair.hpp"
#include "fabric/shared_copy.hpp"
#include "fabric/shm/mapping_cache.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric::shm {

class OneSided {
 public:
  enum class Outcome : std::uint8_t {
    done,
    unmapped,  // nothing was done: the region's memory must be requested first
    access,    // Status::remote_access; of an atomic: it had no effect
    invalid,   // Status::remote_invalid
    too_late,  // the key was revoked during an atomic: Status::remote_operation
  };

  /// `words`: the peer's good keys. `placed` counts WRITEs, and outlives this.
  void open(memory::SharedMemory words, PlacedCounter& placed) {
    placed_ = &placed;
    words_ = std::make_shared<const memory::SharedMemory>(std::move(words));
  }
  void close() {
    cache_.clear();
    voids_.clear();
  }

  /// Does what the request asks for. Requires: open(); a READ, WRITE or atomic, well-formed.
  [[nodiscard]] Outcome run(const WorkRequest& request, std::uint64_t& old_value);
  /// The fast path of a READ of mapped memory, in few instructions, so that the processor overlaps
  /// the cache misses of as many READs as it can. Returns false for everything unusual: then run()
  /// decides.
  [[nodiscard]] bool read_inline(const WorkRequest& request);
  /// Prefetches the memory that a request will need, up to kPrefetchBytes of it: the processor
  /// fetches more of one stretch by itself. For any memory, if its region is not mapped.
  void prefetch(const WorkRequest& request) const {
    const Window& window = cache_.front(request.key);
    const std::uintptr_t at =
        reinterpret_cast<std::uintptr_t>(window.at) + (request.remote - window.base);
    const std::uintptr_t end = at + std::min(request.bytes, kPrefetchBytes);
    std::uintptr_t line = at;
    do {
      base::prefetch_line(reinterpret_cast<const void*>(line));
      line = (line & ~(base::kLineBytes - 1)) + base::kLineBytes;
    } while (line < end);
  }
  static constexpr std::uint32_t kPrefetchBytes = 1024;
  /// Takes in what the peer answered for a key.
  void insert(Window window, memory::SharedMemory memory) {
    window.word = word_of(*words_, window.key);
    cache_.insert(window, std::move(memory));
  }
  /// The same for a void key, which has no memory any more: only its bounds and rights count.
  void insert_void(const Window& window);
  [[nodiscard]] std::size_t mappings() const { return cache_.size(); }
  /// Memory of the peer that may be written, mapped while the result lives; null: it is not mapped
  /// (`asks` is then whether it may be asked for), not granted, or not for ordinary stores alone.
  [[nodiscard]] std::shared_ptr<PeerMemory> writable(RegionKey key, std::uint64_t remote,
                                                     std::uint64_t bytes, bool& asks);

 private:
  static bool good(const Window& window) {
    return base::load_shared<RegionKey>(window.word, std::memory_order_acquire) == window.key;
  }
  [[nodiscard]] RegionKey word(RegionKey key) const {
    return base::load_shared<RegionKey>(word_of(*words_, key), std::memory_order_acquire);
  }
  [[nodiscard]] static bool permits(const Window& window, const WorkRequest& request);
  [[nodiscard]] Outcome run_unmapped(const WorkRequest& request) const;
  [[nodiscard]] Outcome read_void(const WorkRequest& request) const;
  static std::uint64_t change(const WorkRequest& request, std::byte* at);

  std::shared_ptr<const memory::SharedMemory> words_;
  PlacedCounter* placed_ = nullptr;
  MappingCache cache_;
  std::unordered_map<RegionKey, Window> voids_;  // kMappingsMax at most
};

inline bool OneSided::read_inline(const WorkRequest& request) {
  const Window& window = cache_.front(request.key);
  const std::uint64_t offset = request.remote - window.base;
  // The place of no region has no bytes.
  const bool within = offset <= window.bytes && request.bytes <= window.bytes - offset;
  if (request.opcode != Opcode::read || window.key != request.key || request.bytes == 0 ||
      !within || !includes(window.rights, RemoteRights::read) || !good(window)) [[unlikely]] {
    return false;
  }
  copy_few_from_shared(request.local, window.at + offset, request.bytes);
  return good(window) || planted(Bug::void_seen_before_only);
}

}  // namespace espalier::fabric::shm
