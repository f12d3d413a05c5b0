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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dataplane/key_number.hpp"
#include "dataplane/tree_image.hpp"
#include "espalier/error.hpp"
#include "kinds/map/walk/map_view.hpp"

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

/// What was read of a tree.
class CrawledTree {
 public:
  /// The tree for the compiler. `prefix`: what the numbers of keys leave out. The address of a node
  /// is `base` and its offset in the region; a leaf counts as passed once more than `counts` says.
  /// Cost: linear.
  [[nodiscard]] dataplane::TreeImage image(std::string_view prefix, std::uint64_t base,
                                           const LeafCounts& counts = {}) const;

  /// Where the root lies in the region.
  [[nodiscard]] std::uint64_t root_offset() const { return nodes_.front().ref.offset(); }

  /// How often each of these keys would pass a leaf, as far as the tree was read. Cost: a search in
  /// each level of the tree, for each key.
  [[nodiscard]] LeafCounts count(std::span<const std::string> keys) const;

  /// A leaf that has moved within the region, from one address to another, `base` left out.
  struct Move {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  enum class Moved : std::uint8_t {
    nothing,  // it is not of the tree, as far as was read, or is there already
    leaf,
    // The tree is to be read again: the node is none, or not a leaf, or another one is there, for
    // this is told from before the tree was read.
    shape,
  };
  /// The mapping feed says where this node is now. Cost: constant; linear the first time.
  Moved move(wire::Lid lid, wire::Ref ref, Move& move);

 private:
  friend class Crawl;
  struct Node {
    wire::Ref ref;
    wire::Lid lid;
    std::uint32_t level;                  // of the root: kLevelsMax
    std::vector<std::uint32_t> children;  // places in nodes_; kHere: nowhere now
    std::vector<std::string> separators;  // ascending
  };
  // What numbers lead to a node, both ends included, and its branches among them.
  struct Part {
    bool reached = false;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    dataplane::Branches branches;
  };
  [[nodiscard]] std::vector<Part> parts(std::string_view prefix) const;
  [[nodiscard]] static dataplane::Branches clipped(const Node& node, const Part& part,
                                                   std::string_view prefix);

  // In the order in which they were met: children stand behind their parents.
  std::vector<Node> nodes_;
  // Empty, or of all of them.
  std::unordered_map<wire::Lid, std::uint32_t> by_lid_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_offset_;
};

/// Reads the tree as it is now. Cost: the bytes of all interior nodes and of the page table; a
/// round trip for 64 nodes. Errors: those of the source; contended (there is no root now); corrupt
/// (more nodes than fit).
[[nodiscard]] Result<CrawledTree> crawl(const tree::MapView& map, RegionSource& source);

}  // namespace espalier::place
