// SPDX-License-Identifier: Apache-2.0
// A connection to a node, over any transport: its memory, and the lanes that threads take of it
// (thread_rings.hpp).
//
// The threads of a process share one request ring. A thread reserves slots with one atomic step,
// and publishes them independently of other threads: each slot has its own mark. Each lane has a
// response ring of its own. So threads neither take a lock to send a request nor hand answers to
// each other.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/typed_slots.hpp"
#include "channel/rings/side_link.hpp"
#include "crypto/credential.hpp"
#include "memory/shared_memory.hpp"
#include "rings/ring.hpp"
#include "wire/ring.hpp"

namespace espalier::client {

/// State that a kind of object keeps with a connection. Thread: any.
/// Its constructor must not ask the connection for another part, since a lock is held meanwhile.
/// Its destructor must not use the connection: parts are destroyed after the class derived from
/// NodeConnection.
class ConnectionPart {
 public:
  virtual ~ConnectionPart() = default;
};

class NodeConnection {
 public:
  virtual ~NodeConnection() = default;
  NodeConnection(const NodeConnection&) = delete;
  NodeConnection& operator=(const NodeConnection&) = delete;

  /// Drawn at random when the node starts: a node with another number has other objects.
  [[nodiscard]] std::uint64_t node_id() const { return node_id_; }

  /// Takes a response ring for one lane, for as long as the connection lasts; nothing: all are
  /// taken.
  std::optional<std::uint32_t> take_ring();

  /// The memory of the rings, from which their users build readers and writers.
  [[nodiscard]] rings::SlotSpace requests() const;
  [[nodiscard]] virtual rings::SlotReader responses(std::uint32_t ring) const = 0;

  /// Reserves slots of the request ring for a message, if all of them are free. Returns the number
  /// of the first. Cost: an atomic step.
  std::optional<std::uint64_t> reserve(std::uint64_t slots, rings::SlotSpace& space);
  /// Reserves slots whether they are free or not: the writer must wait for each slot to become
  /// free.
  std::uint64_t reserve_anyway(std::uint64_t slots) { return tail_.fetch_add(slots); }
  /// The slot after all reserved ones.
  [[nodiscard]] std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }

  /// Rings the doorbell for all slots before `tail`.
  virtual void ring(std::uint64_t tail) = 0;
  /// Whether answers arrive only while a thread calls make_progress().
  [[nodiscard]] bool needs_progress() const { return needs_progress_; }
  virtual void make_progress() {}
  /// Flushes what is pending: nothing is awaited any more, and make_progress() may not be called
  /// for long.
  virtual void enter_idle() {}
  /// Blocks until a response arrives in this ring, or up to `longest_ns`.
  virtual void fall_asleep(std::uint32_t ring, const rings::SlotReader& responses,
                           std::uint64_t longest_ns) = 0;
  /// Whether the connection has ended. Cost: a system call.
  virtual bool ask_lost() = 0;
  /// The same before a request is begun, with nothing in flight: a connection that would need a
  /// reconnect is given up instead, since a new one is as good.
  virtual bool ask_lost_idle() { return lost(); }
  /// Opens a pair to READ the node's memory for this connection's session, or to WRITE memory
  /// offered to the session. Errors: unsupported (rings in shared memory, or the node does not
  /// offer it), as SideLink::open.
  virtual Result<std::unique_ptr<SideLink>> open_beside(wire::LinkWay /*way*/) {
    return fail(Code::unsupported);
  }
  /// The session key that both ends derived from the proofs; zeros: there were none, or the rings
  /// lie in shared memory. `key` should be secret memory.
  virtual void copy_key(crypto::SecretBytes& key) { key = {}; }
  /// Memory of this process that the node may write while the connection lives.
  struct WritableMemory {
    std::byte* at;
    fabric::RemoteRegion remote;
  };
  /// Makes such memory, filled with zeros. Errors: unsupported (rings in shared memory),
  /// out_of_memory, system.
  virtual Result<WritableMemory> offer_memory(std::uint64_t /*bytes*/) {
    return fail(Code::unsupported);
  }
  /// The state of a kind; made when first asked for. Cost: a lock.
  template <class P>
  [[nodiscard]] P& part() {
    const std::lock_guard lock(parts_mutex_);
    return parts_.of<P>();
  }
  /// Closes the connection, even if other threads still hold it.
  virtual void hang_up() = 0;
  /// Marks the connection as lost: the node violates the protocol, or is gone.
  void lose() { lost_.store(true, std::memory_order_release); }
  [[nodiscard]] bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// The error of requests in flight when the connection was lost.
  [[nodiscard]] Error lost_error() const {
    return {Code::connection_lost, 0, undelivered_bytes_.load(std::memory_order_relaxed) << 16};
  }

 protected:
  explicit NodeConnection(bool needs_progress) : needs_progress_(needs_progress) {}
  /// lose() because packets of so many bytes do not get through.
  void lose_undelivered(std::uint32_t bytes) {
    undelivered_bytes_.store(bytes, std::memory_order_relaxed);
    lose();
  }

  wire::ConnectionLayout layout_;
  memory::SharedMemory memory_;
  std::uint64_t node_id_ = 0;

 private:
  const bool needs_progress_;
  std::mutex parts_mutex_;  // guards parts_
  base::TypedSlots<ConnectionPart> parts_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<bool> lost_{false};
  std::atomic<std::uint32_t> undelivered_bytes_{0};  // of packets that do not get through; or 0
  std::atomic<std::uint32_t> rings_taken_{0};
};

}  // namespace espalier::client
