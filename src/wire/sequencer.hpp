// SPDX-License-Identifier: Apache-2.0
// The word of a sequencer, to which clients add, and its representation in requests and answers.
// docs/formats/sequencer.md draws it.
//
//    63     62      48 47                                   0
//   +------+----------+--------------------------------------+
//   | seal | epoch    | counter: the number that comes next  |
//   +------+----------+--------------------------------------+
//
// A FETCH_ADD of n by a client that knows the epoch e takes the numbers [counter, counter + n) of
// the word that it returns if the seal is clear there, the epoch is e, and counter + n is at most
// kSequencerEnd. Otherwise it took nothing, whatever became of the word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

inline constexpr unsigned kSequencerCounterBits = 48;
inline constexpr unsigned kSequencerEpochBits = 15;
/// No range reaches beyond it, so that what was taken never carries into the epoch.
inline constexpr std::uint64_t kSequencerEnd = (std::uint64_t{1} << kSequencerCounterBits) - 1;
inline constexpr std::uint32_t kSequencerEpochMax = (std::uint32_t{1} << kSequencerEpochBits) - 1;
inline constexpr std::uint64_t kSequencerSeal = std::uint64_t{1} << 63;
static_assert(kSequencerCounterBits + kSequencerEpochBits + 1 == 64);

[[nodiscard]] constexpr std::uint64_t sequencer_word(std::uint32_t epoch, std::uint64_t counter) {
  return std::uint64_t{epoch} << kSequencerCounterBits | counter;
}
[[nodiscard]] constexpr std::uint64_t sequencer_counter(std::uint64_t word) {
  return word & kSequencerEnd;
}
[[nodiscard]] constexpr std::uint32_t sequencer_epoch(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> kSequencerCounterBits) & kSequencerEpochMax;
}
[[nodiscard]] constexpr bool sequencer_sealed(std::uint64_t word) {
  return (word & kSequencerSeal) != 0;
}

/// In requests, an epoch: the one that the sequencer has now, whichever it is. The first one is 1.
inline constexpr std::uint32_t kAnyEpoch = 0;

/// What is said of a sequencer.
struct SequencerFacts {
  std::uint64_t first;     // number of this epoch
  std::uint64_t next;      // all that were given are below it
  std::uint64_t requests;  // for numbers that its node answered
  std::uint64_t adds;      // to the word, which its node made for them
  std::uint32_t epoch;
  std::uint32_t flags;  // kSequencerIsSealed, kSequencerOverwritten
};
static_assert(sizeof(SequencerFacts) == 40 && offsetof(SequencerFacts, epoch) == 32);
static_assert(std::has_unique_object_representations_v<SequencerFacts>);
inline constexpr std::uint32_t kSequencerIsSealed = 1;
/// A client wrote to the word what no taking of numbers makes of it; so it is sealed.
inline constexpr std::uint32_t kSequencerOverwritten = 2;

/// The payload of sequencer_advance.
struct SequencerAdvance {
  std::uint32_t epoch;  // that ends with it, if it has not ended
  std::uint32_t reserved;
  std::uint64_t at_least;  // the new epoch begins at this number, or above; 0: it does not matter
};
static_assert(sizeof(SequencerAdvance) == 16 && offsetof(SequencerAdvance, at_least) == 8);
static_assert(std::has_unique_object_representations_v<SequencerAdvance>);

/// The answer to one_sided_sequencer: where this session may add.
struct SequencerGrant {
  std::uint64_t word;  // its address
  std::uint32_t key;
  std::uint32_t epoch;
  std::uint64_t mark;  // numbers of this epoch at or above are not used before asking again
};
static_assert(sizeof(SequencerGrant) == 24 && offsetof(SequencerGrant, key) == 8);
static_assert(offsetof(SequencerGrant, mark) == 16);
static_assert(std::has_unique_object_representations_v<SequencerGrant>);

}  // namespace espalier::wire
