// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that issue each number once, to any number of clients, by epochs.
//
//   auto orders = store.create_sequencer("orders");
//   auto range = orders->take(16);            // range->first .. range->first + 15, of an epoch
//
// To make sure that no client takes further numbers, seal the epoch and begin the next one:
//
//   orders->seal();                           // its numbers are all below describe()->next
//   orders->advance();                        // this handle goes on in the new epoch
//
// A handle takes numbers of the epoch that it knows, and of no other: after a seal its calls return
// `sealed` until the caller calls follow(). So a client that was presumed dead takes no number by
// accident.
//
// If the store was connected with Access::one_sided, a FETCH_ADD on the node's memory takes the
// numbers, and the node's processor is not involved. Clients with that right trust each other with
// the sequencer's numbers: a client that corrupts the counter can force a new epoch, and can cause
// duplicates within the epoch among one-sided clients. The node itself issues no number twice, and
// detects it (docs/sequencers.md).
//
// Errors of all calls: forked (another process made the handle, docs/fork.md). On a node:
// connection_lost (requested numbers may be lost, which leaves a gap); not_found (it was dropped,
// or a new node took over without it).
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

/// Numbers issued to this caller alone: first, first + 1, ... first + count - 1.
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
  bool sealed = false;          ///< the epoch issues no more numbers
  bool overwritten = false;     ///< sealed, by a client's write or a loss: see advance()
  std::uint64_t first = 0;      ///< where the epoch began
  std::uint64_t next = 0;       ///< above all numbers issued
  std::uint64_t requests = 0;   ///< for numbers, answered by the node
  std::uint64_t node_adds = 0;  ///< atomic adds that the node made for them
};

/// A handle: copies share the epoch that they know; each opened handle has its own.
/// Thread: all calls from any number of threads.
class Sequencer {
 public:
  /// All numbers are below this.
  static constexpr std::uint64_t kEnd = (std::uint64_t{1} << 48) - 1;

  [[nodiscard]] const std::string& name() const;
  /// The epoch whose numbers it takes.
  [[nodiscard]] std::uint32_t epoch() const;

  /// Takes `count` consecutive numbers.
  /// Cost: a lock and an atomic add; on a node one round trip, of a request or of a FETCH_ADD.
  /// Errors: sealed (detail: the sequencer's current epoch), exhausted (fewer are left),
  /// invalid_argument (a count of 0); one-sided also unsupported (the transport has no suitable
  /// atomics, or the node does not offer them), too_many_participants.
  Result<NumberRange> take(std::uint32_t count = 1);

  /// Ends this handle's epoch, for all clients and for good. After it returns, the epoch issues no
  /// number; `next` in the result is above all numbers issued. Sealing a sealed epoch does nothing.
  /// Cost: on a node, one request; as of all that follow.
  /// Errors: sealed (another epoch has begun; detail: which).
  Result<SequencerDescription> seal();
  /// Ends this handle's epoch, if it has not ended, and begins the next one, whose numbers are
  /// above all earlier ones, and not below `at_least`. This handle moves to it.
  /// Errors: sealed (another epoch has begun; detail: which), exhausted (no more numbers, or
  /// epochs), invalid_argument (at_least is too large; detail 1: it is `overwritten`, so the caller
  /// must supply a number above all that were used).
  Result<SequencerDescription> advance(std::uint64_t at_least = 0);
  /// Moves to the sequencer's current epoch, sealed or not.
  Result<SequencerDescription> follow();
  [[nodiscard]] Result<SequencerDescription> describe() const;

 private:
  friend class Store;
  friend class client::SequencerImpl;
  explicit Sequencer(std::shared_ptr<client::SequencerImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::SequencerImpl> impl_;
};

}  // namespace espalier
