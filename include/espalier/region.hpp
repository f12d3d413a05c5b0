// SPDX-License-Identifier: Apache-2.0
// Regions: bytes under a name, and nothing else, which nodes and their peers read, write and add to
// by offset.
//
//   auto flags = store.create_region("flags", 4096);
//   flags->fetch_add(8, 1);                   // the word at 8, as it was
//
// A region is volatile: its bytes are zeros when it is made, and of a node that starts again, too.
// Words of 8 bytes at multiples of 8 are read and written whole, and all atomics on them are of one
// unit, whoever makes them. Longer ranges may be read half old and half new.
//
// Over a fabric (shm:, roce:) the calls are READs, WRITEs and atomics that the client makes itself;
// by the UNIX socket, and where the fabric has no such atomics, the node is asked. A device hands
// nothing of it on (unsupported). A client needs the role of a peer (docs/security.md), for whoever
// may use a region may write anything to it.
//
// Errors of all calls: not_found (it was dropped, or another node has come, which knows nothing of
// it); forked (another process made the handle, docs/fork.md); out_of_memory (this process has
// none). On a node: connection_lost (a write or an atomic may or may not have been done; none is
// repeated, and none takes effect after the next call of this thread on the region has begun),
// not_permitted.
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

/// A region as it was listed.
struct RegionDescription {
  std::string name;
  std::uint64_t bytes = 0;
};

/// A handle; copies name the same region, which stays as long as they even if its Store is gone.
/// Thread: all calls from any number of threads.
class Region {
 public:
  // Details of invalid_argument.
  static constexpr std::uint32_t kBeyond = 1;      ///< not all of it is within the region
  static constexpr std::uint32_t kMisaligned = 2;  ///< an atomic at no multiple of 8

  [[nodiscard]] const std::string& name() const;
  /// How many it has.
  [[nodiscard]] std::uint64_t bytes() const;

  /// Reads the bytes from `offset` on. Cost: a copy; on a node one round trip for each MiB, where
  /// it is asked for each 64 KiB. Errors: invalid_argument (detail: kBeyond).
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
  /// Writes bytes from `offset` on. What this thread writes is seen in order, and behind what it
  /// wrote before. Where there is an error, a part may have been written.
  /// Cost and errors as of read().
  Result<void> write(std::uint64_t offset, std::span<const std::byte> from);
  /// Adds to the word at `offset`, which wraps round. Returns what it was.
  /// Cost: an atomic step; on a node one round trip.
  /// Errors: invalid_argument (detail: kBeyond, kMisaligned).
  Result<std::uint64_t> fetch_add(std::uint64_t offset, std::uint64_t amount);
  /// Sets the word at `offset` to `swap` if it is `compare`. Returns what it was: it was set if and
  /// only if that is `compare`. Cost and errors as of fetch_add().
  Result<std::uint64_t> compare_swap(std::uint64_t offset, std::uint64_t compare,
                                     std::uint64_t swap);

 private:
  friend class client::RegionImpl;
  explicit Region(std::shared_ptr<client::RegionImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::RegionImpl> impl_;
};

}  // namespace espalier
