// SPDX-License-Identifier: Apache-2.0
// Guesses where in a leaf a key lies before the leaf was read, so that a walk that has nothing else
// to do waits for the leaf's head and for the items at the same time instead of one after the other.
//
// The parent tells which part of the leaf's range lies below the key; if keys are spread evenly
// there, that is the part of its sorted block too. How full the leaf is was noted when it was read
// last. A guess is only about which lines to ask for: what the leaf says then decides. Where guesses
// do not come true (keys are not spread evenly), they are made seldom.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/prefetch.hpp"
#include "tree/leaf_search.hpp"

namespace espalier::tree {

class PositionGuess {
 public:
  /// Bytes that are asked for on both sides of the guessed offset.
  static constexpr std::uint32_t kMargin = 320;

  /// Whether guessing pays at the moment.
  [[nodiscard]] bool pays() { return score_ > 0 || ++pause_ % kPause == 0; }

  /// The offset in the leaf that is child `child` of `node`; 0: there is no telling.
  [[nodiscard]] std::uint32_t offset(const NodeView& node, const GroupChoice& choice,
                                     std::uint32_t child, wire::Lid lid) {
    const std::uint32_t place = child % wire::kGroupChildren;
    if (place + 1 == wire::kGroupChildren) return 0;  // its end stands in another group
    const std::byte* heads = node.bytes() + node.group_offset(child / wire::kGroupChildren);
    const auto low = base::load_plain<std::uint32_t>(heads + 4 * place);
    const auto high = base::load_plain<std::uint32_t>(heads + 4 * place + 4);
    const auto key = static_cast<std::uint32_t>(choice.scaled >> 32);
    if (key < low || key >= high) return 0;
    if (!chunks_) chunks_ = std::make_unique<std::uint8_t[]>(kLids);
    const std::uint64_t bytes = sorted_bytes(node.geometry(), lid);
    return node.geometry().sorted_begin +
           static_cast<std::uint32_t>(bytes * (key - low) / (high - low));
  }

  /// Asks for the items about the guessed offset.
  static void ask(const std::byte* leaf, std::uint32_t offset) {
    base::prefetch(leaf + offset - kMargin, leaf + offset + kMargin);
  }

  /// Asks for the log too, which begins where the sorted block ends.
  void ask_log(const std::byte* leaf, const Geometry& g, wire::Lid lid) const {
    const std::byte* end = leaf + g.sorted_begin + sorted_bytes(g, lid);
    base::prefetch(end - (1 << g.chunk_shift), end + g.log_bytes / 2);
  }

  /// Notes what came true.
  void learn(wire::Lid lid, std::uint32_t chunks, std::uint32_t offset, const LeafProbe& probe) {
    chunks_[lid % kLids] = static_cast<std::uint8_t>(chunks);
    const bool hit = probe.begin + kMargin >= offset && probe.begin < offset + kMargin;
    score_ = hit ? (score_ < kScoreMost ? score_ + 1 : score_) : (score_ > 0 ? score_ - 1 : 0);
  }

 private:
  [[nodiscard]] std::uint32_t sorted_bytes(const Geometry& g, wire::Lid lid) const {
    const std::uint32_t noted = chunks_[lid % kLids];
    return (noted != 0 ? noted : g.chunks_max * 3 / 4) << g.chunk_shift;
  }

  static constexpr std::uint32_t kLids = 1u << 16;
  static constexpr std::uint32_t kPause = 32;
  static constexpr std::uint32_t kScoreMost = 64;

  std::unique_ptr<std::uint8_t[]> chunks_;  // by LID: how many the leaf had
  std::uint32_t score_ = 1;
  std::uint32_t pause_ = 0;
};

}  // namespace espalier::tree
