// SPDX-License-Identifier: Apache-2.0
// A queue pair: one end of a reliable connection, through which this side works on the peer's
// regions and exchanges messages with it.
//
// A pair is connected once. Its first failure ends it, on both sides: the request that failed is
// told with the reason, and everything behind it, posted then or later, with `flushed`. What was
// flushed may or may not have been done.
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
  CompletionQueue* sends = nullptr;         // where work requests are told; must be given
  CompletionQueue* receives = nullptr;      // where receives are; null: the same
  ReceiveQueue* shared_receives = nullptr;  // use these, instead of receives of its own
  std::uint32_t send_depth = 128;           // work requests posted and not ended
  std::uint32_t receive_depth = 128;        // of its own receives
  std::uint32_t reads_in_flight = 128;      // READs and atomics; transport or peer may allow fewer
  Domain domain = 0;                        // whose regions the peer may reach through it
  std::uint32_t mtu_bytes = 4096;           // of transports that send packets: 1024 or 4096
  std::uint32_t retries = 7;                // before retry_exceeded
  std::uint32_t receive_retries = 7;        // before no_receive; 7: for ever [verbs: rnr_retry]
  /// Without an answer, before a retry counts. Transports that lose packets ask again much earlier.
  std::uint64_t timeout_ns = 67'000'000;
  /// What the peer's requests are acknowledged by leaves with our own next ones, which spares a
  /// packet; at the latest with Endpoint::flush(), when the endpoint sleeps, or a few microseconds
  /// later, if it makes progress then. For who answers what he is asked; his peer may know a little
  /// later that its requests are done. Of transports that send packets.
  bool delayed_acks = false;
};

/// How far post() came.
struct Posted {
  enum class Stopped : std::uint8_t {
    no,         // all were taken
    full,       // no room in the send queue or among the completions: poll, then post the rest
    malformed,  // the next one can never be: its opcode, length or alignment
  };
  std::size_t taken = 0;
  Stopped stopped = Stopped::no;
};

/// A part of a region of the peer, as this process maps it: stores go there as those of WRITEs do,
/// but for their order, which is the caller's own. It stays mapped while this lives, whatever
/// becomes of the pair. Thread: any.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  /// Whether its key is good. What is stored after that has ended is nobody's.
  [[nodiscard]] virtual bool good() const = 0;
};

class QueuePair {
 public:
  enum class State : std::uint8_t { connecting, connected, error };

  virtual ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// Which it is, among those of its endpoint; what completions carry.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] State state() const { return state_; }
  /// Why it ended: success if either side closed it; remote_operation if the peer refused the
  /// connection, retry_exceeded if nobody answered.
  [[nodiscard]] Status ended_by() const { return ended_by_; }
  /// Where it ended because a packet did not get through, this way or the other, though it was sent
  /// again for as long as the retries take: how long that was, in bytes with its IP header. 0: it
  /// ended for another reason, or the packet was no longer than those that connections are made by.
  [[nodiscard]] std::uint32_t undelivered_bytes() const { return undelivered_bytes_; }
  /// What the peer said when the connection was made, or when it refused it, with zeros behind it
  /// where the transport has a place of one size.
  [[nodiscard]] std::span<const std::byte> peer_data() const { return peer_data_; }

  /// Hands over work requests, in order, with one doorbell. Returns how many were taken. They leave
  /// at the latest with the next progress() of the endpoint, which poll() and wait() make too; so
  /// what several posts bring can leave together. While the pair is connecting they wait; when it
  /// has ended they are flushed.
  Posted post(std::span<const WorkRequest> requests);
  Posted post(const WorkRequest& request) { return post({&request, 1}); }
  /// Says what will be posted before long, so that where this process reads and writes the peer's
  /// memory itself, it asks for that by now. Says nothing of whether it may be done.
  virtual void prefetch(std::span<const WorkRequest> /*requests*/) const {}
  /// Hands over room for messages; returns how many there was room for. Requires: the pair has
  /// receives of its own.
  std::size_t post_receives(std::span<const Receive> receives);
  [[nodiscard]] std::uint32_t receives_posted() const { return receives_->posted(); }

  /// Memory of the peer that may be written, to be stored to. Null: the transport maps none, the
  /// peer has not granted it, or it is not mapped yet: it was asked for, and the next call may find
  /// it. Cost: where it is mapped, an allocation.
  [[nodiscard]] virtual std::shared_ptr<PeerMemory> writable_memory(RegionKey /*key*/,
                                                                    std::uint64_t /*remote*/,
                                                                    std::uint64_t /*bytes*/) {
    return nullptr;
  }

  /// Ends the connection from this side: what is in flight is flushed at once.
  virtual void close() = 0;

  /// Whether the peer has shown that it knows of the connection. Who accepted one is connected
  /// before, and of some transports the request may have come in the name of another machine.
  [[nodiscard]] virtual bool peer_knows() const { return state_ == State::connected; }

 protected:
  /// Requires: options.sends is given.
  QueuePair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties);

  /// Begins requests that are well-formed, and for each of which a place among the completions is
  /// reserved; returns how many there was room for. The state is `connecting` or `connected`.
  virtual std::size_t begin(std::span<const WorkRequest> requests) = 0;

  /// Uses or gives back the place that was reserved for a request.
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
  /// Tells a receive that was taken. `opcode` is `receive` or `receive_write`.
  void complete_receive(const Receive& receive, Opcode opcode, Status status, std::uint32_t bytes,
                        const std::uint32_t* immediate = nullptr);
  void become_connected(std::span<const std::byte> peer_data);
  void set_undelivered_bytes(std::uint32_t bytes) { undelivered_bytes_ = bytes; }
  /// What the peer says as it refuses; the error state follows.
  void keep_refusal(std::span<const std::byte> peer_data);
  /// Makes the state `ended`; repeating it changes nothing. Flushes the pair's own receives. The
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
