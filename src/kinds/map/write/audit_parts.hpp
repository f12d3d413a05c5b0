// SPDX-License-Identifier: Apache-2.0
// The parts of an audit: checks of one node, of one log, of a store's buffers. audit.cpp combines
// them.
//
// An audit trusts no bytes: it reads through NodeView, which never leaves the node, descends only
// to unvisited nodes one level below their parent, and reports errors instead of asserting.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

/// Collects a bounded number of complaints.
class Report {
 public:
  explicit Report(std::size_t most) : most_(most) {}

  /// Adds a complaint, concatenated from texts and numbers, unless `ok`. Returns `ok`.
  template <class... Parts>
  bool expect(bool ok, const Parts&... parts) {
    if (!ok) complain(parts...);
    return ok;
  }
  template <class... Parts>
  void complain(const Parts&... parts) {
    if (full()) return;
    std::string sentence = place_;
    (append(sentence, parts), ...);
    complaints_.push_back(std::move(sentence));
  }
  /// Sets the prefix of the following complaints.
  void set_place(std::string place) { place_ = std::move(place); }

  [[nodiscard]] bool full() const { return complaints_.size() >= most_; }
  [[nodiscard]] std::vector<std::string> take() { return std::move(complaints_); }

 private:
  static void append(std::string& to, std::string_view text) { to += text; }
  static void append(std::string& to, std::uint64_t number) { to += std::to_string(number); }

  std::size_t most_;
  std::string place_;
  std::vector<std::string> complaints_;
};

/// A buffer that is in use, or retired and not free yet.
struct BufferUse {
  std::uint64_t offset = 0;
  std::uint32_t size_class = 0;
};

/// What the path to a node implies for it.
struct NodePlace {
  wire::Lid lid = 0;
  wire::Ref ref{};
  std::uint32_t level = 0;
  std::string_view low;
  std::string_view high;
};

/// One node under audit. `header` is a copy, so that raw and clamped fields can be compared.
struct NodeAudit {
  NodeAudit(const MapCore& map_in, const NodePlace& place_in, Report& report_in)
      : map(map_in),
        g(map_in.geometry),
        node(map_in.view(place_in.ref)),
        place(place_in),
        report(report_in) {
    std::memcpy(&header, node.bytes(), sizeof header);
  }

  const MapCore& map;
  const Geometry& g;
  NodeView node;
  const NodePlace& place;
  Report& report;
  wire::NodeHeader header;
};

/// An item of a sorted block and its offset.
struct PlacedItem {
  std::uint32_t offset = 0;
  SortedItem item;
};

/// The content of a leaf in its newest state.
struct LeafContent {
  std::uint64_t items = 0;
  std::vector<wire::ValueRef> values;  // out-of-line values
};

/// Whether a reference and this many bytes behind it lie in the map's region.
[[nodiscard]] bool in_region(const MapCore& map, wire::Ref ref, std::uint64_t bytes);
[[nodiscard]] bool lid_in_range(const MapCore& map, wire::Lid lid);

/// Checks identity, kind, level, fences, versions, predecessors, neighbours. Returns whether the
/// rest of the node can be checked.
bool audit_header(NodeAudit& audit);
/// Checks that the range of the key prefixes includes the first and the last 8 bytes that they
/// order.
void audit_scale(NodeAudit& audit, std::uint64_t first, std::uint64_t last);
/// Checks groups, key prefixes and separators. Returns the children that can be followed.
std::vector<Child> audit_interior(NodeAudit& audit);
/// Checks items of the sorted block, chunk key prefixes and starts. Returns the items.
std::vector<PlacedItem> audit_sorted(NodeAudit& audit);
/// Checks the log block against the sorted block. Returns the leaf's newest content.
LeafContent audit_log(NodeAudit& audit, std::span<const PlacedItem> sorted);
/// Checks that a value which the leaf refers to exists. Returns whether its buffer may be counted.
bool audit_value(NodeAudit& audit, const wire::ValueRef& value);

/// What the tree contains, to be compared with the map's header, page table, LIDs and counters.
struct TreeContent {
  std::vector<wire::Lid> lids;  // sorted
  std::uint64_t leaves = 0;
  std::uint64_t interior_nodes = 0;
  std::uint64_t items = 0;
  std::uint64_t value_bytes = 0;
  std::vector<BufferUse> buffers;  // in use, or retired
};
void audit_map_header(const MapCore& map, Report& report);
void audit_counters(const MapCore& map, const TreeContent& content, Report& report);
void audit_lids(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                const TreeContent& content, Report& report);
void audit_waiting(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                   TreeContent& content, Report& report);
/// Sorts the buffers and checks that none overlap.
void audit_overlaps(std::vector<BufferUse>& buffers, Report& report);
/// Compares the pool's allocations with all buffers of all maps.
void audit_pool(const StoreCore& store, std::span<const BufferUse> buffers, Report& report);

}  // namespace espalier::tree
