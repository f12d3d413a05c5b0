// SPDX-License-Identifier: Apache-2.0
// The access of remote walks: bytes arrive by one-sided READs, and are valid as long as a lease is
// held.
//
// Thread: that of its port.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/remote/leaves_ahead.hpp"
#include "kinds/map/remote/map_cache.hpp"
#include "kinds/map/walk/ahead_access.hpp"
#include "kinds/map/walk/leaf_samples.hpp"
#include "kinds/map/walk/map_view.hpp"
#include "reach/batch_header.hpp"
#include "reach/lease_guard.hpp"
#include "reach/read_port.hpp"

namespace espalier::place {

/// How walks read a node by key: a switch on the path, or else the node at its end, returns the
/// node that it takes for the right one.
struct KeyedReads {
  fabric::RegionKey key = 0;
  std::string prefix;       // shared prefix that key numbers omit
  std::uint32_t bytes = 0;  // payload of one packet; the rest of a larger node is read separately
};

/// Counts of leaves read ahead for scans.
struct AheadCounts {
  std::uint64_t asked = 0;
  std::uint64_t taken = 0;  // leaves that the scan used
};

/// Requests the head of a map's header with the read version in its place: a map that shares its
/// clock has the version in its group's header. Errors: std::bad_alloc.
inline void want_map_head(ReadPort& port, LaneReads& reads, const tree::MapView& view,
                          std::byte* at) {
  constexpr std::uint32_t kVersion = offsetof(wire::MapHeader, read_version);
  if (!view.shares_clock() || tree::planted(tree::Bug::own_clock_read)) {
    port.want(reads, view.header_offset, at, tree::kMapHeaderHead);
    return;
  }
  port.want(reads, view.header_offset, at, sizeof(wire::BufferHeader));
  port.want(reads, view.clock_offset, at + kVersion, tree::kMapHeaderHead - kVersion);
}

/// State shared by all walks of one reader.
struct ReaderState {
  ReadPort* port = nullptr;
  LeaseGuard* lease = nullptr;
  std::uint64_t (*now_ns)(const void*) = nullptr;
  const void* clock = nullptr;
  MapCache* cache = nullptr;  // null: no cache
  /// Cached entries of the page table's directory: table pages stay in place while the map lives.
  /// 0: unknown.
  std::vector<std::uint64_t> table_pages;
  /// The read of the map's header shared by walks that begin now; null: the next walk that begins
  /// issues it.
  std::shared_ptr<BatchHeader> batch;
  std::optional<KeyedReads> keyed;
  tree::LeafSamples samples;
  std::uint32_t leaves_ahead = 0;  // limit per doorbell of a scan
  AheadCounts ahead;

  /// The header read so far is too old for walks that begin from now on.
  void end_batch() {
    if (!tree::planted(tree::Bug::read_version_kept)) batch.reset();
  }
  [[nodiscard]] std::uint64_t now() const { return now_ns(clock); }
};

class OneSidedAccess {
 public:
  static constexpr bool kInPlace = false;

  OneSidedAccess(ReaderState& state, const tree::MapView& view, base::ReadyQueue& ready);

  // --- the cache (kinds/map/walk/cached_way.hpp) -------------------------------------------------
  [[nodiscard]] tree::CachedWay descend(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level) {
    if (state_->cache == nullptr) return {{}, lid, level, false};
    return state_->cache->descend(cursor, lid, level);
  }
  void enter(wire::Ref ref, wire::Lid lid, std::uint32_t level);
  [[nodiscard]] const std::byte* leaf_head(wire::Ref ref) {
    return state_->cache == nullptr ? nullptr : state_->cache->leaf_head(ref);
  }
  [[nodiscard]] bool knows_logs() const {
    return state_->cache != nullptr && state_->cache->knows_logs();
  }
  void learn_place(wire::Lid lid, wire::Ref ref) {
    if (state_->cache != nullptr) state_->cache->keep_place(lid, ref);
  }
  void learn_node(const std::byte* image);
  void learn_leaf(const std::byte* image) {
    if (state_->cache != nullptr) state_->cache->keep_leaf(ref_, image);
  }
  void want_proof(wire::Ref ref);

  // --- leaves read ahead (kinds/map/walk/ahead_access.hpp) ---------------------------------------
  void want_ahead(tree::Cursor& cursor, const tree::SearchKey* bound, std::uint32_t leaves);
  [[nodiscard]] tree::LeafAhead take_ahead(wire::Lid lid);
  [[nodiscard]] bool seeks_above(tree::Cursor& cursor) {
    return ahead_ && ahead_->seeks_above(cursor);
  }

  // --- reads (kinds/map/walk/access.hpp) ---------------------------------------------------------
  [[nodiscard]] const std::byte* image(std::uint64_t offset);
  void want(const std::byte* image, std::uint32_t begin, std::uint32_t bytes);
  [[nodiscard]] const std::byte* bytes(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] const std::byte* map_header(std::uint64_t offset);
  [[nodiscard]] std::uint64_t table_page(std::uint64_t named) const {
    return state_->table_pages[entry_of(named)];
  }
  void learn_table_page(std::uint64_t named, std::uint64_t page) {
    state_->table_pages[entry_of(named)] = page;
  }
  [[nodiscard]] bool reads_in_order() const { return state_->port->reads_in_order(); }
  /// Whether a READ failed since the walk entered.
  [[nodiscard]] bool failed() const { return reads_->failed; }

  /// Whether a walk can begin with a READ of its key.
  [[nodiscard]] bool reads_by_key() const { return state_->keyed.has_value(); }
  /// Requests the beginning of a node for this key, as an image whose offset is not known yet.
  [[nodiscard]] const std::byte* node_by_key(const tree::SearchKey& key);
  /// The node that arrived names itself `ref`.
  void came_to(wire::Ref ref);
  [[nodiscard]] bool node_is_whole() const { return come_bytes_ == node_bytes_; }
  [[nodiscard]] bool node_has_come(std::uint32_t bytes) const { return come_bytes_ >= bytes; }
  void answered(wire::Lid leaf) { state_->samples.answered(leaf); }

  struct Entry {
    OneSidedAccess* access;
    [[nodiscard]] bool await_ready() const { return access->may_enter(); }
    void await_suspend(std::coroutine_handle<> walk) const;
    [[nodiscard]] bool await_resume() const { return access->enter(); }
  };
  struct Arrival {
    OneSidedAccess* access;
    [[nodiscard]] bool await_ready() const {
      return access->reads_->wanted.empty() && !access->waits_for_header();
    }
    void await_suspend(std::coroutine_handle<> walk) const { access->send(walk); }
    void await_resume() const { access->take_arrival(); }
  };
  struct Confirmation {
    OneSidedAccess* access;
    wire::Ref ref;
    [[nodiscard]] bool await_ready() const {
      return access->proof_of_ == ref || access->is_confirmed(ref) ||
             tree::planted(tree::Bug::not_confirmed);
    }
    void await_suspend(std::coroutine_handle<> walk) const;
    [[nodiscard]] tree::Confirmed await_resume() const { return access->confirmed(ref); }
  };
  [[nodiscard]] Entry entered() { return {this}; }
  [[nodiscard]] Arrival arrived(tree::Warmth) { return {this}; }
  /// Confirms by a READ of the buffer's header, after the last byte. The READ succeeds only while
  /// the region key is valid, so the lease was held until then; the lease must also have been
  /// renewed recently. No further wait if want_proof() has issued the READ.
  [[nodiscard]] Confirmation confirm(wire::Ref ref) { return {this, ref}; }
  /// Awaits that the lease is believed again, or lost. Ready if it is believed.
  struct Belief {
    OneSidedAccess* access;
    [[nodiscard]] bool await_ready() const;
    void await_suspend(std::coroutine_handle<> walk) const;
    /// Whether the lease is the one under which the walk entered, and believed now.
    [[nodiscard]] bool await_resume() const;
    [[nodiscard]] bool same_lease() const;
  };
  [[nodiscard]] Belief believed() { return {this}; }
  [[nodiscard]] base::Pause again() const { return {ready_, false}; }

 private:
  /// A part of a node's image.
  struct Part {
    std::uint32_t begin;
    std::uint32_t end;
  };

  void note_part(Part part);
  [[nodiscard]] std::size_t entry_of(std::uint64_t named) const {
    return static_cast<std::size_t>(named - directory_offset_) / 8;
  }
  [[nodiscard]] bool may_enter() const;
  bool enter();
  void want_bytes(std::uint64_t offset, std::byte* into, std::uint64_t bytes);
  void read_proof(wire::Ref ref);
  void send(std::coroutine_handle<> walk);
  [[nodiscard]] bool waits_for_header() const {
    return header_ && !reads_header_ && !header_->come();
  }
  void take_arrival();
  [[nodiscard]] tree::Confirmed confirmed(wire::Ref ref);
  /// Whether the whole node arrived by one READ, which the node itself confirmed.
  [[nodiscard]] bool is_confirmed(wire::Ref ref) const { return come_ == ref && ref; }

  ReaderState* state_;
  const tree::MapView* view_;
  base::ReadyQueue* ready_;
  std::uint64_t directory_offset_;
  std::uint32_t node_bytes_;
  std::uint32_t map_id_;
  std::uint64_t node_offset_ = 0;  // region offset of the image's node
  wire::Ref come_{};               // the node read by key, if nothing was read beside it
  std::uint32_t come_bytes_ = 0;   // leading bytes of the image that have arrived
  std::uint64_t term_ = 0;         // of the lease at the walk's entry
  Landing node_;
  std::shared_ptr<BatchHeader> header_;  // source of this walk's version
  bool reads_header_ = false;            // this walk reads it for the batch, in flight
  Landing bytes_;
  Landing proof_;
  wire::Ref proof_of_{};       // the last request is the proof of this buffer
  wire::Ref ref_{};            // the node's reference, as given by the walk
  bool keeps_chunks_ = false;  // the walk expects an interior node whose chunks can be cached
  // Requested parts of the node that are not cached yet.
  std::array<Part, 4> parts_{};
  std::uint32_t parts_used_ = 0;
  std::unique_ptr<LeavesAhead> ahead_;  // null: none used yet
  std::unique_ptr<LaneReads> reads_;
};
static_assert(tree::AheadAccess<OneSidedAccess> && tree::SamplingAccess<OneSidedAccess>);

}  // namespace espalier::place
