// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/one_sided_access.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "dataplane/key_number.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::place {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);

}  // namespace

std::byte* Landing::room(std::uint64_t wanted) {
  const std::uint64_t needed = (wanted + kWord - 1) / kWord + 2;
  if (needed * kWord > bytes) {
    words = std::make_unique_for_overwrite<std::uint64_t[]>(needed);
    bytes = needed * kWord;
  }
  return reinterpret_cast<std::byte*>(words.get() + 1);
}

OneSidedAccess::OneSidedAccess(ReaderState& state, const tree::MapView& view,
                               base::ReadyQueue& ready)
    : state_(&state),
      view_(&view),
      ready_(&ready),
      directory_offset_(view.directory_offset),
      node_bytes_(view.geometry.node_bytes),
      map_id_(view.id),
      reads_(std::make_unique<LaneReads>()) {
  reads_->ready = &ready;
}

void OneSidedAccess::enter(wire::Ref ref, std::uint32_t level) {
  ref_ = ref;
  interior_ = level != 0;
  parts_used_ = 0;
}

// Chunk by chunk, so that whole ones can be kept.
void OneSidedAccess::learn_node(const std::byte* image) {
  if (state_->cache == nullptr || failed()) return;
  for (const Part& part : std::span(parts_).first(std::exchange(parts_used_, 0))) {
    state_->cache->keep_node(ref_, image, part.begin, part.end);
  }
}

void OneSidedAccess::want_proof(wire::Ref ref) {
  if (!reads_in_order() || is_confirmed(ref) || tree::planted(tree::Bug::not_confirmed)) return;
  read_proof(ref);
  proof_of_ = ref;
}

void OneSidedAccess::want_ahead(tree::Cursor& cursor, const tree::SearchKey* bound,
                                std::uint32_t leaves) {
  if (state_->cache == nullptr || state_->leaves_ahead == 0) return;
  if (!ahead_) ahead_ = std::make_unique<LeavesAhead>(*state_, *view_);
  ahead_->want(*reads_, cursor, bound, leaves);
  // Behind their last bytes, where READs keep their order.
  if (reads_in_order()) ahead_->want_proofs(*reads_);
  proof_of_ = {};
}

tree::LeafAhead OneSidedAccess::take_ahead(wire::Lid lid) {
  if (!ahead_) return {};
  const LeavesAhead::Taken taken = ahead_->take(lid, node_);
  if (!taken.here) return {taken.ref, nullptr};
  enter(taken.ref, 0);  // all of it is here, so nothing will be wanted
  node_offset_ = taken.ref.offset();
  come_ = taken.proved ? taken.ref : wire::Ref{};
  come_bytes_ = node_bytes_;
  proof_of_ = {};
  return {taken.ref, node_.room(node_bytes_)};
}

void OneSidedAccess::read_proof(wire::Ref ref) {
  want_bytes(ref.offset(), proof_.room(sizeof(wire::BufferHeader)), sizeof(wire::BufferHeader));
}

// What comes after a proof has none.
void OneSidedAccess::want_bytes(std::uint64_t offset, std::byte* into, std::uint64_t bytes) {
  proof_of_ = {};
  state_->port->want(*reads_, offset, into, bytes);
}

const std::byte* OneSidedAccess::image(std::uint64_t offset) {
  node_offset_ = offset;
  come_ = {};
  come_bytes_ = 0;
  return node_.room(node_bytes_);
}

void OneSidedAccess::want(const std::byte* image, std::uint32_t begin, std::uint32_t bytes) {
  std::byte* const at = node_.room(node_bytes_);
  ESPALIER_ASSERT(image == at && begin <= node_bytes_ && bytes <= node_bytes_ - begin);
  if (begin + bytes <= come_bytes_) return;
  come_ = {};  // of what is read beside it, another moment may come
  if (interior_ && state_->cache != nullptr && bytes != 0) {
    constexpr std::uint32_t kMask = NodeCache::kChunkBytes - 1;
    const std::uint32_t end = std::min((begin + bytes + kMask) & ~kMask, node_bytes_);
    begin &= ~kMask;
    bytes = end - begin;
    note_part({begin, end});
  }
  want_bytes(node_offset_ + begin, at + begin, bytes);
}

// Groups of children that tie lie side by side, and are one part, however many they are.
void OneSidedAccess::note_part(Part part) {
  if (parts_used_ != 0) {
    Part& last = parts_[parts_used_ - 1];
    if (part.begin <= last.end && last.begin <= part.end) {
      last = {std::min(last.begin, part.begin), std::max(last.end, part.end)};
      return;
    }
  }
  if (parts_used_ != parts_.size()) parts_[parts_used_++] = part;
}

const std::byte* OneSidedAccess::node_by_key(const tree::SearchKey& key) {
  const KeyedReads& keyed = *state_->keyed;
  proof_of_ = {};
  come_ = {};
  come_bytes_ = std::min(keyed.bytes, node_bytes_);
  std::byte* const at = node_.room(node_bytes_);
  state_->port->want_keyed(*reads_, keyed.key, dataplane::key_number(keyed.prefix, key.view()), at,
                           come_bytes_);
  return at;
}

void OneSidedAccess::came_to(wire::Ref ref) {
  enter(ref, 0);  // nothing was wanted of it, so nothing is remembered but a leaf's head
  node_offset_ = ref.offset();
  come_ = ref;
}

const std::byte* OneSidedAccess::bytes(std::uint64_t offset, std::uint64_t bytes) {
  std::byte* const at = bytes_.room(bytes);
  want_bytes(offset, at, bytes);
  return at;
}

const std::byte* OneSidedAccess::map_header(std::uint64_t) {
  if (state_->batch) {
    header_ = state_->batch;
    return header_->room(tree::kMapHeaderHead);
  }
  header_ = state_->batch = std::make_shared<BatchHeader>();
  std::byte* const at = header_->room(tree::kMapHeaderHead);
  want_map_head(*state_->port, *reads_, *view_, at);
  reads_header_ = !reads_->failed;
  if (reads_->failed) header_->has_come(true);
  return at;
}

// What a walk reads after the header, where READs keep their order, comes after it. Without its
// header a walk has failed.
void OneSidedAccess::take_arrival() {
  if (header_) {
    if (reads_header_) {
      reads_header_ = false;
      header_->has_come(state_->port->failed());
    }
    if (!header_->come() || header_->failed()) reads_->failed = true;
  }
  if (ahead_) ahead_->come(reads_->failed);
}

void OneSidedAccess::send(std::coroutine_handle<> walk) {
  if (reads_->wanted.empty()) return header_->wait(walk, *ready_);
  reads_->walk = walk;
  state_->port->send(*reads_);
}

bool OneSidedAccess::may_enter() const {
  return state_->lease->ended() || state_->lease->believed(state_->now());
}

void OneSidedAccess::Entry::await_suspend(std::coroutine_handle<> walk) const {
  access->state_->lease->wait(walk, *access->ready_, false);
}

bool OneSidedAccess::enter() {
  reads_->failed = false;
  proof_of_ = {};
  header_.reset();
  reads_header_ = false;
  term_ = state_->lease->term();
  if (ahead_ && !tree::planted(tree::Bug::ahead_kept)) ahead_->clear();
  return !state_->lease->ended() && !state_->port->failed();
}

void OneSidedAccess::Confirmation::await_suspend(std::coroutine_handle<> walk) const {
  OneSidedAccess& of = *access;
  of.read_proof(ref);
  if (of.ahead_) of.ahead_->want_proofs(*of.reads_);
  if (of.reads_->wanted.empty()) {  // it cannot be asked for
    of.ready_->push(walk);
  } else {
    of.send(walk);
  }
}

tree::Confirmed OneSidedAccess::confirmed(wire::Ref ref) {
  if (ahead_) ahead_->come(reads_->failed);
  if (reads_->failed || term_ != state_->lease->term()) return tree::Confirmed::lost;
  if (is_confirmed(ref)) return tree::Confirmed::yes;
  if (tree::planted(tree::Bug::not_confirmed) ||
      tree::planted(tree::Bug::generation_not_confirmed)) {
    return tree::Confirmed::yes;
  }
  return is_still(proof_, ref, map_id_) ? tree::Confirmed::yes : tree::Confirmed::changed;
}

bool OneSidedAccess::Belief::await_ready() const {
  return access->term_ != access->state_->lease->term() ||
         tree::planted(tree::Bug::belief_not_checked) ||
         access->state_->lease->believed(access->state_->now());
}

void OneSidedAccess::Belief::await_suspend(std::coroutine_handle<> walk) const {
  access->state_->lease->wait(walk, *access->ready_, true);
}

// Once more: a walk that was woken may have been resumed late.
bool OneSidedAccess::Belief::await_resume() const { return await_ready() && same_lease(); }

bool OneSidedAccess::Belief::same_lease() const {
  return access->term_ == access->state_->lease->term();
}

}  // namespace espalier::place
