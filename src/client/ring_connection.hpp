// SPDX-License-Identifier: Apache-2.0
// A connection to a node on this machine: its memory, its socket, and the lanes that its threads
// take (lane.hpp).
//
// The threads of a process share one request ring, in which each reserves lines with one atomic
// step and publishes them by itself: a line that is there tells so, whoever wrote the ones before
// it. Each has a response ring to itself. So nobody takes a lock, and nobody hands an answer on.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "memory/shared_memory.hpp"
#include "offload/ring.hpp"
#include "wire/ring.hpp"

namespace espalier::client {

class RingConnection {
 public:
  /// Connects to the node at this UNIX socket. Errors: system (detail: errno; nobody listens, or
  /// not for us), connection_lost (it ended the connection before it was one), corrupt (what
  /// listens is no node), and why the node refused: unsupported, too_many_participants.
  static Result<std::shared_ptr<RingConnection>> open(const std::string& path);
  RingConnection(const RingConnection&) = delete;
  RingConnection& operator=(const RingConnection&) = delete;
  ~RingConnection() = default;

  /// Drawn by the node when it started: another number is another node, with maps of its own.
  [[nodiscard]] std::uint64_t node_id() const { return node_id_; }

  /// A response ring for one lane, for as long as the connection lasts; nothing: all are taken.
  std::optional<std::uint32_t> take_ring();

  /// The rings, as their users build them.
  [[nodiscard]] offload::LineSpace requests() const;
  [[nodiscard]] offload::LineReader responses(std::uint32_t ring) const;
  [[nodiscard]] std::byte* sleeping_word(std::uint32_t ring) const;

  /// Reserves lines of the request ring for a message, if there is room for all of them. Returns
  /// the number of the first. Cost: an atomic step.
  std::optional<std::uint64_t> reserve(std::uint64_t lines, offload::LineSpace& space);
  /// The same, whether there is room or not: the writer must see to it before each line.
  std::uint64_t reserve_anyway(std::uint64_t lines) { return tail_.fetch_add(lines); }
  /// The line behind all that are reserved.
  [[nodiscard]] std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  /// Tells the node of all lines before `tail`. Cost: a store, a load; a system call if it sleeps.
  void ring(std::uint64_t tail);

  /// Sleeps until a response comes to this ring, or for a while. `ready` says whether one is there.
  void fall_asleep(std::uint32_t ring, const offload::LineReader& responses,
                   std::uint64_t longest_ns);
  /// Whether the connection has ended. Asks the socket. Cost: a system call.
  bool ask_lost();
  /// Ends the connection, whoever still keeps it.
  void hang_up();
  /// The node does not keep to the protocol.
  void lose() { lost_.store(true, std::memory_order_release); }
  [[nodiscard]] bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  RingConnection() = default;
  Result<void> say_hello(const std::string& path);
  Result<void> map_memory(const wire::ConnectionLayout& layout, std::uint32_t doorbell,
                          std::uint32_t worker, memory::Descriptor (&descriptors)[3]);

  memory::Descriptor socket_;
  wire::ConnectionLayout layout_;
  memory::SharedMemory memory_;
  memory::SharedMemory doorbells_;
  memory::SharedMemory node_page_;
  std::byte* doorbell_ = nullptr;
  const std::byte* worker_sleeps_ = nullptr;
  std::uint64_t node_id_ = 0;
  bool node_asymmetric_ = false;
  bool asymmetric_ = false;  // and so are we
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<bool> lost_{false};
  std::atomic<std::uint32_t> rings_taken_{0};
};

}  // namespace espalier::client
