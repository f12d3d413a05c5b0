// SPDX-License-Identifier: Apache-2.0
// One-sided READs of many walks through one queue pair.
//
// Each walk posts all of its READs as one batch with one doorbell, of which only the last one is
// signalled: READs of a pair complete in order, so its completion completes the batch. A walk waits
// for one batch at a time.
//
// Invariants
// I1. Every READ begins at a multiple of 8 bytes, so that transports tear no word.
// I2. A failure breaks the pair, and every waiting walk is notified, once. An out-of-memory error
//     on posting or completion does the same, because it is unknown which READs were sent.
// I3. After a failure no destination of a READ is written any more.
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

/// READs of one walk, and its waiting state. Belongs to a lane; must not move.
struct LaneReads {
  std::vector<fabric::WorkRequest> wanted;  // not signalled
  std::size_t posted = 0;                   // of them
  bool waiting = false;                     // posted and not complete
  bool failed = false;                      // since the walk last checked
  bool aside = false;                       // not of a walk: such waits are counted apart
  std::uint64_t bytes = 0;                  // of all READs wanted
  std::size_t walks = 1;                    // that wait for it
  std::coroutine_handle<> walk;
  base::ReadyQueue* ready = nullptr;
  LaneReads* next = nullptr;  // the port's: of those that wait
};

class ReadPort {
 public:
  /// `region`: the peer's region to read. The completions of `pair` go to `completions`, which is
  /// used for nothing else; both outlive the port.
  ReadPort(fabric::QueuePair& pair, fabric::CompletionQueue& completions,
           const fabric::RemoteRegion& region, const fabric::Properties& properties);

  /// Adds READs of bytes [offset, offset + bytes) of the region, rounded outward to multiples of 8,
  /// to the lane's batch. The byte at `offset` goes to `into`; the rounding around it. Requires:
  /// the lane waits for nothing. Errors: std::bad_alloc, and some of it may have been added.
  void want(LaneReads& lane, std::uint64_t offset, std::byte* into, std::uint64_t bytes);
  /// Adds a READ by a shared key (fabric/shared_map.hpp) whose address is a number. Requires: as
  /// want(); bytes that are a multiple of 8 and fit a packet.
  void want_keyed(LaneReads& lane, fabric::RegionKey key, std::uint64_t number, std::byte* into,
                  std::uint64_t bytes);
  /// Prefetches the destinations of the lane's READs from this one on.
  void prefetch(const LaneReads& lane, std::size_t from) const {
    pair_.prefetch(std::span(lane.wanted).subspan(from));
  }
  /// Posts the lane's batch; makes its walk ready when all has arrived, or on failure.
  void send(LaneReads& lane) noexcept;
  /// Polls for completions. False if there were none.
  bool poll() noexcept;
  /// Keeps the destinations of a lane's READs, which its owner has abandoned, until they complete.
  /// Requires: the lane waits, and lies in `room`.
  void keep_until_done(const LaneReads& lane, std::shared_ptr<void> room) noexcept;
  /// Breaks the pair, and fails all waiting lanes, and all later batches.
  void fail() noexcept;

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool reads_in_order() const { return reads_in_order_; }
  [[nodiscard]] const tree::WalkTraffic& traffic() const { return traffic_; }
  /// Bytes posted and not complete.
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
  Lanes backlog_;    // waiting for room in the send queue, in order
  Lanes in_flight_;  // in the order in which they complete
  std::vector<std::pair<const LaneReads*, std::shared_ptr<void>>> left_;  // without owners
  tree::WalkTraffic traffic_;
  std::uint64_t bytes_in_flight_ = 0;
};

}  // namespace espalier::place
