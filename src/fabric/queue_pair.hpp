// SPDX-License-Identifier: Apache-2.0
// A queue pair: one end of a reliable connection, through which this side reads and writes the
// peer's regions and exchanges messages with it.
//
// A pair is connected once. Its first failure puts both sides into the error state: the failed
// request completes with the reason, and all requests behind it, posted then or later, with
// `flushed`. A flushed request may or may not have been executed.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/completion_queue.hpp"
#include "fabric/receive_queue.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric {

struct QueuePairOptions {
  CompletionQueue* sends = nullptr;         // of work requests; must be given
  CompletionQueue* receives = nullptr;      // of receives; null: the same
  ReceiveQueue* shared_receives = nullptr;  // use these, instead of receives of its own
  std::uint32_t send_depth = 128;           // work requests posted and not completed
  std::uint32_t receive_depth = 128;        // of its own receives
  std::uint32_t reads_in_flight = 128;      // READs and atomics; transport or peer may allow fewer
  Domain domain = 0;                        // whose regions the peer may reach through it
  std::uint32_t mtu_bytes = 4096;           // of transports that send packets: 1024 or 4096
  std::uint32_t retries = 7;                // before retry_exceeded
  std::uint32_t receive_retries = 7;        // before no_receive; 7: for ever [verbs: rnr_retry]
  /// Acknowledgement timeout of one try. Transports that lose packets retransmit much earlier.
  std::uint64_t timeout_ns = 67'000'000;
  /// Delayed ACKs: an acknowledgement is piggybacked on the next request of this side, which saves
  /// a packet. It leaves at the latest with Endpoint::flush(), when the endpoint sleeps, or with a
  /// progress() a few microseconds later. For servers: the peer's requests complete a little later.
  /// Of transports that send packets.
  bool delayed_acks = false;
};

/// The result of post().
struct Posted {
  enum class Stopped : std::uint8_t {
    no,         // all were taken
    full,       // no room in the send queue or among the completions: poll, then post the rest
    malformed,  // the next one can never be: its opcode, length or alignment
  };
  std::size_t taken = 0;
  Stopped stopped = Stopped::no;
};

/// A part of a region of the peer, mapped into this process: stores there act as those of WRITEs
/// do, but their order is the caller's. It stays mapped while this lives, even after the pair has
/// ended. Thread: any.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  /// Whether its key is good. After that has ended, stores have no effect on the peer.
  [[nodiscard]] virtual bool good() const = 0;
};

class QueuePair {
 public:
  enum class State : std::uint8_t { connecting, connected, error };

  virtual ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// Its number among the pairs of its endpoint; completions carry it.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] State state() const { return state_; }
  /// Why it ended: success if either side closed it; remote_operation if the peer rejected the
  /// connection, retry_exceeded if the peer did not answer.
  [[nodiscard]] Status ended_by() const { return ended_by_; }
  /// If it ended because a packet was lost in either direction on all its retries: the packet's
  /// length, in bytes with its IP header (a path MTU problem). 0: it ended for another reason, or
  /// the packet was no longer than those that establish connections.
  [[nodiscard]] std::uint32_t undelivered_bytes() const { return undelivered_bytes_; }
  /// The private data of the peer's accept or reject, padded with zeros where the transport has a
  /// field of fixed size.
  [[nodiscard]] std::span<const std::byte> peer_data() const { return peer_data_; }

  /// Posts work requests, in order, with one doorbell. Returns how many were taken. They leave at
  /// the latest with the next progress() of the endpoint, which poll() and wait() make too; so the
  /// requests of several posts can leave together. While the pair is connecting they wait; in the
  /// error state they are flushed.
  Posted post(std::span<const WorkRequest> requests);
  Posted post(const WorkRequest& request) { return post({&request, 1}); }
  /// Prefetches the memory of requests that will be posted soon, if this process accesses the
  /// peer's memory itself. Does not check whether they are permitted.
  virtual void prefetch(std::span<const WorkRequest> /*requests*/) const {}
  /// Posts receives; returns how many there was room for. Requires: the pair has receives of its
  /// own.
  std::size_t post_receives(std::span<const Receive> receives);
  [[nodiscard]] std::uint32_t receives_posted() const { return receives_->posted(); }

  /// A writable mapping of the peer's memory. Null: the transport maps none, the peer has not
  /// granted it, or it is not mapped yet: the call requests it, and a later one may find it. Cost:
  /// once mapped, an allocation.
  [[nodiscard]] virtual std::shared_ptr<PeerMemory> writable_memory(RegionKey /*key*/,
                                                                    std::uint64_t /*remote*/,
                                                                    std::uint64_t /*bytes*/) {
    return nullptr;
  }

  /// Closes the connection from this side: requests in flight are flushed immediately.
  virtual void close() = 0;

  /// Whether the peer has shown that it knows of the connection. The accepting side is connected
  /// before; over some transports the request may have had a spoofed source address.
  [[nodiscard]] virtual bool peer_knows() const { return state_ == State::connected; }

 protected:
  /// Requires: options.sends is given.
  QueuePair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties);

  /// Begins well-formed requests, each with a reserved entry in the completion queue; returns how
  /// many there was room for. The state is `connecting` or `connected`.
  virtual std::size_t begin(std::span<const WorkRequest> requests) = 0;

  /// Uses or releases the entry that was reserved for a request.
  void complete(const WorkRequest& request, Status status, std::uint64_t old_value = 0) {
    if (status == Status::success && !request.signalled) return sends().release();
    Completion completion;
    completion.work_id = request.work_id;
    completion.old_value = old_value;
    completion.pair = number_;
    completion.bytes = request.bytes;
    completion.status = status;
    completion.opcode = request.opcode;
    sends().push(completion);
  }
  /// Completes a receive that was taken. `opcode` is `receive` or `receive_write`.
  void complete_receive(const Receive& receive, Opcode opcode, Status status, std::uint32_t bytes,
                        const std::uint32_t* immediate = nullptr);
  void become_connected(std::span<const std::byte> peer_data);
  void set_undelivered_bytes(std::uint32_t bytes) { undelivered_bytes_ = bytes; }
  /// Keeps the private data of the peer's reject; the error state follows.
  void keep_refusal(std::span<const std::byte> peer_data);
  /// Makes the state `error`; repeating it changes nothing. Flushes the pair's own receives. The
  /// transport flushes what it holds itself.
  void enter_error_state(Status why);

  [[nodiscard]] const QueuePairOptions& options() const { return options_; }
  [[nodiscard]] ReceiveQueue& receives() const { return *receives_; }
  [[nodiscard]] CompletionQueue& sends() const { return *options_.sends; }

 private:
  [[nodiscard]] bool well_formed(const WorkRequest& request) const;

  std::uint32_t number_;
  QueuePairOptions options_;
  const Properties& properties_;
  std::unique_ptr<ReceiveQueue> own_receives_;
  ReceiveQueue* receives_;
  State state_ = State::connecting;
  Status ended_by_ = Status::success;
  std::uint32_t undelivered_bytes_ = 0;
  std::vector<std::byte> peer_data_;
};

}  // namespace espalier::fabric
