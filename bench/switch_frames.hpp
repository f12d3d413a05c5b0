// SPDX-License-Identifier: Apache-2.0
// The frames of a switch's experiments: READ requests for keys of a tree that is built from ranks
// (rank_tree.hpp), drawn by rank, as whole frames.
//
// Thread: any while nothing is changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "bench/rank_tree.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/packet_function.hpp"

namespace espalier::bench {

/// The paper's number of children of a node.
inline constexpr std::uint32_t kRankFanout = 12;
/// The keys of READs before the switch, and after it.
inline constexpr dataplane::MapKeys kRankKeys{0xFEED'0001, 0xFEED'0002};

/// A tree and the relative frequencies of its keys.
class RankedKeys {
 public:
  /// Cost: a power for each key; keeps some ten bytes for each.
  RankedKeys(std::uint64_t keys, std::uint64_t seed);
  /// For an existing tree, and the relative frequencies of its keys.
  RankedKeys(RankTree tree, std::vector<std::uint64_t> accesses);

  [[nodiscard]] const RankTree& tree() const { return tree_; }
  [[nodiscard]] std::uint64_t size() const { return passed_.size(); }
  /// A random key, by the frequencies. Cost: a binary search.
  [[nodiscard]] std::uint64_t draw(base::Random& random) const;
  /// The number of a key in a READ.
  [[nodiscard]] std::uint64_t number_of(std::uint64_t key) const { return key * tree_.step; }

 private:
  std::vector<std::uint64_t> passed_;  // cumulative accesses by key
  RankTree tree_;
};

/// Frames of one length, each with its index as its PSN.
class FrameSet {
 public:
  static constexpr std::size_t kFrames = 4096;

  /// READ requests for these numbers with this key. Requires: kFrames numbers.
  FrameSet(std::span<const std::uint64_t> numbers, std::uint32_t key);
  /// WRITEs with as many bytes, instead of READ requests.
  static FrameSet of_writes();

  [[nodiscard]] std::span<const std::byte> at(std::size_t i) const {
    return std::span(bytes_).subspan(i * frame_bytes_, frame_bytes_);
  }
  [[nodiscard]] std::size_t frame_bytes() const { return frame_bytes_; }

  // The address in a frame, original or redirected. Requires: a READ request that was made here.
  [[nodiscard]] static std::uint64_t address_in(std::span<const std::byte> frame);
  [[nodiscard]] static std::uint32_t key_in(std::span<const std::byte> frame);
  [[nodiscard]] static std::uint32_t psn_in(std::span<const std::byte> frame);
  /// Whether its ICRC is right.
  [[nodiscard]] static bool is_whole(std::span<const std::byte> frame);

 private:
  FrameSet() = default;
  std::size_t frame_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

/// Numbers for a FrameSet: of keys drawn by rank, or uniformly.
[[nodiscard]] std::vector<std::uint64_t> ranked_numbers(const RankedKeys& keys, std::uint64_t seed);
[[nodiscard]] std::vector<std::uint64_t> even_numbers(const RankedKeys& keys, std::uint64_t seed);

}  // namespace espalier::bench
