// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/map_cache.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/prefetch.hpp"
#include "kinds/map/walk/next_step.hpp"

namespace espalier::place {
namespace {

constexpr std::uint32_t kChunk = NodeCache::kChunkBytes;
constexpr std::uint32_t kHeaderLine = 64;  // the part of a leaf's header that its chunk begins with
// Offset of the lock word in a cached leaf head.
constexpr std::size_t kLock =
    offsetof(wire::NodeHeader, lock) - offsetof(wire::NodeHeader, low_key_prefix);

/// Room for an image, padded for searches that load whole vectors.
std::unique_ptr<std::uint64_t[]> image_room(std::uint32_t node_bytes) {
  return std::make_unique<std::uint64_t[]>((node_bytes + 64) / 8);
}

}  // namespace

MapCache::MapCache(NodeCache& nodes, const tree::MapView& view, bool leaves)
    : nodes_(nodes),
      view_(view),
      leaves_(leaves),
      scratch_(image_room(view.geometry.node_bytes)),
      root_(image_room(view.geometry.node_bytes)),
      slots_bytes_(slots_bytes()) {}

const std::byte* MapCache::find(wire::Ref ref, std::uint32_t chunk) const {
  if (ref == root_ref_ && chunk < root_has_.size()) {
    return root_has_[chunk] ? root_bytes() + std::size_t{chunk} * kChunk : nullptr;
  }
  return nodes_.find(ref, chunk);
}

void MapCache::keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes) {
  if (ref != root_ref_) return nodes_.keep(ref, chunk, bytes);
  std::memcpy(root_bytes() + std::size_t{chunk} * kChunk, bytes.data(), bytes.size());
  root_has_.set(chunk);
}

// Copies these bytes of a node into the scratch image; false if they are not all cached.
bool MapCache::bring(wire::Ref ref, std::uint32_t begin, std::uint32_t end) {
  end = std::min(end, view_.geometry.node_bytes);
  for (std::uint32_t chunk = begin / kChunk; chunk * kChunk < end; ++chunk) {
    const std::byte* const kept = find(ref, chunk);
    if (kept == nullptr) return false;
    std::memcpy(scratch() + std::size_t{chunk} * kChunk, kept, kChunk);
    if (ref == root_ref_) continue;  // every walk reads it, and it lies in a near cache
    taken_bytes_ += kChunk;
    if (balancer_ != nullptr) balancer_->took(kChunk);
  }
  return true;
}

// The root is exempt: every walk reads it, and it lies in a near cache.
bool MapCache::goes_to_host(const tree::CachedWay& way) {
  if (balancer_ == nullptr || way.lid == view_.root) return false;
  constexpr std::uint64_t kGroup = sizeof(wire::ChildGroup);
  return find(way.ref, 0) != nullptr &&
         balancer_->sends_to_host(view_.geometry.groups_begin + kGroup);
}

bool MapCache::bring_groups(const tree::Cursor& cursor, const tree::NodeView& node,
                            const tree::GroupChoice& choice, wire::Ref ref) {
  std::uint32_t first = choice.first;
  std::uint32_t last = choice.last;
  const bool from_end = tree::from_the_end(cursor);
  if (from_end) {
    const std::uint32_t children = node.children();
    first = last = children == 0 ? 0 : (children - 1) / wire::kGroupChildren;
  }
  constexpr std::uint32_t kGroup = sizeof(wire::ChildGroup);
  if (!bring(ref, node.group_offset(first), node.group_offset(last) + kGroup)) return false;
  if (from_end || !tree::ties_among_children(node, choice, view_.kit)) return true;
  const std::uint32_t slots_begin = tree::NodeHead::read(node.bytes()).sorted_end();
  return bring(ref, std::min(slots_begin, view_.geometry.node_bytes), view_.geometry.node_bytes);
}

// Descends one level. False: no further; `way` then says where the walk continues.
bool MapCache::step_down(tree::Cursor& cursor, tree::CachedWay& way) {
  const tree::Geometry& g = view_.geometry;
  const bool root = way.lid == view_.root;
  if (!bring(way.ref, 0, g.groups_begin)) {
    const bool leaf = root && leaves_ && nodes_.find(way.ref, kLeafHead) != nullptr;
    if (leaf) way.level = 0;
    return false;
  }
  const tree::NodeView node(scratch(), g);
  const tree::NodeHead head = tree::NodeHead::read(scratch());
  if (tree::needs_fences(cursor, head) &&
      !bring(way.ref, std::min(node.fence_begin(), g.node_bytes), g.node_bytes)) {
    return false;
  }
  const tree::Step step = tree::visit(view_, cursor, node, head, way.ref);
  // Levels strictly decrease, whatever the bytes are: so the descent terminates.
  const bool level_is_meant = head.level() != 0 && (root || head.level() == way.level);
  if (step.kind != tree::StepKind::child || !level_is_meant) {
    way = {{}, view_.root, 1, true};
    return false;
  }
  const tree::GroupChoice choice = tree::choose_group(node, head, cursor.key, view_.kit);
  if (!bring_groups(cursor, node, choice, way.ref)) return false;
  above_ = way.ref;
  child_ = tree::child_of(cursor, node, choice, view_.kit);
  const wire::Lid child = node.child(child_);
  way = {{}, child, head.level() - 1, child == 0 || child == view_.root};
  if (way.misled) way = {{}, view_.root, 1, true};
  return !way.misled;
}

tree::CachedWay MapCache::descend(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level) {
  const tree::CachedWay way = go_down(cursor, lid, level, true);
  ++descents_;
  if (way.ref && way.level == 0) ++hits_;
  return way;
}

wire::Ref MapCache::lowest_known(const tree::SearchKey& key) {
  tree::Cursor cursor;
  cursor.key = key;
  const tree::CachedWay way = go_down(cursor, view_.root, 1, false);
  if (way.misled) return {};
  return way.ref ? way.ref : above_;
}

tree::CachedWay MapCache::go_down(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level,
                                  bool balanced) {
  above_ = {};
  tree::CachedWay way{{}, lid, level, false};
  // The newest state leads to the newest leaf, which names its predecessors.
  const std::uint64_t version = std::exchange(cursor.read_version, tree::kNewest);
  const wire::Ref other = std::exchange(cursor.other_predecessor, {});
  do {
    way.ref = way.lid == view_.root && root_ref_ ? root_ref_ : nodes_.place(view_.id, way.lid);
    if (way.ref && !view_.holds_node(way.ref)) way.ref = {};
  } while (way.ref && way.level != 0 && !(balanced && goes_to_host(way)) && step_down(cursor, way));
  cursor.read_version = version;
  cursor.other_predecessor = other;
  return way;
}

// --- descents of many gets -----------------------------------------------------------------------

// Levels strictly decrease, as above, and nodes are read in the cache itself.
bool MapCache::find_group(const tree::SearchKey& key, GroupAbove& above) {
  above.leaf = 0;
  if (view_.geometry.groups_begin > kChunk) return false;  // a node's head exceeds one chunk
  above.ref = root_ref_;
  for (std::uint32_t level = 0;;) {
    const std::byte* const at = above.ref ? find(above.ref, 0) : nullptr;
    if (at == nullptr) return false;
    const tree::NodeHead head = tree::NodeHead::read(at);
    const bool level_is_meant = head.level() != 0 && (level == 0 || head.level() == level);
    // Ignores fences: the leaf's decide.
    if (!level_is_meant || !tree::leads_by_head(view_, key, tree::kNewest, at, head, above.ref)) {
      return false;
    }
    level = head.level() - 1;
    const tree::NodeView node(at, view_.geometry);
    const tree::GroupChoice choice = tree::choose_group(node, head, key, view_.kit);
    const std::uint32_t offset = node.group_offset(choice.first);
    if (offset + sizeof(wire::ChildGroup) > view_.geometry.node_bytes) return false;
    above.chunk = offset / kChunk;
    above.begin = offset % kChunk;
    above.scaled = static_cast<std::uint32_t>(choice.scaled >> 32);
    above.first = choice.first == 0;
    wire::Lid lid = 0;
    if (choice.first != choice.last) {
      lid = tied_child(key, above.ref);
      if (level == 0) above.leaf = lid;
    } else if (level != 0) {
      lid = bring_group(above) ? child_in(key, above) : 0;
    } else if (above.ref != root_ref_) {
      nodes_.prefetch_tags(above.ref, above.chunk);
      if (above.in_two_chunks()) nodes_.prefetch_tags(above.ref, above.chunk + 1);
    }
    if (level == 0) return choice.first == choice.last || lid != 0;
    if (lid == 0) return false;
    above.ref = nodes_.place(view_.id, lid);
  }
}

bool MapCache::bring_group(GroupAbove& above) const {
  if (above.leaf != 0) return true;
  const std::byte* const chunk = find(above.ref, above.chunk);
  if (chunk == nullptr) return false;
  if (above.in_two_chunks()) {
    const std::byte* const next = find(above.ref, above.chunk + 1);
    if (next == nullptr) return false;
    const std::size_t here = kChunk - above.begin;
    std::memcpy(above.copy, chunk + above.begin, here);
    std::memcpy(above.copy + here, next, sizeof above.copy - here);
    above.group = above.copy;
    return true;
  }
  above.group = chunk + above.begin;
  base::prefetch_line(above.group);
  base::prefetch_line(above.group + base::kLineBytes);
  return true;
}

wire::Lid MapCache::child_in(const tree::SearchKey& key, const GroupAbove& above) const {
  const tree::Rank rank = view_.kit.rank32(above.group, above.scaled);
  // Child 0 of a node begins at or below every key that the node covers.
  const bool child_0 = above.first && rank.below == 0 && rank.below_or_equal <= 1;
  if (!child_0 && (rank.below == 0 || rank.below != rank.below_or_equal)) {
    return tied_child(key, above.ref);
  }
  const std::uint32_t child = child_0 ? 0 : rank.below - 1;
  const auto lid = base::load_plain<wire::Lid>(above.group + offsetof(wire::ChildGroup, children) +
                                               sizeof(wire::Lid) * child);
  return lid == view_.root ? 0 : lid;
}

namespace {

/// Bytes of a node that is cached in chunks; copies those that span several.
/// Thread: one.
template <class Find>
class KeptBytes {
 public:
  explicit KeptBytes(const Find& find) : find_(find) {}
  /// Null: some of the bytes are not cached. Valid until the next call.
  const std::byte* at(std::uint32_t begin, std::uint32_t bytes) {
    const std::uint32_t chunk = begin / kChunk;
    if (chunk != chunk_ || here_ == nullptr) {
      chunk_ = chunk;
      here_ = find_(chunk);
    }
    if (here_ == nullptr) return nullptr;
    const std::uint32_t from = begin % kChunk;
    if (from + bytes <= kChunk) return here_ + from;
    if (bytes > sizeof together_) return nullptr;
    std::uint32_t done = kChunk - from;
    std::memcpy(together_, here_ + from, done);
    for (std::uint32_t next = chunk + 1; done < bytes; ++next) {
      const std::byte* const kept = find_(next);
      if (kept == nullptr) return nullptr;
      const std::uint32_t more = std::min(bytes - done, kChunk);
      std::memcpy(together_ + done, kept, more);
      done += more;
    }
    return together_;
  }

 private:
  const Find& find_;
  std::uint32_t chunk_ = 0;
  const std::byte* here_ = nullptr;
  std::byte together_[2 * kChunk];
};
static_assert(wire::kKeyBytesMax <= 2 * kChunk);

}  // namespace

// Decides between children whose key prefixes tie, as the host's groups do, in a node cached in
// chunks.
wire::Lid MapCache::tied_child(const tree::SearchKey& key, wire::Ref ref) const {
  const std::byte* const at = find(ref, 0);
  if (at == nullptr) return 0;
  const tree::NodeView node(at, view_.geometry);
  const tree::NodeHead head = tree::NodeHead::read(at);
  const tree::GroupChoice choice = tree::choose_group(node, head, key, view_.kit);
  const auto find_piece = [this, ref](std::uint32_t chunk) { return find(ref, chunk); };
  KeptBytes slots(find_piece);
  KeptBytes pieces(find_piece);
  const std::uint32_t end = view_.geometry.node_bytes;
  bool missing = false;
  const auto bytes_at = [&](auto& of, std::uint32_t begin, std::uint32_t bytes) {
    const std::byte* const kept =
        bytes <= end && begin <= end - bytes ? of.at(begin, bytes) : nullptr;
    missing = missing || kept == nullptr;
    return kept;
  };
  constexpr std::uint32_t kGroup = sizeof(wire::ChildGroup);
  const std::byte* const first = bytes_at(slots, node.group_offset(choice.first), kGroup);
  const std::byte* const last = bytes_at(pieces, node.group_offset(choice.last), kGroup);
  if (missing) return 0;
  const tree::ChildRange range = tree::child_range(first, last, choice, view_.kit);
  const std::uint32_t slots_begin = head.sorted_end();
  const auto separator = [&](std::uint32_t child) -> std::string_view {
    const std::byte* const slot = bytes_at(slots, slots_begin + 2 * child, 2);
    if (slot == nullptr) return {};
    const std::uint32_t begin = base::load_plain<std::uint16_t>(slot);
    const std::byte* const length = bytes_at(pieces, begin, 2);
    if (length == nullptr) return {};
    const std::uint32_t bytes = base::load_plain<std::uint16_t>(length);
    const std::byte* const text = bytes_at(pieces, begin + 2, bytes);
    if (text == nullptr) return {};
    return {reinterpret_cast<const char*>(text), bytes};
  };
  const std::uint32_t child =
      range.below == range.at_most
          ? range.below - 1
          : tree::choose_among_equal(node.children(), key, choice.equal, range, separator);
  if (missing) return 0;
  const auto in_group = static_cast<std::uint32_t>(
      offsetof(wire::ChildGroup, children) + sizeof(wire::Lid) * (child % wire::kGroupChildren));
  const std::byte* const lid = bytes_at(
      pieces, node.group_offset(child / wire::kGroupChildren) + in_group, sizeof(wire::Lid));
  if (lid == nullptr) return 0;
  const auto found = base::load_plain<wire::Lid>(lid);
  return found == view_.root ? 0 : found;
}

wire::Lid MapCache::leaf_in(const tree::SearchKey& key, const GroupAbove& above) {
  const wire::Lid lid = above.leaf != 0 ? above.leaf : child_in(key, above);
  if (lid == 0) return 0;
  nodes_.prefetch_place(view_.id, lid);
  ++descents_;
  ++hits_;
  return lid;
}

namespace {

/// Normalises a bound for the node above leaves; nothing if the bound lies outside that node.
std::optional<std::uint32_t> bound_in(const tree::NodeView& node, bool forward,
                                      const tree::SearchKey* bound) {
  if (bound == nullptr) return std::nullopt;
  const tree::NodeHead head = tree::NodeHead::read(node.bytes());
  const bool beyond =
      forward ? bound->prefix() >= head.high_key_prefix : bound->prefix() <= head.low_key_prefix;
  if (beyond) return std::nullopt;
  return static_cast<std::uint32_t>(tree::scale_among_children(node, head, *bound).scaled >> 32);
}

}  // namespace

MapCache::Neighbours MapCache::neighbours(tree::Cursor& cursor, const tree::SearchKey* bound,
                                          std::span<wire::Lid> lids) {
  Neighbours found;
  const tree::CachedWay way = go_down(cursor, view_.root, 1, false);
  found.known = above_ && way.level == 0 && !way.misled;
  if (!found.known) return found;
  found.above = above_;
  const tree::NodeView node(scratch(), view_.geometry);
  const bool forward = cursor.goal == tree::Goal::forward;
  const auto until = bound_in(node, forward, bound);
  const std::uint32_t children = node.children();
  std::uint32_t group = ~std::uint32_t{0};
  for (std::uint32_t child = child_; found.count < lids.size();) {
    if (forward ? child + 1 >= children : child == 0) break;
    child = forward ? child + 1 : child - 1;
    if (std::exchange(group, child / wire::kGroupChildren) != group) {
      const std::uint32_t begin = node.group_offset(group);
      const std::uint32_t end = begin + static_cast<std::uint32_t>(sizeof(wire::ChildGroup));
      if (end > view_.geometry.node_bytes) break;
      if (!bring(above_, begin, end)) {
        found.missing_begin = begin / kChunk * kChunk;
        found.missing_bytes = (end + kChunk - 1) / kChunk * kChunk - found.missing_begin;
        break;
      }
    }
    const auto prefix =
        base::load_plain<std::uint32_t>(scratch() + node.group_offset(group) +
                                        sizeof(std::uint32_t) * (child % wire::kGroupChildren));
    if (forward && until && prefix > *until) break;
    const wire::Lid lid = node.child(child);
    if (lid == 0 || lid == view_.root) break;
    lids[found.count++] = lid;
    if (!forward && until && prefix < *until) break;
  }
  return found;
}

// --- insertion -----------------------------------------------------------------------------------

void MapCache::keep_node(wire::Ref ref, const std::byte* image, std::uint32_t begin,
                         std::uint32_t end) {
  const tree::NodeView node(image, view_.geometry);
  if (node.superseded() != wire::kLive) return;  // no walk reaches it again
  if (node.lid() == view_.root && ref != root_ref_) {
    root_ref_ = ref;
    root_has_.reset();
  }
  const std::uint32_t first = (begin + kChunk - 1) / kChunk;
  if (first == 0) keep_place(node.lid(), ref);
  if (first != 0 && find(ref, 0) == nullptr) return;  // the node was not admitted
  for (std::uint32_t chunk = first; (chunk + 1) * kChunk <= end; ++chunk) {
    keep(ref, chunk, {image + std::size_t{chunk} * kChunk, kChunk});
  }
}

void MapCache::keep_piece(wire::Ref ref, std::uint32_t begin, std::span<const std::byte> bytes) {
  if (find(ref, 0) == nullptr) return;  // the node was not admitted
  for (std::uint32_t at = 0; at + kChunk <= bytes.size(); at += kChunk) {
    keep(ref, (begin + at) / kChunk, bytes.subspan(at, kChunk));
  }
}

bool MapCache::moved(const MappingChange& change) {
  const bool root = change.lid == view_.root;
  const wire::Ref known = nodes_.move_place(view_.id, change.lid, change.ref);
  const wire::Ref before = root && root_ref_ ? root_ref_ : known;
  if (!before || before == change.ref) return false;
  if (root) {
    root_ref_ = {};
    keep_place(change.lid, change.ref);
    return true;
  }
  if (tree::planted(tree::Bug::moved_node_kept)) return true;
  nodes_.forget(before, kLeafHead);
  if (nodes_.find(before, 0) == nullptr) return true;  // a leaf, or its chunks get evicted in time
  const std::uint32_t chunks = (view_.geometry.node_bytes + kChunk - 1) / kChunk;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) nodes_.forget(before, chunk);
  return true;
}

void MapCache::forget_places() {
  nodes_.forget_places(view_.id);
  root_ref_ = {};
}

// --- heads of leaves -----------------------------------------------------------------------------
//
//   40  the header's first line without identity and versions: key prefixes of the fences, scale,
//       lock, shape; the begin of the fences in place of kind and level, which all leaves share
//       the log's slots, as of then; left out where there is no room for them
//       key prefixes and starts of the chunks
namespace {

constexpr std::size_t kLineBegin = offsetof(wire::NodeHeader, low_key_prefix);
constexpr std::size_t kLineBytes = kHeaderLine - kLineBegin;
constexpr std::size_t kKindInLine = offsetof(wire::NodeHeader, kind) - kLineBegin;
static_assert(offsetof(wire::NodeHeader, level) == offsetof(wire::NodeHeader, kind) + 1 &&
              sizeof(wire::NodeHeader::fence_begin) == 2);

}  // namespace

std::uint32_t MapCache::slots_bytes() const {
  const tree::Geometry& g = view_.geometry;
  const std::uint32_t slots = g.key_prefixes_begin - g.slots_begin;
  return kLineBytes + slots + chunk_heads_bytes() <= kChunk ? slots : 0;
}

std::uint32_t MapCache::chunk_heads_bytes() const {
  const tree::Geometry& g = view_.geometry;
  return g.starts_begin + g.chunks_max - g.key_prefixes_begin;
}

void MapCache::keep_leaf(wire::Ref ref, const std::byte* image) {
  const tree::NodeView leaf(image, view_.geometry);
  if (leaf.superseded() != wire::kLive) return;
  keep_place(leaf.lid(), ref);
  if (leaf.lid() == view_.root) root_ref_ = {};
  if (!leaves_ || kLineBytes + chunk_heads_bytes() > kChunk) return;
  // All but the log is constant while the leaf lives.
  const std::byte* const kept = nodes_.find(ref, kLeafHead);
  const bool same_log =
      slots_bytes_ == 0 ||
      (kept != nullptr && base::load_plain<std::uint64_t>(kept + kLock) == leaf.lock_word().bits);
  if (kept != nullptr && same_log) return;
  std::byte head[kChunk];
  std::memcpy(head, image + kLineBegin, kLineBytes);
  const auto fences = static_cast<std::uint16_t>(leaf.fence_begin());
  std::memcpy(head + kKindInLine, &fences, sizeof fences);
  std::memcpy(head + kLineBytes, image + view_.geometry.slots_begin, slots_bytes_);
  const std::uint32_t bytes = chunk_heads_bytes();
  std::memcpy(head + kLineBytes + slots_bytes_, image + view_.geometry.key_prefixes_begin, bytes);
  nodes_.keep(ref, kLeafHead, {head, kLineBytes + slots_bytes_ + bytes});
}

const std::byte* MapCache::leaf_head(wire::Ref ref) {
  const std::byte* const kept = kept_leaf_head(ref);
  return kept == nullptr ? nullptr : leaf_head_from(kept);
}

const std::byte* MapCache::leaf_head_from(const std::byte* head) {
  std::memcpy(scratch() + kLineBegin, head, kLineBytes);
  std::uint16_t fences = 0;
  std::memcpy(&fences, head + kKindInLine, sizeof fences);
  base::store_plain(scratch() + offsetof(wire::NodeHeader, fence_begin), fences);
  base::store_plain(scratch() + offsetof(wire::NodeHeader, kind), wire::NodeKind::leaf);
  base::store_plain(scratch() + offsetof(wire::NodeHeader, level), std::uint8_t{0});
  if (slots_bytes_ == 0) {
    base::store_plain(scratch() + offsetof(wire::NodeHeader, lock), std::uint64_t{0});
  }
  std::memcpy(scratch() + view_.geometry.slots_begin, head + kLineBytes, slots_bytes_);
  std::memcpy(scratch() + view_.geometry.key_prefixes_begin, head + kLineBytes + slots_bytes_,
              chunk_heads_bytes());
  return scratch();
}

}  // namespace espalier::place
