// SPDX-License-Identifier: Apache-2.0
// One memif link: two ends agree on memory and rings over a UNIX socket; closing the socket closes
// the link.
//
//   connecting                         listening
//        |  <------------------------ hello   what is possible
//        |  init ------------------->         which link
//        |  add_region (memory) ---->
//        |  add_ring (event), twice ->
//        |  connect ----------------->
//        |  <-------------------- connected   frames may go
//
// Nothing blocks: progress() handles what has arrived. A peer that violates the protocol ends the
// link, and so does one that falls silent before it is up.
//
// Thread: one at a time, that of the port; so the memory of a link that ends is unmapped when no
// thread reads it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "espalier/error.hpp"
#include "fabric/memif/ring.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::memif {

class MemifLink {
 public:
  enum class State : std::uint8_t { agreeing, up, ended };

  /// The end that connects, and makes the memory. Errors: invalid_argument (no path of a socket),
  /// connection_lost (no process listens), not_permitted (base::check_server),
  /// system (EAGAIN: it has not accepted others yet).
  static Result<std::unique_ptr<MemifLink>> dial(const std::string& path, std::uint32_t number,
                                                 std::optional<std::uint32_t> server_user = {});
  /// The end that listens, for one that has connected.
  static std::unique_ptr<MemifLink> accept(memory::Descriptor socket);
  MemifLink(const MemifLink&) = delete;
  MemifLink& operator=(const MemifLink&) = delete;
  ~MemifLink() = default;

  /// Handles what has arrived. `is_free` decides whether the peer may have the link of a number.
  void progress(const std::function<bool(std::uint32_t)>& is_free);
  [[nodiscard]] State state() const { return state_; }
  void end() { state_ = State::ended; }
  /// Whether it has ended because the peer, after this side's init, did not go on.
  [[nodiscard]] bool refused() const { return refused_; }
  /// Which it is; nothing before the peer has said so.
  [[nodiscard]] std::optional<std::uint32_t> number() const { return number_; }

  // When it is up.

  [[nodiscard]] SendingRing& out() { return out_; }
  [[nodiscard]] ReceivingRing& in() { return in_; }
  /// Wakes the peer, which sleeps.
  void wake_peer() const;

  /// Becomes readable when there is something to deal with.
  [[nodiscard]] int socket() const { return socket_.number(); }
  /// An event that the peer adds to when we sleep; is never read, so ask for its edges.
  [[nodiscard]] int event() const { return in_event_.number(); }

 private:
  struct PlacedRing {
    Ring ring;
    memory::Descriptor event;
  };
  using Message = std::array<std::byte, 128>;

  explicit MemifLink(memory::Descriptor socket) : socket_(std::move(socket)) {}
  [[nodiscard]] bool take(const Message& message, memory::Descriptor descriptor,
                          const std::function<bool(std::uint32_t)>& is_free);
  [[nodiscard]] bool take_connecting(const Message& message);
  [[nodiscard]] bool take_listening(const Message& message, memory::Descriptor descriptor,
                                    const std::function<bool(std::uint32_t)>& is_free);
  [[nodiscard]] bool add_region(const Message& message, memory::Descriptor descriptor);
  [[nodiscard]] bool add_ring(const Message& message, memory::Descriptor descriptor);
  [[nodiscard]] bool offer(std::uint32_t log2_slots);
  [[nodiscard]] bool start_listening_end();
  template <class T>
  [[nodiscard]] bool say(const T& message, int descriptor = -1) const;
  [[nodiscard]] bool acknowledge() const;
  void refuse(const char* reason);

  State state_ = State::agreeing;
  bool connects_ = false;
  bool offered_ = false;
  std::uint32_t acknowledged_ = 0;  // by the listening end
  bool refused_ = false;
  memory::Descriptor socket_;
  std::optional<std::uint32_t> number_;
  Regions regions_;
  std::optional<PlacedRing> to_listener_;
  std::optional<PlacedRing> from_listener_;
  SendingRing out_;
  ReceivingRing in_;
  memory::Descriptor in_event_;
  memory::Descriptor out_event_;
};

}  // namespace espalier::fabric::memif
