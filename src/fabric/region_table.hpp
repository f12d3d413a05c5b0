// SPDX-License-Identifier: Apache-2.0
// The regions that a process offers: who may do what to which of its memory, until revoked.
//
// A key is 32 random bits, of which the low half tells its place here. A region's addresses begin
// at a random number, so a peer that guesses must guess that too; and a region is of a domain, and
// only queue pairs of the same domain reach it.
//
//   [ key: 16 random bits | 16 bits: place ]     base: 2^46 .. 2^62, the beginning of a page
//
// But if the memory does not begin at a word of 8 bytes, the base is as far from one: so a word's
// address is aligned if and only if its bytes are.
//
// Keys that are good stand, one word for each place, in memory that can be shared to be read: a
// transport whose peers load and store by themselves lets them look there before and after.
//
// Invariants
// I1. After revoke() no access begins, and those that had begun in this process are over.
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
#include "fabric/types.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric {

/// Memory of this process, as it is offered.
struct OfferedMemory {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  /// The shared memory that it is part of, for transports that map it, or -1; the table keeps a
  /// copy. And where in it. A peer that may map a part can map all of it: what has other rights, or
  /// is for others, lies in other memory.
  int descriptor = -1;
  std::uint64_t descriptor_offset = 0;
};

class RegionTable;

/// A region, revoked when this ends.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  ~Registration() { revoke(); }

  /// What a peer must know.
  [[nodiscard]] const RemoteRegion& remote() const { return remote_; }
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

  /// `seed`: keys come from it, so that a simulation repeats; without one, from the system.
  /// Errors: system.
  static Result<std::shared_ptr<RegionTable>> create(std::optional<std::uint64_t> seed = {});
  ~RegionTable();

  /// Offers memory to peers of a domain. It stays until the registration is revoked. Errors:
  /// invalid_argument (no bytes, or no rights), out_of_memory (too many regions), system.
  Result<Registration> offer(const OfferedMemory& memory, RemoteRights rights, Domain domain = 0);
  /// Takes a region back. Waits for accesses that go on, each of which is short. A key that is not
  /// good (any more) changes nothing. Requires: this thread is not between enter() and leave().
  void revoke(RegionKey key);

  /// One thread's way to look up. Between enter() and leave() what find() gave stays offered.
  class Reader {
   public:
    explicit Reader(RegionTable& table);
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();

    void enter();
    void leave() { busy_.store(false, std::memory_order_release); }
    /// Where the bytes lie, or null: no such key in this domain, not all within its range, or not
    /// granted. Requires: between enter() and leave(). Cost: a few nanoseconds.
    [[nodiscard]] std::byte* find(RegionKey key, std::uint64_t address, std::uint64_t bytes,
                                  RemoteRights rights, Domain domain) const;

   private:
    friend class RegionTable;
    RegionTable& table_;
    std::atomic<bool> busy_{false};
  };

  /// What a transport that maps memory hands to a peer who names a good key of its domain.
  struct Mapping {
    RemoteRegion remote;
    RemoteRights rights = RemoteRights::none;
    memory::Descriptor descriptor;  // a copy; one that can only be read if no more is granted
    std::uint64_t descriptor_offset = 0;
  };
  /// Errors: not_found (no such key, or not of this domain), unsupported (its memory is not
  /// shared), system.
  Result<Mapping> mapping(RegionKey key, Domain domain);
  /// The words: at place key & 0xFFFF stands the key, or 0.
  [[nodiscard]] const memory::SharedMemory& words() const { return words_; }

 private:
  struct Place {
    std::atomic<RegionKey> key{0};
    RegionKey key_before = 0;
    RemoteRights rights = RemoteRights::none;
    Domain domain = 0;
    std::uint64_t base = 0;
    OfferedMemory memory;
    memory::Descriptor descriptor;
  };
  static constexpr std::uint32_t kPlacesPerChunk = 256;
  struct Chunk {
    Place places[kPlacesPerChunk];
  };

  RegionTable(memory::SharedMemory words, std::optional<std::uint64_t> seed);
  [[nodiscard]] Result<std::uint64_t> draw();
  [[nodiscard]] Place* place_of(RegionKey key) const;
  [[nodiscard]] Result<std::uint32_t> free_place();
  void wait_for_readers();

  memory::SharedMemory words_;
  bool asymmetric_;
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;
  std::mutex mutex_;  // of all below, and of all changes
  std::vector<std::unique_ptr<Chunk>> owned_;
  std::vector<std::uint32_t> free_;
  std::vector<Reader*> readers_;
  std::optional<std::uint64_t> seed_;
};

}  // namespace espalier::fabric
