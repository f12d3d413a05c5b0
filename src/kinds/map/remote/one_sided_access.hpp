// SPDX-License-Identifier: Apache-2.0
// The access of walks from elsewhere: bytes come by one-sided READs, and are believed as long as a
// lease is held.
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

/// How walks ask for a node by their key: a switch on the way, or else the node at its end, sends
/// one that it takes for the right one.
struct KeyedReads {
  fabric::RegionKey key = 0;
  std::string prefix;       // what the numbers of keys leave out
  std::uint32_t bytes = 0;  // that one packet carries; a larger node's rest is read by itself
};

/// Of leaves that scans had brought ahead.
struct AheadCounts {
  std::uint64_t asked = 0;
  std::uint64_t taken = 0;  // that the scan came to
};

/// Asks for the head of a map's header, and for the read version in its place, wherever that lies:
/// a map that shares its clock has it in its group's. Errors: std::bad_alloc.
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

/// What all walks of one reader share.
struct ReaderState {
  ReadPort* port = nullptr;
  LeaseGuard* lease = nullptr;
  std::uint64_t (*now_ns)(const void*) = nullptr;
  const void* clock = nullptr;
  MapCache* cache = nullptr;  // null: nothing is remembered
  /// What the page table's directory says, by its entries: table pages stay where they are while
  /// the map lives. 0: not known.
  std::vector<std::uint64_t> table_pages;
  /// What the walks that begin now read the map's header by; null: the next one that begins reads
  /// it.
  std::shared_ptr<BatchHeader> batch;
  std::optional<KeyedReads> keyed;
  tree::LeafSamples samples;
  std::uint32_t leaves_ahead = 0;  // that a scan has brought at once, at most
  AheadCounts ahead;

  /// What was read of the header so far is too old for walks that begin from here on.
  void end_batch() {
    if (!tree::planted(tree::Bug::read_version_kept)) batch.reset();
  }
  [[nodiscard]] std::uint64_t now() const { return now_ns(clock); }
};

class OneSidedAccess {
 public:
  static constexpr bool kInPlace = false;

  OneSidedAccess(ReaderState& state, const tree::MapView& view, base::ReadyQueue& ready);

  // --- what is remembered (kinds/map/walk/cached_way.hpp) ----------------------------------------
  [[nodiscard]] tree::CachedWay descend(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level) {
    if (state_->cache == nullptr) return {{}, lid, level, false};
    return state_->cache->descend(cursor, lid, level);
  }
  void enter(wire::Ref ref, std::uint32_t level);
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

  // --- leaves that a scan will come to (kinds/map/walk/ahead_access.hpp) -------------------------
  void want_ahead(tree::Cursor& cursor, const tree::SearchKey* bound, std::uint32_t leaves);
  [[nodiscard]] tree::LeafAhead take_ahead(wire::Lid lid);
  [[nodiscard]] bool seeks_above(tree::Cursor& cursor) {
    return ahead_ && ahead_->seeks_above(cursor);
  }

  // --- what is brought (kinds/map/walk/access.hpp) -----------------------------------------------
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
  /// Brings the beginning of the node that is sent for this key, as an image of no offset yet.
  [[nodiscard]] const std::byte* node_by_key(const tree::SearchKey& key);
  /// What has come says that it is this one.
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
  /// By a READ of the buffer's header, after the last byte: it succeeds only while the key is good,
  /// so the lease was held until then. And the lease must have been renewed not long ago.
  /// Where want_proof() has asked for it, it has come with the rest.
  [[nodiscard]] Confirmation confirm(wire::Ref ref) { return {this, ref}; }
  /// Until the lease is believed again, or lost. At once if it is believed.
  struct Belief {
    OneSidedAccess* access;
    [[nodiscard]] bool await_ready() const;
    void await_suspend(std::coroutine_handle<> walk) const;
    /// Whether it is the lease under which the walk entered, and believed at this moment.
    [[nodiscard]] bool await_resume() const;
    [[nodiscard]] bool same_lease() const;
  };
  [[nodiscard]] Belief believed() { return {this}; }
  [[nodiscard]] base::Pause again() const { return {ready_, false}; }

 private:
  /// Of a node's image.
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
  /// Whether all that there is of this node came by one READ that the node itself confirmed.
  [[nodiscard]] bool is_confirmed(wire::Ref ref) const { return come_ == ref && ref; }

  ReaderState* state_;
  const tree::MapView* view_;
  base::ReadyQueue* ready_;
  std::uint64_t directory_offset_;
  std::uint32_t node_bytes_;
  std::uint32_t map_id_;
  std::uint64_t node_offset_ = 0;  // of the node whose image this is
  wire::Ref come_{};  // the node whose beginning came by key, if nothing was added to it
  std::uint32_t come_bytes_ = 0;  // of the image, which need not be read
  std::uint64_t term_ = 0;        // of the lease under which the walk entered
  Landing node_;
  std::shared_ptr<BatchHeader> header_;  // from which this walk takes its version
  bool reads_header_ = false;            // for the batch, and it has not come yet
  Landing bytes_;
  Landing proof_;
  wire::Ref proof_of_{};   // what was wanted last is the proof of this buffer
  wire::Ref ref_{};        // of the node, as the walk named it
  bool interior_ = false;  // and whether it expects an interior one
  // Parts of the node that were wanted, and that are not remembered yet.
  std::array<Part, 4> parts_{};
  std::uint32_t parts_used_ = 0;
  std::unique_ptr<LeavesAhead> ahead_;  // null: no scan had any
  std::unique_ptr<LaneReads> reads_;
};
static_assert(tree::AheadAccess<OneSidedAccess> && tree::SamplingAccess<OneSidedAccess>);

}  // namespace espalier::place
