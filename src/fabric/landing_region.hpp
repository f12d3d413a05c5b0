// SPDX-License-Identifier: Apache-2.0
// A landing region: memory for one session, which the session's peer may WRITE and READ, and which
// this process reads as untrusted bytes that another process changes at any time.
//
// It shares no page, no file and no key with anything else, and ends with its session. read_once()
// is the only access: one copy, clamped to the region; the caller checks and uses the copy. No
// pointer into the region is handed out.
//
//   peer:  WRITE a request, an image, a filter  ...  then says in its ring where that lies
//   here:  read_once(where it says)  ->  check  ->  use
//
// Over transports whose peers map memory (Properties::peer_maps_memory) it lies in a memfd of fixed
// length: sealed against shrinking and growing, and against other seals, so that no peer can
// truncate it under a reader, or keep this process from freeing it. A peer can punch holes in it,
// as it can write zeros. It is not sealed against writing, nor against future writing, for the peer
// maps it later than this. Over other transports it is private memory of this process.
//
// Invariants
// I1. A peer reaches these bytes and no others by the region's key, and only from its own domain.
// I2. No byte of it is read twice for one read_once().
// I3. After give_back() nothing of a peer reaches memory of this process: the memory is gone. A
//     peer that mapped it may keep what it mapped, which is then its alone.
//
// Thread: one at a time; read_once() any, at any time between create() and give_back().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "espalier/error.hpp"
#include "fabric/region_table.hpp"
#include "memory/address_range.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric {

class LandingRegion {
 public:
  /// The most that one has.
  static constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;

  struct Options {
    std::uint64_t bytes = 0;        // rounded up to whole pages
    Domain domain = 0;              // of the session's queue pairs
    bool peer_maps_memory = false;  // as the Properties of the endpoint at which they are
  };

  /// Makes zeroed memory, whose pages are taken as they are written, and offers it to be read and
  /// written; there are no atomics on it. Errors: invalid_argument (no bytes, or more than
  /// kBytesMax), out_of_memory (too many regions), system.
  static Result<LandingRegion> create(RegionTable& regions, const Options& options);
  LandingRegion(LandingRegion&& other) noexcept { *this = std::move(other); }
  LandingRegion& operator=(LandingRegion&& other) noexcept;
  ~LandingRegion() { give_back(); }

  /// What the peer needs to reach it.
  [[nodiscard]] const RemoteRegion& remote() const { return region_.remote(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Copies what lies at `offset`, as far as there is any, and returns the part of `into` that
  /// holds it: less than all of it, or nothing, where the region ends before. Any offset and length
  /// may come from a peer. Each aligned word of 8 bytes is whole if `offset` is a multiple of 8; of
  /// anything longer some parts may be older than others. Cost: that of the copy.
  [[nodiscard]] std::span<std::byte> read_once(std::uint64_t offset,
                                               std::span<std::byte> into) const;
  /// The same for a struct of fixed bytes: nothing, unless all of it lies within.
  template <class T>
  [[nodiscard]] std::optional<T> read_once(std::uint64_t offset) const {
    // Any bytes are a value of it.
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    T copy;
    const auto bytes = std::as_writable_bytes(std::span(&copy, 1));
    if (read_once(offset, bytes).size() != sizeof copy) return std::nullopt;
    return copy;
  }

  /// Revokes its key, and waits for accesses in progress: from here on the peer changes nothing,
  /// except where peers map memory. The bytes stay readable. Errors, threads: as
  /// RegionTable::revoke().
  void revoke() { region_.revoke(); }
  /// Revokes its key, waits for accesses in progress, and returns the memory to the system.
  /// Repeated calls do nothing, and there is nothing to read. Requires: no read_once() is in
  /// progress; else as RegionTable::revoke().
  void give_back();

 private:
  LandingRegion() = default;
  [[nodiscard]] Result<OfferedMemory> make(const Options& options);

  Registration region_;
  std::optional<memory::AddressRange> own_;  // one of the two
  memory::SharedMemory shared_;
  const std::byte* at_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace espalier::fabric
