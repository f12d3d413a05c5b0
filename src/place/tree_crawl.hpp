// SPDX-License-Identifier: Apache-2.0
// Reads a map's tree from above down to the references of its leaves, wherever it lies, and makes
// of it what the compiler of tables takes. Leaves themselves are not read.
//
// Nothing holds the tree still meanwhile. What is torn, or has moved before it came, is taken for a
// node without children: tables are hints, and who follows one looks at what comes.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "dataplane/tree_image.hpp"
#include "espalier/error.hpp"
#include "tree/walk/map_view.hpp"

namespace espalier::place {

/// Where the bytes of a region come from.
class RegionSource {
 public:
  struct Want {
    std::uint64_t offset = 0;
    std::span<std::byte> into;  ///< aligned to 8, as the offset is
  };
  RegionSource() = default;
  RegionSource(const RegionSource&) = delete;
  RegionSource& operator=(const RegionSource&) = delete;
  virtual ~RegionSource() = default;
  /// Brings all of these, which lie in the region. Errors: connection_lost.
  virtual Result<void> read(std::span<const Want> wanted) = 0;
};

/// Bytes that are at hand. What the host frees meanwhile may be read: an epoch is to be exposed.
class LocalRegion final : public RegionSource {
 public:
  explicit LocalRegion(const std::byte* memory) : memory_(memory) {}
  Result<void> read(std::span<const Want> wanted) override;

 private:
  const std::byte* memory_;
};

/// How often leaves were passed, by their LIDs; those that it does not name, never.
using LeafCounts = std::unordered_map<wire::Lid, std::uint64_t>;

/// The tree as it is now. The address of a node is `base` and its offset in the region; what leaves
/// count as passed is once more than `counts` says.
/// Cost: the bytes of all interior nodes and of the page table; a round trip for 64 nodes.
/// Errors: those of the source; contended (there is no root now); corrupt (more nodes than fit).
[[nodiscard]] Result<dataplane::TreeImage> crawl(const tree::MapView& map, RegionSource& source,
                                                 std::string_view prefix, std::uint64_t base,
                                                 const LeafCounts& counts = {});

}  // namespace espalier::place
