// SPDX-License-Identifier: Apache-2.0
// A connection to a node, whatever lies between: its memory, and the lanes that threads take of it
// (thread_rings.hpp).
//
// The threads of a process share one request ring, in which each reserves slots with one atomic
// step and publishes them by itself: a slot that is there tells so, whoever wrote the ones before
// it. Each has a response ring to itself. So nobody takes a lock to ask, and nobody hands an answer
// on.
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

/// What a kind of object keeps with a connection. Thread: any.
/// Its constructor must not ask the connection for another part, for that holds a lock meanwhile.
/// Its destructor must not use the connection: parts end after what derives from NodeConnection.
class ConnectionPart {
 public:
  virtual ~ConnectionPart() = default;
};

class NodeConnection {
 public:
  virtual ~NodeConnection() = default;
  NodeConnection(const NodeConnection&) = delete;
  NodeConnection& operator=(const NodeConnection&) = delete;

  /// Drawn by the node when it started: another number is another node, with maps of its own.
  [[nodiscard]] std::uint64_t node_id() const { return node_id_; }

  /// A response ring for one lane, for as long as the connection lasts; nothing: all are taken.
  std::optional<std::uint32_t> take_ring();

  /// The rings, as their users build them.
  [[nodiscard]] rings::SlotSpace requests() const;
  [[nodiscard]] virtual rings::SlotReader responses(std::uint32_t ring) const = 0;

  /// Reserves slots of the request ring for a message, if there is room for all of them. Returns
  /// the number of the first. Cost: an atomic step.
  std::optional<std::uint64_t> reserve(std::uint64_t slots, rings::SlotSpace& space);
  /// The same, whether there is room or not: the writer must see to it before each slot.
  std::uint64_t reserve_anyway(std::uint64_t slots) { return tail_.fetch_add(slots); }
  /// The slot behind all that are reserved.
  [[nodiscard]] std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }

  /// Tells the node of all slots before `tail`.
  virtual void ring(std::uint64_t tail) = 0;
  /// Whether answers come only if somebody calls make_progress() now and then.
  [[nodiscard]] bool needs_progress() const { return needs_progress_; }
  virtual void make_progress() {}
  /// Nothing is awaited any more, and it may be long until somebody makes progress again.
  virtual void enter_idle() {}
  /// Sleeps until a response comes to this ring, or for a while.
  virtual void fall_asleep(std::uint32_t ring, const rings::SlotReader& responses,
                           std::uint64_t longest_ns) = 0;
  /// Whether the connection has ended. Cost: a system call.
  virtual bool ask_lost() = 0;
  /// The same before something is begun, while nothing is in flight: what then has to be made again
  /// is given up, for another connection is as good.
  virtual bool ask_lost_idle() { return lost(); }
  /// A pair to READ the node's memory for this connection's session, or to WRITE what the session
  /// was given. Errors: unsupported (there is none: of rings in shared memory, or the node does not
  /// offer that), as SideLink::open.
  virtual Result<std::unique_ptr<SideLink>> open_beside(wire::LinkWay /*way*/) {
    return fail(Code::unsupported);
  }
  /// The key that both ends have drawn out of what they have proven to each other; zeros: nothing
  /// was, or the rings lie in shared memory. `key` should be secret memory.
  virtual void copy_key(crypto::SecretBytes& key) { key = {}; }
  /// Memory of this process into which the node may write, for as long as the connection lives.
  struct WritableMemory {
    std::byte* at;
    fabric::RemoteRegion remote;
  };
  /// Makes some, of zeros. Errors: unsupported (nothing is written: of rings in shared memory),
  /// out_of_memory, system.
  virtual Result<WritableMemory> offer_memory(std::uint64_t /*bytes*/) {
    return fail(Code::unsupported);
  }
  /// What a kind keeps with it; made when first asked for. Cost: a lock.
  template <class P>
  [[nodiscard]] P& part() {
    const std::lock_guard lock(parts_mutex_);
    return parts_.of<P>();
  }
  /// Ends the connection, whoever still keeps it.
  virtual void hang_up() = 0;
  /// The node does not keep to the protocol, or is gone.
  void lose() { lost_.store(true, std::memory_order_release); }
  [[nodiscard]] bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// What is said of what was in flight when it was lost.
  [[nodiscard]] Error lost_error() const {
    return {Code::connection_lost, 0, undelivered_bytes_.load(std::memory_order_relaxed) << 16};
  }

 protected:
  explicit NodeConnection(bool needs_progress) : needs_progress_(needs_progress) {}
  /// The same, for packets of so many bytes do not get through.
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
  std::atomic<std::uint32_t> undelivered_bytes_{0};  // of packets, if it was lost for that
  std::atomic<std::uint32_t> rings_taken_{0};
};

}  // namespace espalier::client
