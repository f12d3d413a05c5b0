// SPDX-License-Identifier: Apache-2.0
// A change of structure during its preparation: the nodes it builds, those it replaces, and the
// page-table writes that make it effective.
//
// Until `commit` nothing is visible; a Change destroyed before that returns its buffers and LIDs.
// Preparation throws std::bad_alloc if the process has no memory for its lists; the caller then
// releases its locks, and the Change all that it took.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

/// The path from the root to a node: interior nodes, and the child taken in each.
struct PathStep {
  std::byte* node = nullptr;
  std::uint32_t index = 0;
};
using Path = std::vector<PathStep>;

/// Finds the leaf of a key and the path to it. Requires: the structure lock, or no other thread
/// writes the map.
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

  /// Reserves what may be needed; call before locking leaves. `lids`: the number of nodes that may
  /// need a new LID. An erase may use the buffers reserved for erases.
  /// Errors: out_of_memory.
  Result<void> reserve(std::uint32_t nodes, std::uint32_t lids, bool erase);

  /// Whether each leaf that replace_leaves() would build covers keys of at most two old leaves,
  /// since a node names at most two predecessors (rule 8). Always true for one or two old leaves.
  static bool two_predecessors_at_most(std::span<std::byte* const> olds,
                                       std::span<const Record> records,
                                       std::span<const std::size_t> cuts, const Geometry& g);
  /// Builds leaves for `records` in place of the adjacent, ascending leaves `olds`. `cuts`: the
  /// index at which each new leaf begins, the first being 0. Returns the children for a splice; if
  /// one leaf replaces one, it keeps its LID and the result is empty: there is nothing to splice.
  /// Requires: two_predecessors_at_most.
  std::vector<Child> replace_leaves(std::span<std::byte* const> olds,
                                    std::span<const Record> records,
                                    std::span<const std::size_t> cuts);

  /// Propagates splices up the tree until every changed subtree hangs on an unchanged LID.
  void splice(std::vector<Splice> splices);

  /// Call when all is built. Reserves memory for retiring the replaced nodes, and `values` besides,
  /// so that the following steps cannot fail.
  void prepare_commit(std::size_t values);

  /// Returns unused reservations. Call before the structure lock is released: an erase reserves
  /// several times the spares that it needs, and the next one would find too few.
  void give_back() noexcept;

  /// Makes the change effective under `version`. Cannot fail. Requires: prepare_commit().
  void commit(std::uint64_t version) noexcept;

  /// Retires what was replaced. Call after the version is done.
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
    wire::Lid lid;  // 0: keeps an old node's LID
  };
  struct Parent {
    std::byte* node;
    Path path;  // to the parent's own parent
    std::vector<Child> children;
  };
  /// A neighbour reference that was changed.
  struct Link {
    wire::Lid at;
    std::size_t field;
    wire::Lid before;
  };

  /// Reserves room for more nodes, so that adding them does not allocate.
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
  std::vector<memory::Retired> retired_;  // reserved
  std::size_t retired_taken_ = 0;         // taken from the context's reserve
  bool committed_ = false;
};

/// Cuts records into `parts` leaves of about equal bytes.
std::vector<std::size_t> cut_evenly(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts);
/// The fewest even parts, at least `parts_min`, of which each fits a leaf between these outer
/// fences.
std::vector<std::size_t> cut_to_fit(std::span<const Record> records, const Geometry& g,
                                    std::size_t parts_min, std::string_view low,
                                    std::string_view high);
/// Cuts for leaves as full as possible between these outer fences, except the last: for keys that
/// only ever arrive in ascending order.
std::vector<std::size_t> cut_full(std::span<const Record> records, const Geometry& g,
                                  std::string_view low, std::string_view high);
/// Whether each leaf made by these cuts fits.
bool cuts_fit(std::span<const Record> records, const Geometry& g, std::span<const std::size_t> cuts,
              std::string_view low, std::string_view high);

}  // namespace espalier::tree
