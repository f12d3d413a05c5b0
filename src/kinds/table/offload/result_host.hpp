// SPDX-License-Identifier: Apache-2.0
// Zero-copy results: the buffers that one session offers for results, and the WRITEs into them, on
// the queue pair of the session's rings, so that a message about a buffer arrives after the data.
//
// The node owns a buffer while it is free or being filled; the client owns it from the message that
// reports it full until it returns the buffer. At the end of a run the node owns all: its data
// precedes its answer, so the client has seen all of it by then.
//
// The client's claims about its buffers are untrusted. An invalid key breaks the pair, which is the
// client's own, and the run; returning a buffer that the client does not own is refused. The node
// never reads a buffer.
//
// Invariants
// I1. The source bytes of a WRITE stay unchanged and in place until it completes, whatever happens
//     to the run and its request.
// I2. WRITEs that had not completed when a pair failed are repeated on the next one, before its
//     rings carry anything; only the end of the client's session stops that.
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
  std::uint32_t out = 0;   // likewise: owned by the client
  bool in_use = false;     // by a run
  bool broken = false;     // the node may not write there
  std::uint64_t written_bytes = 0;

  [[nodiscard]] std::uint32_t all() const { return (std::uint32_t{1} << offer.buffers) - 1; }
};

class ResultHost final : public SessionPart {
 public:
  /// The session's host, created on first use; null: the transport cannot write there.
  [[nodiscard]] static ResultHost* of(Connection& connection);
  /// Most WRITEs of one session in flight.
  static constexpr std::size_t kWritesMax = kPartPostsMax;

  explicit ResultHost(std::uint32_t response_rings) : sets_(response_rings) {}
  ResultHost(const ResultHost&) = delete;
  ResultHost& operator=(const ResultHost&) = delete;

  /// Replaces the buffers of this ring. Errors: invalid_argument (an impossible offer), busy (a run
  /// writes into the current ones).
  Result<void> open(std::uint32_t ring, const wire::ResultOffer& offer);
  /// Returns buffers that the client has read, all or none. Errors: not_found (the ring has no
  /// buffers), invalid_argument (detail: a buffer that the client does not own).
  Result<void> give_back(std::uint32_t ring, std::span<const std::uint32_t> buffers);
  /// Null: none were offered for this ring.
  [[nodiscard]] std::shared_ptr<ResultSet> find(std::uint32_t ring) const { return sets_[ring]; }

  /// Uses this pair from now on, until detach(). First repeats the WRITEs that had not completed.
  void attach(fabric::QueuePair& pair) override;
  void detach() override;
  [[nodiscard]] bool attached() const { return pair_ != nullptr; }
  void completed(const fabric::Completion& completion) override;
  [[nodiscard]] bool may_write() const { return pair_ != nullptr && writes_.size() < kWritesMax; }
  /// Begins to write the first `bytes` of `from`, which it takes. False: not possible now; `from`
  /// is unchanged.
  bool write(const std::shared_ptr<ResultSet>& set, std::uint64_t to, std::vector<std::byte>& from,
             std::size_t bytes);
  [[nodiscard]] std::size_t writes() const { return writes_.size(); }
  [[nodiscard]] bool busy() const override { return !writes_.empty(); }
  /// The buffers as mapped memory, if the transport maps it; null: not now, or never.
  [[nodiscard]] std::shared_ptr<fabric::PeerMemory> map(const ResultSet& set) const;
  /// Memory of completed WRITEs, for the next block; empty: none.
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
  std::deque<Write> writes_;  // in flight, in order
  std::uint64_t next_ = kPartMark;
  std::vector<std::vector<std::byte>> spares_;
};

/// A buffer, or the rest of one, in mapped client memory.
struct ResultRoom {
  std::uint32_t buffer = 0;
  std::uint32_t offset = 0;  // in it
  std::span<std::byte> memory{};
};

/// Writes one run's rows into the buffers of its ring.
class ResultWriter {
 public:
  /// Requires: `set` is not in use; `host` outlives this. `block_bytes`: maximum size of one write,
  /// at most a buffer.
  ResultWriter(ResultHost& host, std::shared_ptr<ResultSet> set, std::size_t block_bytes);
  /// Returns all buffers to the node.
  ~ResultWriter();
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  /// Whether the node may no longer write there.
  [[nodiscard]] bool broken() const { return set_->broken; }
  /// Writes the first `bytes` of a block, and replaces the block by another one, possibly empty.
  /// Nullopt: not possible now, because the client owns all buffers, or earlier writes have not
  /// completed.
  std::optional<wire::ResultPlace> write(std::vector<std::byte>& block, std::size_t bytes);

  // The same without blocks, for mapped client memory: rows are stored directly into buffers,
  // several of which may be open.
  /// Whether memory is mapped. Once true, it stays true while this lives.
  [[nodiscard]] bool maps();
  [[nodiscard]] std::uint32_t buffers() const { return set_->offer.buffers; }
  /// Number of buffers that can be opened now.
  [[nodiscard]] std::uint32_t free_buffers() const;
  /// Opens a buffer to store to, a begun one first; nullopt: all are open, or owned by the client.
  /// Requires: maps().
  [[nodiscard]] std::optional<ResultRoom> open_buffer();
  /// Closes a buffer in which so many bytes were stored. Nullopt: the key was revoked, and the
  /// bytes are lost. Requires: open_buffer() returned it, and it was not closed.
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
