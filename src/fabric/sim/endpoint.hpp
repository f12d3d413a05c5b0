// SPDX-License-Identifier: Apache-2.0
// An endpoint of a simulated world: its pairs by number, and its pending connections.
//
// Addresses are names at which an endpoint of the world listens. A connecting pair repeats its
// request until it is answered; an endpoint remembers its answers, so that a repeated request makes
// one connection. A pair's end is sent to the peer until the peer acknowledges it, or until the
// pair's retries are used up.
//
// Invariants
// I1. A pair is found by its number from its construction to its destruction.
//
// Thread: that of its world; wake() any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/endpoint.hpp"
#include "fabric/sim/message.hpp"
#include "fabric/sim/unflushed_lines.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {

class Pair;

class NodeEndpoint final : public Endpoint {
 public:
  NodeEndpoint(World& world, std::uint32_t id, std::shared_ptr<RegionTable> regions);
  ~NodeEndpoint() override;

  Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                             const QueuePairOptions& options,
                                             std::span<const std::byte> data) override;
  Result<void> listen(std::string_view address) override;
  std::optional<ConnectRequest> next_request() override;
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                            const QueuePairOptions& options,
                                            std::span<const std::byte> data) override;
  using Endpoint::reject;
  void reject(const ConnectRequest& request, std::span<const std::byte> data) override;
  /// Takes Faults::progress_ns, during which the world goes on; inside an action, no time.
  void progress() override { world_.spend(world_.faults().progress_ns); }
  /// Lets the world go on. May return early once, for an earlier event.
  void wait(std::uint64_t timeout_ns) override;
  void wake() override { news_.store(true, std::memory_order_relaxed); }

  // For the world and the pairs.

  [[nodiscard]] World& world() const { return world_; }
  [[nodiscard]] RegionTable::Reader& reader() { return reader_; }
  /// Of its regions, with all endpoints of the node that offer the same.
  [[nodiscard]] UnflushedLines& unflushed() { return *unflushed_; }
  void share_unflushed(const NodeEndpoint& other) { unflushed_ = other.unflushed_; }
  [[nodiscard]] Pair* find(std::uint32_t number) const;
  void add(Pair& pair, std::uint32_t number) { pairs_.emplace(number, &pair); }
  void remove(std::uint32_t number) { pairs_.erase(number); }
  void on_message(Message message);
  /// The pairs end, without a message to their peers.
  void crash();
  /// Sends a pair's end to the peer, again and again.
  void notify_end(PairName from, PairName to, Status why, std::uint32_t retries,
                  std::uint64_t every_ns);

 private:
  /// A connection that is pending, or was.
  struct Incoming {
    enum class State : std::uint8_t { pending, accepted, rejected, gone };
    std::uint64_t id = 0;
    State state = State::pending;
    std::uint32_t pair = 0;       // of this side, once accepted
    std::vector<std::byte> data;  // the peer's, and once accepted this side's
  };

  [[nodiscard]] Incoming* pending(std::uint64_t id, PairName* peer);
  void on_connect(Message message);
  void on_accept(Message message);
  void on_end(const Message& message);
  void answer(PairName peer, const Incoming& incoming);

  World& world_;
  std::uint32_t id_;
  std::atomic<bool> news_{false};
  bool listens_ = false;
  std::uint32_t last_number_ = 0;
  std::uint64_t last_request_ = 0;
  std::map<std::uint32_t, Pair*> pairs_;
  std::map<PairName, Incoming> incoming_;
  std::deque<PairName> requests_;
  std::map<PairName, std::uint32_t> peers_to_notify_;  // how often yet
  RegionTable::Reader reader_;
  std::shared_ptr<UnflushedLines> unflushed_ = std::make_shared<UnflushedLines>();
};

}  // namespace espalier::fabric::sim
