// SPDX-License-Identifier: Apache-2.0
// The memory regions that a process offers: the rights of peers to its memory, until revoked.
//
// A key is 32 bits; the low half is its place in the table, the rest is random. A region's
// addresses begin at a random number, which an attacker must guess as well; and a region belongs to
// a domain, and only queue pairs of the same domain reach it.
//
//   [ key: 16 random bits | 16 bits: place ]     base: 2^46 .. 2^62, the beginning of a page
//
// But if the memory does not begin at a word of 8 bytes, the base is as far from one: so a word's
// address is aligned if and only if its bytes are.
//
// The words of good keys, one for each place, lie in memory that can be shared read-only: a
// transport whose peers load and store by themselves lets them check there before and after.
//
// A key is good, then perhaps void, then revoked:
//
//           offer()       make_void()       revoke()
//     0  ---------->  key  ---------->  ~key  ------>  0        (what its word says)
//                          \---------- revoke() ---->/
//
// A READ by a void key brings zeros, so that a late one does not end its pair; all other requests
// by it are refused.
//
// Keys of a third kind are shared by sessions, for switches, which know no sessions
// (shared_map.hpp). Only transports that send packets know them: find() and find_source() do not
// find them. The last places are of keyed keys alone, so that a switch recognises READs by them,
// whatever the map; and where a map lies on several nodes, a key on which these agree is nearly
// always free on each.
//
// Invariants
// I1. After revoke() or make_void() no access begins, and those that had begun in this process are
//     over: the memory is its owner's again.
// I2. Two keys that follow each other in a place differ.
//
// Thread: any, but a Reader one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/barrier.hpp"
#include "espalier/error.hpp"
#include "fabric/placement.hpp"
#include "fabric/shared_map.hpp"
#include "fabric/types.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric {

/// Memory of this process, and how it is offered.
struct OfferedMemory {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  /// The shared memory that it is part of, for transports that map it, or -1; the table keeps a
  /// copy. And its offset there. A peer that may map a part can map all of it: memory with other
  /// rights, or for other peers, must be another shared memory.
  int descriptor = -1;
  std::uint64_t descriptor_offset = 0;
  /// Whether it is persistent. Such a region has no atomics: these store through the cache, and
  /// nothing would write them back.
  MemoryKind kind = MemoryKind::volatile_memory;
};

class RegionTable;

/// Which of a SharedMap's keys.
enum class SharedKind : std::uint8_t { keyed, redirect };

/// The source of a READ's bytes.
struct ReadSource {
  enum class Kind : std::uint8_t {
    refused,
    bytes,
    zeros,  // the key is void
  };
  Kind kind = Kind::refused;
  const std::byte* at = nullptr;  // null but for `bytes`

  explicit operator bool() const { return kind != Kind::refused; }
};

/// A registered region, revoked by the destructor.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  ~Registration() { revoke(); }

  /// What a peer needs to reach it.
  [[nodiscard]] const RemoteRegion& remote() const { return remote_; }
  /// As RegionTable::make_void(): the key stays known until revoke().
  void make_void();
  void revoke();
  explicit operator bool() const { return table_ != nullptr; }

 private:
  friend class RegionTable;
  Registration(std::shared_ptr<RegionTable> table, const RemoteRegion& remote)
      : table_(std::move(table)), remote_(remote) {}

  std::shared_ptr<RegionTable> table_;
  RemoteRegion remote_;
};

class RegionTable : public std::enable_shared_from_this<RegionTable> {
 public:
  static constexpr std::uint32_t kRegionsMax = 1u << 16;
  /// Of these, places of keyed keys.
  static constexpr std::uint32_t kKeyedMax = 256;
  [[nodiscard]] static constexpr bool is_keyed(RegionKey key) {
    return (key & (kRegionsMax - 1)) >= kRegionsMax - kKeyedMax;
  }

  /// `seed`: keys come from it, so that a simulation repeats; without one, from the system.
  /// Errors: system.
  static Result<std::shared_ptr<RegionTable>> create(std::optional<std::uint64_t> seed = {});
  ~RegionTable();

  /// Offers memory to peers of a domain. It stays until the registration is revoked. Errors:
  /// invalid_argument (no bytes, or no rights, or atomics on persistent memory), out_of_memory (too
  /// many regions), system.
  Result<Registration> offer(const OfferedMemory& memory, RemoteRights rights, Domain domain = 0);
  /// How WRITEs into regions that are offered from now on are placed. Thread: any.
  void set_placement_policy(PlacementPolicy policy) { policy_ = policy; }
  /// WRITEs that endpoints with this table have placed: into its own regions, and, where peers map
  /// memory, into those of peers. Thread: any.
  [[nodiscard]] PlacedCounter& placed() { return placed_; }

  /// Revokes a key. Waits for accesses in progress, each of which is short. A key that is not good
  /// (any more) changes nothing. Requires: this thread is not between enter() and leave().
  void revoke(RegionKey key);

  /// Offers a key that is shared by the sessions admitted to the map. Addresses of a redirect key
  /// are those of `bytes` bytes from a random number on; of a keyed one they are numbers, any of 64
  /// bits.
  /// Errors: invalid_argument (no bytes, or no SharedReads), out_of_memory, system.
  Result<Registration> offer_shared(const std::shared_ptr<SharedMap>& map, SharedKind kind,
                                    std::uint64_t bytes = 0);
  /// The same of a keyed key that was made elsewhere, by agreed_key(). Errors: invalid_argument (it
  /// is none), already_exists (another one has its place, or it was the last to have it),
  /// out_of_memory.
  Result<Registration> offer_agreed(const std::shared_ptr<SharedMap>& map, RegionKey key);
  /// The key on which all nodes that know the number agree.
  [[nodiscard]] static RegionKey agreed_key(std::uint64_t number);
  /// The session that alone has this good key may read by the map's shared ones, from its domain,
  /// until revoke() or make_void() of it, or dismiss(). Of a domain one key counts: the last.
  /// Cost: a wait for accesses that go on. Requires: as revoke(). Errors: not_found.
  Result<void> admit(SharedMap& map, RegionKey key);
  /// Revokes the admission. Requires: as revoke().
  void dismiss(SharedMap& map, RegionKey key);

  /// From now on a READ by the key brings zeros, if it is within the region and granted, and all
  /// else by it is refused. Waits for accesses in progress, as revoke() does: then the memory is
  /// the caller's. The place stays taken until revoke(), which is due when no READ by the key can
  /// arrive any more. A key that is not good (any more) changes nothing. Requires: as revoke().
  /// Source: DESIGN §2.1 rule 13.
  void make_void(RegionKey key);

  /// One thread's read guard. Between enter() and leave() the results of find() stay offered.
  class Reader {
   public:
    explicit Reader(RegionTable& table);
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();

    void enter();
    void leave() {
      turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    /// Where the bytes lie, or null: no such key in this domain, not all within its range, or not
    /// granted; by a void key nothing is. Requires: between enter() and leave(). Cost: a few
    /// nanoseconds.
    [[nodiscard]] std::byte* find(RegionKey key, std::uint64_t address, std::uint64_t bytes,
                                  RemoteRights rights, Domain domain) const;
    /// The same for a WRITE, with how its bytes are to be placed.
    [[nodiscard]] WriteTarget find_target(RegionKey key, std::uint64_t address, std::uint64_t bytes,
                                          Domain domain) const;
    /// Counts the WRITEs of this reader's users.
    [[nodiscard]] PlacedCounter& placed() const { return table_.placed(); }
    /// The same as find() for a READ, to which a void key brings zeros.
    [[nodiscard]] ReadSource find_source(RegionKey key, std::uint64_t address, std::uint64_t bytes,
                                         Domain domain) const;

    /// The same for a READ whose key may be shared. Requires: as find(), also while it is used.
    [[nodiscard]] SharedSource find_shared(RegionKey key, std::uint64_t address,
                                           Domain domain) const;

   private:
    friend class RegionTable;
    RegionTable& table_;
    /// How often it has entered or left: odd while it is between the two.
    std::atomic<std::uint64_t> turn_{0};
  };

  /// What a transport that maps memory hands to a peer that names a good key of its domain.
  struct Mapping {
    RemoteRegion remote;
    RemoteRights rights = RemoteRights::none;
    memory::Descriptor descriptor;  // a copy; one that can only be read if no more is granted
    std::uint64_t descriptor_offset = 0;
    Placement placement;
    bool is_void = false;  // then there is no descriptor, and there are only zeros to be read
  };
  /// Errors: not_found (no such key, or not of this domain), unsupported (its memory is not
  /// shared), system.
  Result<Mapping> mapping(RegionKey key, Domain domain);
  /// The words: at place key & 0xFFFF stands the key, void_word() of it, or 0.
  [[nodiscard]] const memory::SharedMemory& words() const { return words_; }

 private:
  struct Place {
    std::atomic<RegionKey> word{0};  // as in words()
    RegionKey key_before = 0;
    RemoteRights rights = RemoteRights::none;
    Domain domain = 0;
    std::uint64_t base = 0;
    OfferedMemory memory;
    Placement placement;
    memory::Descriptor descriptor;
    std::shared_ptr<SharedMap> shared;  // whose key it is; null: it is no shared one
    SharedKind shared_kind = SharedKind::keyed;
  };
  struct Taken {
    Place* place = nullptr;
    RegionKey key = 0;
    std::uint64_t base = 0;
  };
  using Dismissed = std::vector<std::unique_ptr<const SharedMap::Members>>;
  static constexpr std::uint32_t kPlacesPerChunk = 256;
  static_assert(kKeyedMax == kPlacesPerChunk);
  struct Chunk {
    Place places[kPlacesPerChunk];
  };

  RegionTable(memory::SharedMemory words, std::optional<std::uint64_t> seed);
  [[nodiscard]] Result<std::uint64_t> draw();
  [[nodiscard]] Place* place_of(RegionKey key) const;
  [[nodiscard]] static bool permits(const Place& place, std::uint64_t address, std::uint64_t bytes,
                                    RemoteRights rights, Domain domain);
  void set_word(Place& place, RegionKey key, RegionKey word);
  [[nodiscard]] Result<std::uint32_t> free_place();
  /// A place with its next key, and a number that addresses may begin at.
  [[nodiscard]] Result<Taken> take_place();
  /// The place of a keyed key, if it is free.
  [[nodiscard]] Result<Place*> take_keyed(RegionKey key);
  /// Any keyed key, with its place.
  [[nodiscard]] Result<Taken> take_keyed();
  Registration share(Place& place, RegionKey key, const std::shared_ptr<SharedMap>& map,
                     SharedKind kind, const RemoteRegion& remote);
  static std::unique_ptr<const SharedMap::Members> without(SharedMap& map, RegionKey key);
  Dismissed dismiss_everywhere(RegionKey key);
  void wait_for_readers();

  memory::SharedMemory words_;
  bool asymmetric_;
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;
  std::atomic<PlacementPolicy> policy_{PlacementPolicy::adaptive};
  PlacedCounter placed_;
  std::mutex mutex_;  // of all below, and of all changes
  std::vector<std::unique_ptr<Chunk>> owned_;
  std::unique_ptr<Chunk> keyed_;  // the last one; null: there was no keyed key yet
  std::vector<std::uint32_t> free_;
  std::vector<Reader*> readers_;
  std::vector<std::weak_ptr<SharedMap>> shared_maps_;
  std::uint64_t shared_maps_made_ = 0;
  std::optional<std::uint64_t> seed_;
};

}  // namespace espalier::fabric
