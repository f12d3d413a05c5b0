// SPDX-License-Identifier: Apache-2.0
// Predicts the leaf of a walk, and the key's position in it, before the leaf is known. A walk with
// no other work then waits for the page table, the leaf's head and the items in parallel instead of
// sequentially.
//
// The predicted leaf is the buffer where this child of this parent was last found. The position:
// the parent tells the fraction of the leaf's range below the key; with evenly spread keys that is
// the fraction of the sorted block too, whose fill was noted with the place. Predictions only
// select prefetches; what is read afterwards decides. If predictions fail, they are made rarely.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>

#include "base/prefetch.hpp"
#include "kinds/map/node/leaf_search.hpp"

namespace espalier::tree {

class LeafGuess {
 public:
  /// The prediction for one walk.
  struct Guess {
    std::uint32_t place = kNowhere;  // index of the note
    std::uint64_t leaf = 0;          // offset of the leaf in the region; 0: unknown
    std::uint32_t item = 0;          // offset of the item in the leaf
    std::uint32_t end = 0;           // end of the sorted block
    [[nodiscard]] bool made() const { return place != kNowhere; }
  };

  /// Whether predicting currently pays, in a map of this many leaves.
  [[nodiscard]] bool is_worth(std::uint64_t leaves) {
    if (leaves < kLeavesMin) return false;  // leaves are in near caches
    if (leaves > leaves_most_) make_room(leaves);
    return notes_ != nullptr && (score_ > 0 || ++pause_ % kPause == 0);
  }

  /// Prefetches the notes on a group of children of node `lid`. Requires: is_worth().
  void prepare(wire::Lid lid, std::uint32_t group) const {
    __builtin_prefetch(&notes_[place_of(lid, group * wire::kGroupChildren)]);
  }

  /// Predicts the leaf that is child `child` of `node`, with LID `lid`. Requires: prepare() was
  /// called.
  [[nodiscard]] Guess about(wire::Lid lid, const NodeView& node, const GroupChoice& choice,
                            std::uint32_t child) const {
    const std::uint32_t place = child % wire::kGroupChildren;
    if (place + 1 == wire::kGroupChildren) return {};  // its high separator is in another group
    const std::byte* key_prefixes = node.bytes() + node.group_offset(child / wire::kGroupChildren);
    const auto low = base::load_plain<std::uint32_t>(key_prefixes + 4 * place);
    const auto high = base::load_plain<std::uint32_t>(key_prefixes + 4 * place + 4);
    const auto key = static_cast<std::uint32_t>(choice.scaled >> 32);
    if (key < low || key >= high) return {};
    const Geometry& g = node.geometry();
    Guess guess;
    guess.place = place_of(lid, child);
    const std::uint32_t note = notes_[guess.place];
    const std::uint64_t bytes = std::uint64_t{note % kChunks} << g.chunk_shift;
    guess.leaf = note / kChunks * wire::kBlockBytes;
    guess.item = g.sorted_begin + static_cast<std::uint32_t>(bytes * (key - low) / (high - low));
    guess.end = g.sorted_begin + static_cast<std::uint32_t>(bytes);
    return guess;
  }

  /// Prefetches what a walk reads first if the prediction is right, and the log if wanted.
  static void ask(const std::byte* region, const Guess& guess, const Geometry& g, bool log) {
    const std::byte* leaf = region + guess.leaf;
    want_leaf_head(leaf, g, log);
    base::prefetch(leaf + guess.item - kMargin, leaf + guess.item + kMargin);
    if (log)
      base::prefetch(leaf + guess.end - (1 << g.chunk_shift), leaf + guess.end + g.log_bytes / 2);
  }

  /// Notes the actual leaf, and scores the prediction.
  void learn(const Guess& guess, std::uint64_t leaf, std::uint32_t chunks, const LeafProbe& probe) {
    notes_[guess.place] =
        static_cast<std::uint32_t>(leaf / wire::kBlockBytes) * kChunks + chunks % kChunks;
    if (guess.leaf == 0) return;  // unknown is not wrong
    const bool hit = guess.leaf == leaf && probe.begin + kMargin >= guess.item &&
                     probe.begin < guess.item + kMargin;
    score_ = hit ? std::min(score_ + kHitGain, kScoreMost) : (score_ > 0 ? score_ - 1 : 0);
  }

 private:
  /// Bytes prefetched on both sides of the predicted item.
  static constexpr std::uint32_t kMargin = 320;
  /// A note is the leaf's offset in blocks, truncated to 26 bits, and its number of chunks in 6
  /// bits.
  static constexpr std::uint32_t kChunks = 64;
  static constexpr std::uint64_t kLeavesMin = 512;
  static constexpr std::uint64_t kNotesMost = 1u << 20;
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  // A wrong prediction costs unneeded prefetches, a right one saves two latencies.
  static constexpr std::uint32_t kHitGain = 8;
  static constexpr std::uint32_t kScoreMost = 256;
  static constexpr std::uint32_t kPause = 16;

  // Children of one node have adjacent notes, those of a group in one cache line.
  [[nodiscard]] std::uint32_t place_of(wire::Lid lid, std::uint32_t child) const {
    const std::uint32_t first = (lid * 0x9E3779B1u >> 8) * wire::kGroupChildren;
    return (first + child) & mask_;
  }

  // Four notes per leaf, so that few parents share notes. Without memory nothing is predicted.
  void make_room(std::uint64_t leaves) {
    const std::uint64_t notes = std::min(std::bit_ceil(4 * leaves), kNotesMost);
    notes_.reset(new (std::nothrow) std::uint32_t[notes]{});
    mask_ = static_cast<std::uint32_t>(notes - 1);
    leaves_most_ = notes == kNotesMost ? ~std::uint64_t{0} : notes / 2;
  }

  std::unique_ptr<std::uint32_t[]> notes_;
  std::uint32_t mask_ = 0;
  std::uint64_t leaves_most_ = 0;  // the notes suffice for this many leaves
  std::uint32_t score_ = 1;
  std::uint32_t pause_ = 0;
};

}  // namespace espalier::tree
