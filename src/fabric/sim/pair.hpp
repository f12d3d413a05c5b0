// SPDX-License-Identifier: Apache-2.0
// A queue pair of a simulated world: how it connects and ends. Its Requester sends its requests,
// its Responder executes the peer's.
//
// Invariants
// I1. When it has ended nothing of it is in flight: all requests have completed, or their entries
//     are released, and no memory of this side is touched for it any more.
//
// Thread: that of its world.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/queue_pair.hpp"
#include "fabric/sim/message.hpp"
#include "fabric/sim/requester.hpp"
#include "fabric/sim/responder.hpp"
#include "fabric/sim/tags.hpp"

namespace espalier::fabric::sim {

class NodeEndpoint;
class World;

class Pair final : public QueuePair {
 public:
  Pair(NodeEndpoint& endpoint, PairName name, const QueuePairOptions& options);
  ~Pair() override;

  void close() override;

  /// The connecting side.
  void connect_to(std::string_view address, std::span<const std::byte> data);
  /// The accepting side.
  void connected_to(PairName peer, std::span<const std::byte> peer_data);
  void on_message(Message message);
  /// Ends it, for a reason that no request of this side completes with: all are flushed.
  void end(Status why, bool notify);

  // For its parts.

  [[nodiscard]] PairName name() const { return name_; }
  /// Whether this is the pair at the other end; while connecting, whether it may become that.
  [[nodiscard]] bool is_peer(PairName name) const;
  [[nodiscard]] NodeEndpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] World& world() const;
  [[nodiscard]] const Properties& properties() const;
  [[nodiscard]] Requester& requester() { return requester_; }
  [[nodiscard]] Responder& responder() { return responder_; }
  /// A message to the peer, still without content.
  [[nodiscard]] Message message(Message::Kind kind, std::uint64_t sequence) const;
  /// Something that this pair will do, if it is still there.
  void after(std::uint64_t delay_ns, What what, std::uint64_t which,
             std::move_only_function<void(Pair&)> action);
  void complete_noted(const WorkRequest& request, Status status, std::uint64_t old_value = 0);
  void complete_receive_noted(const Receive& receive, Opcode opcode, Status status,
                              std::uint32_t bytes, const std::uint32_t* immediate = nullptr);
  using QueuePair::options;
  using QueuePair::receives;
  using QueuePair::sends;

 private:
  std::size_t begin(std::span<const WorkRequest> requests) override;
  void notify_peer(Status why);
  void ask();
  void ask_again();

  NodeEndpoint& endpoint_;
  PairName name_;
  PairName peer_;  // while connecting: the endpoint that was asked, without a number
  std::string address_;
  std::vector<std::byte> data_;
  std::uint32_t asked_ = 0;  // in vain
  Requester requester_;
  Responder responder_;
};

}  // namespace espalier::fabric::sim
