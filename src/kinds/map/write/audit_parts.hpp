// SPDX-License-Identifier: Apache-2.0
// The parts of an audit: what is checked of one node, of one log, of a store's buffers. The whole
// is put together in audit.cpp.
//
// An audit believes nothing: it reads through NodeView, which never leaves the node, goes down only
// to nodes whose level is one less than their parent's and that it has not seen, and says what is
// wrong instead of asserting it.
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

/// Collects complaints, up to a number of them.
class Report {
 public:
  explicit Report(std::size_t most) : most_(most) {}

  /// Complains with a sentence put together from texts and numbers, unless `ok`. Returns `ok`.
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
  /// Says of what the following complaints speak.
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

/// A buffer that is in use, or waits to be free.
struct BufferUse {
  std::uint64_t offset = 0;
  std::uint32_t size_class = 0;
};

/// What the way down says of a node.
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

/// An item of a sorted block and where it begins.
struct PlacedItem {
  std::uint32_t offset = 0;
  SortedItem item;
};

/// What a leaf holds in its newest state.
struct LeafContent {
  std::uint64_t items = 0;
  std::vector<wire::ValueRef> values;  // those that lie in buffers of their own
};

/// Whether a reference names bytes of the map's region, and room for so many of them.
[[nodiscard]] bool in_region(const MapCore& map, wire::Ref ref, std::uint64_t bytes);
/// Whether the page table has an entry for this LID.
[[nodiscard]] bool lid_in_range(const MapCore& map, wire::Lid lid);

/// Identity, kind, level, fences, versions, predecessors, neighbours. Returns whether the rest of
/// the node can be looked at.
bool audit_header(NodeAudit& audit);
/// Whether the scale of the heads takes in the first and the last 8 bytes that it must order.
void audit_scale(NodeAudit& audit, std::uint64_t first, std::uint64_t last);
/// Groups, heads and separators. Returns the children as far as they can be followed.
std::vector<Child> audit_interior(NodeAudit& audit);
/// Items of the sorted block, chunk heads and starts. Returns the items.
std::vector<PlacedItem> audit_sorted(NodeAudit& audit);
/// The log block against the sorted block. Returns the leaf's newest content.
LeafContent audit_log(NodeAudit& audit, std::span<const PlacedItem> sorted);
/// Whether a value that the leaf refers to is there. Returns whether its buffer may be counted.
bool audit_value(NodeAudit& audit, const wire::ValueRef& value);

/// A map's header, its page table and its LIDs against what the tree holds, and its counters.
struct TreeContent {
  std::vector<wire::Lid> lids;  // sorted
  std::uint64_t leaves = 0;
  std::uint64_t interior_nodes = 0;
  std::uint64_t items = 0;
  std::uint64_t value_bytes = 0;
  std::vector<BufferUse> buffers;  // in use, and waiting
};
void audit_map_header(const MapCore& map, Report& report);
void audit_counters(const MapCore& map, const TreeContent& content, Report& report);
void audit_lids(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                const TreeContent& content, Report& report);
void audit_waiting(const MapCore& map, const memory::Reclaimer::Waiting& waiting,
                   TreeContent& content, Report& report);
/// Sorts the buffers and checks that no two overlap.
void audit_overlaps(std::vector<BufferUse>& buffers, Report& report);
/// What the pool handed out against all buffers of all maps.
void audit_pool(const StoreCore& store, std::span<const BufferUse> buffers, Report& report);

}  // namespace espalier::tree
