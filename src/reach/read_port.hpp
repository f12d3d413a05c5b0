// SPDX-License-Identifier: Apache-2.0
// One-sided READs of many walks through one queue pair.
//
// Each walk hands over what it wants in one piece, as one batch with one doorbell, of which only
// the last READ is signalled: READs of a pair complete in order, so its completion says that all of
// the batch have come. A walk waits for one batch at a time.
//
// Invariants
// I1. No READ begins at another place than a multiple of 8 bytes, where transports tear no word.
// I2. A failure ends the pair, and every walk that waits is told, once. So does a heap that has
//     nothing for what is posted or has come: nobody knows what of it has left.
// I3. Once it has failed, nothing that was asked for is written any more.
//
// Thread: one.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/chain.hpp"
#include "base/task.hpp"
#include "fabric/queue_pair.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::place {

/// What one walk wants, and where it waits. Belongs to a lane; stays where it is.
struct LaneReads {
  std::vector<fabric::WorkRequest> wanted;  // not signalled
  std::size_t posted = 0;                   // of them
  bool waiting = false;                     // handed over and not come yet
  bool failed = false;                      // since the walk last looked
  bool aside = false;                       // not of a walk: such waits are counted apart
  std::uint64_t bytes = 0;                  // of all that is wanted
  std::size_t walks = 1;                    // that wait for it
  std::coroutine_handle<> walk;
  base::ReadyQueue* ready = nullptr;
  LaneReads* next = nullptr;  // the port's: of those that wait
};

class ReadPort {
 public:
  /// `region`: what the peer offers to be read. `pair` tells its completions in `completions`,
  /// where nothing else is told, and both outlive the port.
  ReadPort(fabric::QueuePair& pair, fabric::CompletionQueue& completions,
           const fabric::RemoteRegion& region, const fabric::Properties& properties);

  /// Adds READs of bytes [offset, offset + bytes) of the region, rounded outward to multiples of 8,
  /// to what the lane wants. `into` is where the byte at `offset` goes; what is read beside it goes
  /// beside it. Requires: the lane waits for nothing. Errors: std::bad_alloc, and some of it may be
  /// wanted.
  void want(LaneReads& lane, std::uint64_t offset, std::byte* into, std::uint64_t bytes);
  /// Adds a READ by a shared key (fabric/shared_map.hpp) whose address is a number. Requires: as
  /// want(); bytes that are a multiple of 8 and fit a packet.
  void want_keyed(LaneReads& lane, fabric::RegionKey key, std::uint64_t number, std::byte* into,
                  std::uint64_t bytes);
  /// Asks ahead for what the lane wants from this READ on, where it takes no more than that.
  void prefetch(const LaneReads& lane, std::size_t from) const {
    pair_.prefetch(std::span(lane.wanted).subspan(from));
  }
  /// Hands over what the lane wants; its walk is made ready when all has come or nothing more will.
  void send(LaneReads& lane) noexcept;
  /// Takes what has come. False if nothing had.
  bool poll() noexcept;
  /// Keeps what a lane's READs write to, which its owner has no more use for, until they have come.
  /// Requires: the lane waits, and lies in `room`.
  void keep_until_done(const LaneReads& lane, std::shared_ptr<void> room) noexcept;
  /// Ends the pair, and fails all that waits, and all that is wanted from here on.
  void fail() noexcept;

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool reads_in_order() const { return reads_in_order_; }
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return traffic_; }
  /// Of what is asked for and has not come.
  [[nodiscard]] std::uint64_t bytes_in_flight() const { return bytes_in_flight_; }
  [[nodiscard]] const fabric::RemoteRegion& region() const { return region_; }
  [[nodiscard]] std::uint64_t region_bytes() const { return region_.bytes; }

 private:
  using Lanes = base::Chain<LaneReads, &LaneReads::next>;

  bool take_some();
  void post_backlog();
  bool post(LaneReads& lane);
  void finish(LaneReads& lane);

  fabric::QueuePair& pair_;
  fabric::CompletionQueue& completions_;
  fabric::RemoteRegion region_;
  std::uint64_t read_bytes_max_;
  bool reads_in_order_;
  bool failed_ = false;
  Lanes backlog_;    // whose READs found no room, in order
  Lanes in_flight_;  // in the order in which they complete
  std::vector<std::pair<const LaneReads*, std::shared_ptr<void>>> left_;  // by their owners
  tree::WalkTraffic traffic_;
  std::uint64_t bytes_in_flight_ = 0;
};

}  // namespace espalier::place
