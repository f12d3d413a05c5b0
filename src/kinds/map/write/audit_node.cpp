// SPDX-License-Identifier: Apache-2.0
// Audit of node headers: identity, key range and versions.
#include <algorithm>

#include "kinds/map/write/audit_parts.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

void audit_identity(NodeAudit& a) {
  a.report.expect(a.header.map_id == a.map.id, "it belongs to map ", a.header.map_id);
  a.report.expect(a.header.lid == a.place.lid, "it says that its LID is ", a.header.lid);
  a.report.expect((a.header.generation & wire::kGenerationMask) == a.place.ref.generation(),
                  "its generation is not the one that the page table expects");
  a.report.expect(a.header.superseded == wire::kLive, "it is in the tree but not live");
  a.report.expect(!wire::LockWord{a.header.lock}.locked(), "it is locked");
  a.report.expect(a.header.self_ref == a.place.ref.bits,
                  "its reference to itself is not what the page table says");
}

bool audit_shape(NodeAudit& a) {
  const bool leaf = a.header.kind == wire::NodeKind::leaf;
  if (!a.report.expect(leaf || a.header.kind == wire::NodeKind::interior, "it is of no kind")) {
    return false;
  }
  const bool kind =
      a.report.expect(leaf == (a.place.level == 0), "its kind does not fit its depth");
  const bool level =
      a.report.expect(a.header.level == a.place.level, "its level is ",
                      std::uint64_t{a.header.level}, " at the depth of level ", a.place.level);
  return kind && level;
}

bool audit_fences(NodeAudit& a) {
  const std::uint32_t bytes = std::uint32_t{a.header.low_bytes} + a.header.high_bytes;
  if (!a.report.expect(bytes <= a.g.node_bytes - sizeof(wire::NodeHeader),
                       "its fences are longer than the node") ||
      !a.report.expect(a.header.fence_begin == std::min(a.g.node_bytes - bytes, a.g.node_bytes - 1),
                       "its fences do not end where the node ends")) {
    return false;
  }
  const std::string_view low = a.node.low_fence();
  const std::string_view high = a.node.high_fence();
  a.report.expect(low == a.place.low, "its low fence is not its parent's separator");
  a.report.expect(high == a.place.high, "its high fence is not its parent's separator");
  a.report.expect(high.empty() || compare_keys(low, high) < 0, "its fences do not ascend");
  a.report.expect(a.header.low_key_prefix == key_prefix_of(low),
                  "its low_key_prefix is not that of its low fence");
  a.report.expect(
      a.header.high_key_prefix == (high.empty() ? ~std::uint64_t{0} : key_prefix_of(high)),
      "its high_key_prefix is not that of its high fence");
  const auto differ = std::mismatch(low.begin(), low.end(), high.begin(), high.end());
  const auto shared = static_cast<std::uint32_t>(differ.first - low.begin());
  if (a.header.kind == wire::NodeKind::interior) {
    a.report.expect(a.header.lock == wire::FencesShare::of(shared).bits,
                    "its lock word is not what its fences share");
  } else {
    a.report.expect(a.header.prefix_bytes == shared,
                    "its prefix_bytes are not what its fences share");
  }
  return true;
}

// A reclaimed predecessor needs no check: its generation has advanced, and walkers notice.
void audit_predecessor(NodeAudit& a, wire::Ref ref, bool second) {
  if (!ref) return;
  if (!a.report.expect(in_region(a.map, ref, a.g.node_bytes),
                       "its predecessor is outside the region") ||
      !a.report.expect(ref != a.place.ref, "it is its own predecessor")) {
    return;
  }
  const NodeView old = a.map.view(ref);
  if ((old.generation() & wire::kGenerationMask) != ref.generation()) return;
  a.report.expect(old.map_id() == a.map.id, "its predecessor belongs to another map");
  a.report.expect(old.superseded() == a.header.created,
                  "its predecessor was not superseded when it came to be");
  const std::string_view low = old.low_fence();
  const std::string_view high = old.high_fence();
  const bool before = !high.empty() && compare_keys(high, a.place.low) <= 0;
  const bool behind = !a.place.high.empty() && compare_keys(a.place.high, low) <= 0;
  a.report.expect(!before && !behind, "its predecessor covers none of its keys");
  a.report.expect(!second || old.low_key_prefix() == a.header.old2_low_key_prefix,
                  "its old2_low_key_prefix is not that of its second predecessor");
}

void audit_history(NodeAudit& a) {
  const wire::Ref old{a.header.old_ref};
  const wire::Ref old2{a.header.old2_ref};
  a.report.expect(a.header.created <= a.map.clock.taken(),
                  "it was created by a version not taken yet");
  a.report.expect(a.header.successor_ref == 0, "it is live but names a successor");
  a.report.expect(a.map.options.versions || (!old && !old2),
                  "it names a predecessor although versions are off");
  a.report.expect(old || !old2, "it has a second predecessor but no first");
  audit_predecessor(a, old, false);
  audit_predecessor(a, old2, true);
}

}  // namespace

bool in_region(const MapCore& map, wire::Ref ref, std::uint64_t bytes) {
  return ref.offset() >= memory::kExtentBytes && ref.offset() + bytes <= map.store.region.bytes();
}

bool lid_in_range(const MapCore& map, wire::Lid lid) {
  return lid % wire::kTablePageEntries >= wire::kHeaderWords && map.table.entry_offset(lid) != 0;
}

bool audit_header(NodeAudit& a) {
  audit_identity(a);
  const bool shape = audit_shape(a);
  const bool fences = audit_fences(a);
  audit_history(a);
  // Neighbours are hints and may be stale, but always valid LIDs.
  for (const wire::Lid lid : {a.header.left, a.header.right}) {
    a.report.expect(lid == 0 || lid_in_range(a.map, lid), "its neighbour ", lid, " is no LID");
  }
  return shape && fences;
}

void audit_scale(NodeAudit& a, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t base = a.header.key_prefix_base;
  const std::uint32_t shift = a.header.key_prefix_shift;
  a.report.expect(base <= first && shift < 64 && last - base <= ~std::uint64_t{0} >> shift,
                  "its heads do not span its keys");
}

bool audit_value(NodeAudit& a, const wire::ValueRef& value) {
  const wire::Ref ref{value.ref};
  if (!a.report.expect(value.bytes <= wire::kValueBytesMax, "a value is too long") ||
      !a.report.expect(in_region(a.map, ref, sizeof(wire::ValueHeader) + value.bytes),
                       "a value is outside the region")) {
    return false;
  }
  wire::ValueHeader header;
  std::memcpy(&header, a.map.at(ref.offset()), sizeof header);
  a.report.expect(header.map_id == a.map.id, "a value belongs to another map");
  a.report.expect(header.superseded == wire::kLive, "a value is not live");
  a.report.expect(header.created == wire::kNoNode, "a value could pass for a node");
  a.report.expect(header.bytes == value.bytes, "a value has ", header.bytes,
                  " bytes, its item says ", value.bytes);
  return a.report.expect((header.generation & wire::kGenerationMask) == ref.generation(),
                         "a value's generation is not the one that its item expects");
}

}  // namespace espalier::tree
