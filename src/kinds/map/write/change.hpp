// SPDX-License-Identifier: Apache-2.0
// A change of structure while it is prepared: the nodes it builds, those it replaces, and the
// page-table writes that make it take effect.
//
// Until `commit` nothing is visible; if a Change is destroyed before, its buffers and LIDs go back.
// What prepares it throws std::bad_alloc where the process has no memory for its lists; the caller
// then lets go of its locks, and the Change of all that it took.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

/// The way from the root to a node: interior nodes, and which child was taken.
struct PathStep {
  std::byte* node = nullptr;
  std::uint32_t index = 0;
};
using Path = std::vector<PathStep>;

/// Finds the leaf for a key and the way to it. Requires: the structure lock, or that no other
/// thread writes the map.
std::byte* find_leaf(const MapCore& map, const SearchKey& key, Path& path);

/// Children of one interior node (the last of `path`) to be replaced by others.
struct Splice {
  Path path;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<Child> children;
};

class Change {
 public:
  Change(ThreadContext& context, MapCore& map) : context_(&context), map_(&map) {}
  ~Change();
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  /// Takes what may be needed: call before locking leaves. `lids`: of the nodes, so many may not
  /// take the place of old ones. An erase may take what was put by for erases.
  /// Errors: out_of_memory.
  Result<void> reserve(std::uint32_t nodes, std::uint32_t lids, bool erase);

  /// Whether each leaf that replace_leaves would build answers for keys of two old leaves at most:
  /// a node can name no more predecessors (rule 8). So it always is with one or two old leaves.
  static bool two_predecessors_at_most(std::span<std::byte* const> olds,
                                       std::span<const Record> records,
                                       std::span<const std::size_t> cuts, const Geometry& g);
  /// Builds leaves for `records` (cut at `cuts`: indices at which a new leaf begins, the first
  /// being 0) in place of the leaves `olds`, adjacent and ascending. Returns the children for a
  /// splice; if one leaf replaces one, it keeps its LID and there is nothing to splice (empty
  /// result).
  /// Requires: two_predecessors_at_most.
  std::vector<Child> replace_leaves(std::span<std::byte* const> olds,
                                    std::span<const Record> records,
                                    std::span<const std::size_t> cuts);

  /// Carries splices up the tree until every changed subtree hangs on an unchanged LID.
  void splice(std::vector<Splice> splices);

  /// All is built. Sees to it that what follows needs no memory: to hand to the reclaimer what was
  /// replaced, and `values` besides.
  void prepare_commit(std::size_t values);

  /// Gives back what was taken and not needed. Call before the structure lock goes: an erase takes
  /// several times what it needs of the spares, and the next one would find too few.
  void give_back() noexcept;

  /// Makes everything take effect under `version`. Cannot fail. Requires: prepare_commit.
  void commit(std::uint64_t version) noexcept;

  /// Hands what was replaced to the reclaimer. Call after the version is done.
  void retire(std::uint64_t version) noexcept;

 private:
  struct NewNode {
    std::byte* node;
    std::uint32_t level;
    wire::Lid lid;
    bool fresh_lid;
  };
  struct DeadNode {
    std::byte* node;
    wire::Lid lid;  // 0: the LID lives on
  };
  struct Parent {
    std::byte* node;
    Path path;  // to the parent's own parent
    std::vector<Child> children;
  };
  /// A neighbour's word that names another node than before.
  struct Link {
    wire::Lid at;
    std::size_t field;
    wire::Lid before;
  };

  /// Room for so many nodes more, so that to add them allocates nothing.
  void expect(std::size_t built, std::size_t dead);
  std::byte* take_buffer();
  [[nodiscard]] NodeFrame frame_for(std::span<std::byte* const> olds, std::string_view low,
                                    std::string_view high) const;
  std::vector<Child> build_layer(std::uint32_t level, std::span<const Child> children,
                                 std::string_view low, std::string_view high,
                                 std::span<std::byte* const> olds);
  void rebuild(std::byte* node, std::span<const Child> children);
  void grow_root(std::byte* root, std::span<const Child> children);
  void collapse_root(std::byte* root, const Child& child);
  bool merge_with_neighbour(Parent& parent, std::vector<Splice>& above);
  void change_parent(Parent& parent, bool may_merge, std::vector<Splice>& above);
  void link_neighbours(std::span<std::byte* const> olds, std::span<const wire::Lid> lids);
  void set_link(wire::Lid at, std::size_t field, wire::Lid to);
  [[nodiscard]] wire::Ref successor_of(const DeadNode& dead) const;
  [[nodiscard]] NodeView view(const std::byte* node) const { return {node, map_->geometry}; }

  ThreadContext* context_;
  MapCore* map_;
  std::vector<std::byte*> stock_;
  std::vector<NewNode> built_;
  std::vector<DeadNode> dead_;
  std::vector<Link> links_;
  std::vector<memory::Retired> retired_;  // room for it
  std::size_t retired_taken_ = 0;         // of the context's stock
  bool committed_ = false;
};

/// Where to cut records into `parts` leaves of about equal bytes.
std::vector<std::size_t> cut_evenly(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts);
/// The fewest even parts of which each fits a leaf between these outer fences.
std::vector<std::size_t> cut_to_fit(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts_min, std::string_view low,
                                    std::string_view high);
/// Leaves as full as they can be between these outer fences, but for the last one: of keys that
/// only ever arrive behind the others.
std::vector<std::size_t> cut_full(std::span<const Record> records, const Geometry& g,
                                  std::string_view low, std::string_view high);
/// Whether each of the leaves that these cuts make fits.
bool cuts_fit(std::span<const Record> records, const Geometry& g, std::span<const std::size_t> cuts,
              std::string_view low, std::string_view high);

}  // namespace espalier::tree
