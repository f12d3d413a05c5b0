// SPDX-License-Identifier: Apache-2.0
// Validates the result of a FETCH_ADD: the one rule by which node and clients alike decide which
// numbers they have taken [DESIGN §2.1 rule 12].
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <expected>

#include "kinds/sequencer/planted_sequencer_bugs.hpp"
#include "wire/sequencer.hpp"

namespace espalier::sequencer {

/// Consecutive numbers of an epoch.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint32_t epoch = 0;

  [[nodiscard]] std::uint64_t end() const { return first + count; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Why a word does not count as an answer.
enum class NoAnswer : std::uint8_t {
  sealed,
  other_epoch,
  exhausted,  // the range would exceed the counter's end
};

/// The numbers taken by adding `count`, if the word was valid before.
/// Requires: count is not 0.
[[nodiscard]] inline std::expected<Range, NoAnswer> check_answer(std::uint64_t word,
                                                                 std::uint32_t epoch,
                                                                 std::uint32_t count) {
  if (wire::sequencer_epoch(word) != epoch) return std::unexpected(NoAnswer::other_epoch);
  if (wire::sequencer_sealed(word) && !planted(Bug::seal_ignored)) {
    return std::unexpected(NoAnswer::sealed);
  }
  const std::uint64_t first = wire::sequencer_counter(word);
  if (count > wire::kSequencerEnd - first) return std::unexpected(NoAnswer::exhausted);
  return Range{first, count, epoch};
}

}  // namespace espalier::sequencer
