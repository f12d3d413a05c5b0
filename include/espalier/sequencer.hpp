// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that give each number once, to any number of clients, by epochs.
//
//   auto orders = store.create_sequencer("orders");
//   auto range = orders->take(16);            // range->first .. range->first + 15, of an epoch
//
// Whoever must be sure that others take no more, seals the epoch, and begins the next one:
//
//   orders->seal();                           // its numbers are all below describe()->next
//   orders->advance();                        // this handle goes on in the new epoch
//
// A handle takes numbers of the epoch that it knows, and of no other: after a seal its calls say
// `sealed`, until it is told to follow(). So a client that was thought dead gets nothing by chance.
//
// Over a store that was connected with Access::one_sided, numbers are taken by a FETCH_ADD on the
// node's memory, and its processor has no part in it. Clients that may do that trust each other
// with the numbers of their sequencer: one that writes nonsense there can make others wait for a
// new epoch, and can give numbers of the epoch twice to those that add themselves; the node gives
// no number twice, and notices. docs/sequencers.md tells more.
//
// Errors of all calls: forked (another process made the handle, docs/fork.md). On a node:
// connection_lost (numbers that were asked for may be lost, which leaves a gap); not_found (it was
// dropped, or another node has come, which knows nothing of it).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/map.hpp"

namespace espalier {

namespace client {
class SequencerImpl;
}  // namespace client

/// Numbers that nobody else has: first, first + 1, ... first + count - 1.
struct NumberRange {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t epoch = 0;  ///< of the sequencer; numbers of later ones are above

  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// A sequencer as it was at one moment.
struct SequencerDescription {
  std::string name;
  std::uint32_t epoch = 0;      ///< the first one is 1
  bool sealed = false;          ///< the epoch gives no more numbers
  bool overwritten = false;     ///< sealed, by a client's write or a loss: see advance()
  std::uint64_t first = 0;      ///< where the epoch began
  std::uint64_t next = 0;       ///< all numbers that were given are below
  std::uint64_t requests = 0;   ///< for numbers, that the node answered
  std::uint64_t node_adds = 0;  ///< atomic adds that it made for them
};

/// A handle: copies share the epoch that they know; each that is opened has its own.
/// Thread: all calls from any number of threads.
class Sequencer {
 public:
  /// No number is as large as this.
  static constexpr std::uint64_t kEnd = (std::uint64_t{1} << 48) - 1;

  [[nodiscard]] const std::string& name() const;
  /// That whose numbers it takes.
  [[nodiscard]] std::uint32_t epoch() const;

  /// Takes `count` numbers in a row. Cost: a lock and an atomic add; on a node one round trip, of a
  /// request or of a FETCH_ADD.
  /// Errors: sealed (detail: the epoch that the sequencer has now), exhausted (fewer are left),
  /// invalid_argument (a count of 0); one-sided also unsupported (the transport has no atomics that
  /// suit, or the node does not offer them), too_many_participants.
  Result<NumberRange> take(std::uint32_t count = 1);

  /// Ends this handle's epoch, for all clients and for good. Once this has returned, nobody is
  /// given a number of it; `next` of what it returns is above all that were. Sealing what is sealed
  /// does nothing. Cost: on a node, one request; as of all that follow.
  /// Errors: sealed (another epoch has begun; detail: which).
  Result<SequencerDescription> seal();
  /// Ends this handle's epoch, if it has not ended, and begins the next one, whose numbers are all
  /// above those before it, and not below `at_least`. This handle goes on there.
  /// Errors: sealed (another epoch has begun; detail: which), exhausted (there are no more numbers,
  /// or epochs), invalid_argument (at_least is too large; detail 1: it is `overwritten`, so
  /// only the caller can say above which number all is free, and has to).
  Result<SequencerDescription> advance(std::uint64_t at_least = 0);
  /// Goes on in the epoch that the sequencer has now, be it sealed or not.
  Result<SequencerDescription> follow();
  [[nodiscard]] Result<SequencerDescription> describe() const;

 private:
  friend class Store;
  friend class client::SequencerImpl;
  explicit Sequencer(std::shared_ptr<client::SequencerImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::SequencerImpl> impl_;
};

}  // namespace espalier
