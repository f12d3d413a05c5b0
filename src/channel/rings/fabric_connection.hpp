// SPDX-License-Identifier: Apache-2.0
// A connection to a node over a fabric: rings in local memory, mirrored to the node by a link
// (rings/ring_link.hpp).
//
// It survives the failure of its queue pair: it connects again, names its session, and both sides
// resume where they were. It is lost, with all requests in flight, only if the node does not know
// the session any more or does not answer for long.
//
// The endpoint belongs to one thread at a time, so a thread that sends, polls or waits holds a
// lock. RemoteSessions gives each thread a connection of its own, so the lock is not contended.
// While no thread uses the connection, the keepalive thread of the process answers the node's
// probes.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "channel/rings/keepalive_thread.hpp"
#include "channel/rings/known_secret.hpp"
#include "channel/rings/link_prover.hpp"
#include "channel/rings/node_connection.hpp"
#include "fabric/address.hpp"
#include "fabric/endpoint.hpp"
#include "rings/ring_link.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

struct FabricConnectionOptions {
  wire::LinkWay way = wire::LinkWay::write;
  std::uint32_t request_slots = 512;
  std::uint32_t response_slots = 1024;
  std::uint32_t response_rings = wire::kResponseRingsMax;
  /// How long it tries to reach the node after the pair has failed. At first, how long one dial may
  /// take, and retries at a node with too many clients.
  std::uint64_t timeout_ns = 10'000'000'000;
  /// Keepalive interval: after so long without a message a waiting thread probes the node.
  std::uint64_t silence_ns = 1'000'000'000;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  /// keep() is called regularly, so ACKs may be delayed until the next request.
  bool has_keepalive = false;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
  /// Called by another thread that finds that the connection is lost while no thread uses it. Must
  /// not call the connection.
  std::function<void()> on_lost = nullptr;
  /// The client's name and secret, for mutual authentication; null: none.
  std::shared_ptr<const KnownSecret> secret = nullptr;
};

class FabricConnection final : public NodeConnection, public KeepaliveTarget {
 public:
  /// Errors: those of fabric::open_for_connecting but connection_lost; system (ECONNREFUSED: no
  /// server there; ETIMEDOUT: no answer; EAGAIN: no thread available), corrupt (the peer is not a
  /// node), and the node's reason for refusal: unsupported, too_many_participants, out_of_memory
  /// (even for the smallest rings); not_permitted, as of prove_link().
  static Result<std::shared_ptr<FabricConnection>> open(const fabric::FabricAddress& address,
                                                        FabricConnectionOptions options = {});
  /// The same through an existing endpoint, without the keepalive thread of the process.
  static Result<std::shared_ptr<FabricConnection>> open(
      fabric::Connecting way, const FabricConnectionOptions& options = {});
  ~FabricConnection() override;

  [[nodiscard]] rings::SlotReader responses(std::uint32_t ring) const override;
  void ring(std::uint64_t tail) override;
  void make_progress() override;
  void enter_idle() override;
  void fall_asleep(std::uint32_t ring, const rings::SlotReader& responses,
                   std::uint64_t longest_ns) override;
  bool ask_lost() override;
  bool ask_lost_idle() override;
  Result<std::unique_ptr<SideLink>> open_beside(wire::LinkWay way) override;
  /// The same through an existing endpoint, with the connection's timeouts.
  Result<std::unique_ptr<SideLink>> open_beside(wire::LinkWay way, fabric::Connecting through);
  void copy_key(crypto::SecretBytes& key) override;
  Result<WritableMemory> offer_memory(std::uint64_t bytes) override;
  void hang_up() override;
  void keep() override;
  /// Has the node end the session; dials it again if the pair has failed. Returns whether the node
  /// does not know the session any more: then no earlier post of this side can take effect, nor any
  /// write by one of its keys. The connection is lost from then on. Requires: no other thread uses
  /// it. Cost: three round trips, or `timeout_ns` if the node is silent.
  [[nodiscard]] bool end_session(std::uint64_t timeout_ns);

  /// How often it resumed after its pair had failed.
  [[nodiscard]] std::uint64_t resumed() const { return resumed_; }

 private:
  enum class State : std::uint8_t { connecting, up, waiting };
  /// Memory that the node may write beside the rings. Only this connection's node can: its pair is
  /// the endpoint's only one.
  struct Offered {
    memory::SharedMemory memory;
    fabric::Registration region;  // destroyed first
  };

  FabricConnection(fabric::Connecting way, const FabricConnectionOptions& options);
  Result<void> connect_first();
  /// Connects with rings of `layout_`. Proofs have their own timeout.
  Result<void> connect_with_rings(std::uint64_t until_ns);
  Result<void> connect_until(std::uint64_t until_ns);
  Result<void> prove();
  Result<void> dial();
  [[nodiscard]] wire::LinkHello own_hello() const;
  Result<std::vector<std::byte>> hello_beside(wire::LinkWay way);
  Result<std::vector<std::byte>> signed_hello(const wire::LinkHello& hello);
  Result<void> take_welcome();
  void work();
  /// Runs `work`. If it runs out of memory, the state of the protocol is unknown, and the
  /// connection is lost.
  template <class Work>
  void or_lose(const Work& work);
  std::size_t mirror_and_take();
  void take(const fabric::Completion& completion);
  void ask_in_silence();
  void post_receives();
  void go_on();
  void begin_again();
  void wait_to_try_again(std::uint64_t now_ns);
  void try_again(std::uint64_t now_ns);
  void drop_pair();
  void say_close(std::uint64_t until_ns);

  FabricConnectionOptions options_;
  std::shared_ptr<KeepaliveThread> keepalive_;
  std::uint32_t uses_at_keepalive_ = 0;  // uses_ at its last round; used by its thread alone
  std::mutex mutex_;                     // guards all below, except loads of atomics
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::string target_;
  std::optional<fabric::FabricAddress> address_;  // null: the endpoint was given
  std::uint32_t mtu_bytes_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<std::byte> buffers_;  // of receives
  std::unique_ptr<rings::RingLink> link_;
  fabric::Registration region_;
  std::vector<Offered> offered_;
  std::unique_ptr<fabric::QueuePair> pair_;
  wire::LinkToken token_{};
  std::optional<ProvenSession> proven_;  // null: without authentication
  State state_ = State::connecting;
  std::uint64_t give_up_ns_ = 0;
  bool heard_ = true;  // whether anything arrived since the last dial
  // Slots moved when a packet last did not get through.
  std::uint64_t moved_before_undelivered_ = ~std::uint64_t{0};
  std::uint64_t again_ns_ = 0;
  std::uint64_t asked_idle_ns_ = 0;
  std::uint64_t asked_ns_ = 0;
  std::uint32_t quiet_works_ = 0;
  std::atomic<std::uint64_t> resumed_{0};
  std::atomic<std::uint32_t> uses_{0};
  std::uint64_t idle_since_ns_ = 0;  // since the last enter_idle() without a request; 0: not idle
  bool in_a_row_ = false;            // the next request usually follows immediately
};

}  // namespace espalier::client
