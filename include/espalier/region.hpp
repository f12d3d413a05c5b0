// SPDX-License-Identifier: Apache-2.0
// Regions: plain bytes under a name, which nodes and clients with the role peer read, write and
// modify by atomics at an offset.
//
//   auto flags = store.create_region("flags", 4096);
//   flags->fetch_add(8, 1);                   // the word at 8, as it was
//
// A region is volatile: its bytes are zero when it is created, and again after a restart of its
// node. Words of 8 bytes at multiples of 8 are read and written atomically. All atomics on them go
// through one unit, whichever client issues them. Longer ranges may be read half old and half new.
//
// Over a fabric (shm:, roce:) the calls are READs, WRITEs and atomics of the client. Over the UNIX
// socket, and if the fabric has no such atomics, the node executes them. A device does not relay
// them (unsupported). A client needs the role peer (docs/security.md), because a client that may
// use a region may write anything to it.
//
// Errors of all calls: not_found (it was dropped, or a new node took over without it); forked
// (another process made the handle, docs/fork.md); out_of_memory (of this process). On a node:
// connection_lost (a write or an atomic may or may not have been done; none is repeated, and none
// takes effect after the next call of this thread on the region has begun), not_permitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/map.hpp"

namespace espalier {

namespace client {
class RegionImpl;
}  // namespace client

/// A region as listed.
struct RegionDescription {
  std::string name;
  std::uint64_t bytes = 0;
};

/// A handle. Copies name the same region, which lives as long as any of them, even after its Store
/// is destroyed.
/// Thread: all calls from any number of threads.
class Region {
 public:
  // Details of invalid_argument.
  static constexpr std::uint32_t kBeyond = 1;      ///< the range exceeds the region
  static constexpr std::uint32_t kMisaligned = 2;  ///< an atomic not at a multiple of 8

  [[nodiscard]] const std::string& name() const;
  /// Its size.
  [[nodiscard]] std::uint64_t bytes() const;

  /// Reads the bytes from `offset` on.
  /// Cost: a copy; on a node one round trip for each MiB, or for each 64 KiB where the node
  /// executes it.
  /// Errors: invalid_argument (detail: kBeyond).
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
  /// Writes bytes from `offset` on. Writes of one thread become visible in order. After an error, a
  /// part may have been written. Cost and errors as of read().
  Result<void> write(std::uint64_t offset, std::span<const std::byte> from);
  /// Adds to the word at `offset`, which wraps around. Returns its previous value.
  /// Cost: an atomic operation; on a node one round trip.
  /// Errors: invalid_argument (detail: kBeyond, kMisaligned).
  Result<std::uint64_t> fetch_add(std::uint64_t offset, std::uint64_t amount);
  /// Sets the word at `offset` to `swap` if it equals `compare`. Returns its previous value: it was
  /// set if and only if that equals `compare`. Cost and errors as of fetch_add().
  Result<std::uint64_t> compare_swap(std::uint64_t offset, std::uint64_t compare,
                                     std::uint64_t swap);

 private:
  friend class client::RegionImpl;
  explicit Region(std::shared_ptr<client::RegionImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::RegionImpl> impl_;
};

}  // namespace espalier
