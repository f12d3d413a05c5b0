// SPDX-License-Identifier: Apache-2.0
// The buffers that one session offers for results, and the WRITEs into them: by the queue pair of
// the session's rings, so that what a message says of a buffer comes behind what was written there.
//
// A buffer is the node's while it is free or being filled, and the client's from the message that
// tells that it is full until the client gives it back. All are the node's when a run ends: what it
// wrote comes before its answer, so the client has seen all of it by then.
//
// What a client says of its buffers may be anything. A key that is none ends the pair, which is the
// client's own, and the run; a buffer that the client does not have, or that there is not, is
// refused when it is given back. Nothing is ever read of a buffer.
//
// Invariants
// I1. Bytes that are being written stay as they are, and where they are, until the WRITE has ended,
//     whatever becomes of the run and its request.
// I2. What had not ended when a pair failed is written again by the next one, before its rings say
//     anything; only the client's session ends that.
//
// Thread: that of the session's scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/session_parts.hpp"
#include "espalier/error.hpp"
#include "fabric/queue_pair.hpp"
#include "kinds/table/format/result_buffers.hpp"

namespace espalier::offload {

class Connection;

/// The buffers of one response ring.
struct ResultSet {
  wire::ResultOffer offer{};
  std::uint32_t free = 0;  // a bit for each buffer
  std::uint32_t out = 0;   // likewise: the client has it
  bool in_use = false;     // by a run
  bool broken = false;     // the node may not write there
  std::uint64_t written_bytes = 0;

  [[nodiscard]] std::uint32_t all() const { return (std::uint32_t{1} << offer.buffers) - 1; }
};

class ResultHost final : public SessionPart {
 public:
  /// The session's, made when first asked for; null: nobody could write there.
  [[nodiscard]] static ResultHost* of(Connection& connection);
  /// WRITEs of one session that have not ended.
  static constexpr std::size_t kWritesMax = kPartPostsMax;

  explicit ResultHost(std::uint32_t response_rings) : sets_(response_rings) {}
  ResultHost(const ResultHost&) = delete;
  ResultHost& operator=(const ResultHost&) = delete;

  /// Takes buffers in place of those that this ring had. Errors: invalid_argument (no such buffers
  /// can be), busy (a run writes into those that it has).
  Result<void> open(std::uint32_t ring, const wire::ResultOffer& offer);
  /// The client has read these: all of them are taken, or none. Errors: not_found (the ring has no
  /// buffers), invalid_argument (detail: the buffer that the client does not have).
  Result<void> give_back(std::uint32_t ring, std::span<const std::uint32_t> buffers);
  /// Null: none were offered for this ring.
  [[nodiscard]] std::shared_ptr<ResultSet> find(std::uint32_t ring) const { return sets_[ring]; }

  /// Writes by this pair from now on, which lives until detach(). First of all what had not ended.
  void attach(fabric::QueuePair& pair) override;
  void detach() override;
  [[nodiscard]] bool attached() const { return pair_ != nullptr; }
  void completed(const fabric::Completion& completion) override;
  [[nodiscard]] bool may_write() const { return pair_ != nullptr && writes_.size() < kWritesMax; }
  /// Begins to write the first `bytes` of `from`, which it takes. False: not now, and it has taken
  /// nothing.
  bool write(const std::shared_ptr<ResultSet>& set, std::uint64_t to, std::vector<std::byte>& from,
             std::size_t bytes);
  [[nodiscard]] std::size_t writes() const { return writes_.size(); }
  [[nodiscard]] bool busy() const override { return !writes_.empty(); }
  /// The buffers as memory to store to, where the transport maps it; null: not now, or never.
  [[nodiscard]] std::shared_ptr<fabric::PeerMemory> map(const ResultSet& set) const;
  /// Memory of WRITEs that have ended, for the next block; empty: there is none.
  [[nodiscard]] std::vector<std::byte> take_spare();
  void keep_spare(std::vector<std::byte> spare);

 private:
  struct Write {
    std::uint64_t number;
    std::shared_ptr<ResultSet> set;
    std::uint64_t to;
    std::vector<std::byte> from;
    std::size_t bytes;
  };
  [[nodiscard]] bool post(const Write& write);
  [[nodiscard]] bool post_in_turn();

  std::vector<std::shared_ptr<ResultSet>> sets_;  // by ring
  fabric::QueuePair* pair_ = nullptr;
  std::deque<Write> writes_;  // that have not ended, in order
  std::uint64_t next_ = kPartMark;
  std::vector<std::vector<std::byte>> spares_;
};

/// A buffer, or what is left of one, to be stored to where the client's memory is mapped.
struct ResultRoom {
  std::uint32_t buffer = 0;
  std::uint32_t offset = 0;  // in it
  std::span<std::byte> memory{};
};

/// What one run writes into the buffers of its ring.
class ResultWriter {
 public:
  /// Requires: `set` is not in use; `host` outlives this. `block_bytes`: at most so many are
  /// written together; no more than a buffer has.
  ResultWriter(ResultHost& host, std::shared_ptr<ResultSet> set, std::size_t block_bytes);
  /// All buffers are the node's again.
  ~ResultWriter();
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  /// The node may not write there.
  [[nodiscard]] bool broken() const { return set_->broken; }
  /// Writes the first `bytes` of a block, which it takes and gives another one for, perhaps an
  /// empty one. Nothing: not now, since the client has all buffers, or what was written before has
  /// not ended.
  std::optional<wire::ResultPlace> write(std::vector<std::byte>& block, std::size_t bytes);

  // The same without blocks, where the client's memory is mapped: rows are stored into buffers, of
  // which several may be in hand.
  /// Whether there is such memory. Once there is, there is for as long as this lives.
  [[nodiscard]] bool maps();
  [[nodiscard]] std::uint32_t buffers() const { return set_->offer.buffers; }
  /// How many can be opened now.
  [[nodiscard]] std::uint32_t free_buffers() const;
  /// One to be stored to, the one that was begun first; none: all are open, or the client's.
  /// Requires: maps().
  [[nodiscard]] std::optional<ResultRoom> open_buffer();
  /// So many bytes were stored there, and no more will be. Nothing: the key is good no longer, and
  /// they are nobody's. Requires: open_buffer() gave it, and it was not closed.
  std::optional<wire::ResultPlace> close_buffer(const ResultRoom& room, std::size_t bytes);

 private:
  [[nodiscard]] std::uint32_t next_buffer() const;

  ResultHost& host_;
  const std::shared_ptr<ResultSet> set_;
  const std::size_t block_bytes_;
  std::optional<std::uint32_t> buffer_;         // that is being filled, by blocks
  std::uint32_t used_ = 0;                      // of it
  std::uint32_t open_ = 0;                      // a bit for each buffer that is stored to
  std::shared_ptr<fabric::PeerMemory> memory_;  // null: none is mapped
};

}  // namespace espalier::offload
