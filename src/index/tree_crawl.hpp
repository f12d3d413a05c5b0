// SPDX-License-Identifier: Apache-2.0
// Reads a map's tree from the root down to the references of its leaves, through any source of its
// bytes, and builds the input of the table compiler. It does not read leaves.
//
// Writers change the tree meanwhile. A node that was torn or has moved before it was read counts as
// a node without children: tables are hints, and readers that follow a hint check what they read.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dataplane/key_number.hpp"
#include "dataplane/tree_image.hpp"
#include "espalier/error.hpp"
#include "kinds/map/walk/map_view.hpp"

namespace espalier::place {

/// Source of a region's bytes.
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
  /// Reads all of these, which lie in the region. Errors: connection_lost.
  virtual Result<void> read(std::span<const Want> wanted) = 0;
};

/// A region in local memory. Requires: the caller exposes an epoch, for memory that the host frees.
class LocalRegion final : public RegionSource {
 public:
  explicit LocalRegion(const std::byte* memory) : memory_(memory) {}
  Result<void> read(std::span<const Want> wanted) override;

 private:
  const std::byte* memory_;
};

/// How often leaves were read, by LID; leaves that are not in it: never.
using LeafCounts = std::unordered_map<wire::Lid, std::uint64_t>;

/// The part of a tree that was read.
class CrawledTree {
 public:
  /// The tree for the compiler. `prefix`: what the numbers of keys leave out. The address of a node
  /// is `base` plus its offset in the region. A leaf's accesses are its count plus one. Cost:
  /// linear.
  [[nodiscard]] dataplane::TreeImage image(std::string_view prefix, std::uint64_t base,
                                           const LeafCounts& counts = {}) const;

  /// How often each leaf would be read for these keys, as far as the tree was read. Cost: for each
  /// key a search in each level of the tree.
  [[nodiscard]] LeafCounts count(std::span<const std::string> keys) const;

  /// A leaf that has moved within the region, from one address to another, both without `base`.
  struct Move {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  enum class Moved : std::uint8_t {
    nothing,  // not a node of the tree that was read, or there already
    leaf,
    // The tree must be read again: the node is gone, or not a leaf, or another node is there, since
    // the report is older than the tree.
    shape,
  };
  /// Applies a move that the mapping feed reports. Cost: constant; linear the first time.
  Moved move(wire::Lid lid, wire::Ref ref, Move& move);

 private:
  friend class Crawl;
  struct Node {
    wire::Ref ref;
    wire::Lid lid;
    std::uint32_t level;                  // of the root: kLevelsMax
    std::vector<std::uint32_t> children;  // indices in nodes_; kHere: none now
    std::vector<std::string> separators;  // ascending
  };
  // The range of numbers that lead to a node, both ends included, and its branches among them.
  struct Part {
    bool reached = false;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    dataplane::Branches branches;
  };
  [[nodiscard]] std::vector<Part> parts(std::string_view prefix) const;
  [[nodiscard]] static dataplane::Branches clipped(const Node& node, const Part& part,
                                                   std::string_view prefix);

  // In the order of discovery: children stand after their parents.
  std::vector<Node> nodes_;
  // Empty, or of all nodes.
  std::unordered_map<wire::Lid, std::uint32_t> by_lid_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_offset_;
};

/// Reads the current tree. Cost: the bytes of all interior nodes and of the page table; a round
/// trip per 64 nodes. Errors: those of the source; contended (there is no root now); corrupt (more
/// nodes than fit).
[[nodiscard]] Result<CrawledTree> crawl(const tree::MapView& map, RegionSource& source);

}  // namespace espalier::place
