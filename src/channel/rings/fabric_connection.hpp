// SPDX-License-Identifier: Apache-2.0
// A connection to a node over a fabric: memory of our own with the same rings, and a link that
// carries them (rings/ring_link.hpp).
//
// A queue pair that fails does not end it: it connects again, names its session, and both sides go
// on where they were. Only if the node does not know the session any more, or does not answer for
// long, is it lost, and what is in flight with it.
//
// The endpoint belongs to one thread at a time, so whoever asks, polls or waits holds a lock;
// RemoteSessions gives each thread a connection of its own, where nobody waits for it. While none
// does, the keepalive thread of the process answers for it.
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
  /// How long it tries to reach the node after the pair has failed; at first, for one dial at most,
  /// and for as many as a node with too many clients refuses.
  std::uint64_t timeout_ns = 10'000'000'000;
  /// Who waits, and has heard nothing for so long, asks whether the node is there.
  std::uint64_t silence_ns = 1'000'000'000;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  /// Somebody calls keep() now and then, so what can leave with the next request may wait for it.
  bool has_keepalive = false;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
  /// Called by another thread that finds that it is lost while nobody uses it. Must not call it.
  std::function<void()> on_lost = nullptr;
  /// Who comes, and proves it; null: whoever it is. Then the node must prove itself too.
  std::shared_ptr<const KnownSecret> secret = nullptr;
};

class FabricConnection final : public NodeConnection, public KeepaliveTarget {
 public:
  /// Errors: those of fabric::open_for_connecting but connection_lost; system (ECONNREFUSED: nobody
  /// serves there; ETIMEDOUT: nobody answers; EAGAIN: no thread is to be had), corrupt (what
  /// answers is no node), and why the node refused: unsupported, too_many_participants,
  /// out_of_memory (of rings, the smallest too); not_permitted, as prove_link() has it.
  static Result<std::shared_ptr<FabricConnection>> open(const fabric::FabricAddress& address,
                                                        FabricConnectionOptions options = {});
  /// The same through an endpoint that is there, without the keepalive thread of the process.
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
  /// The same through an endpoint that is there, by the times of the connection.
  Result<std::unique_ptr<SideLink>> open_beside(wire::LinkWay way, fabric::Connecting through);
  void copy_key(crypto::SecretBytes& key) override;
  Result<WritableMemory> offer_memory(std::uint64_t bytes) override;
  void hang_up() override;
  void keep() override;
  /// Has the node end the session, dialling it again where the pair has failed. Returns whether the
  /// node knows it no more: then nothing that it posted can take effect any more, nor anything that
  /// was written by a key of it. The connection is lost from then on. Requires: nobody else uses
  /// it. Cost: three round trips, or `timeout_ns` where the node is silent.
  [[nodiscard]] bool end_session(std::uint64_t timeout_ns);

  /// How often it went on after its pair had failed.
  [[nodiscard]] std::uint64_t resumed() const { return resumed_; }

 private:
  enum class State : std::uint8_t { connecting, up, waiting };
  /// What the node may write beside the rings: of no other connection, for its pair is the only one
  /// of the endpoint.
  struct Offered {
    memory::SharedMemory memory;
    fabric::Registration region;  // goes first
  };

  FabricConnection(fabric::Connecting way, const FabricConnectionOptions& options);
  Result<void> connect_first();
  /// With rings of `layout_`. Proofs have a time of their own.
  Result<void> connect_with_rings(std::uint64_t until_ns);
  Result<void> connect_until(std::uint64_t until_ns);
  Result<void> prove();
  Result<void> dial();
  [[nodiscard]] wire::LinkHello own_hello() const;
  Result<std::vector<std::byte>> hello_beside(wire::LinkWay way);
  Result<std::vector<std::byte>> signed_hello(const wire::LinkHello& hello);
  Result<void> take_welcome();
  void work();
  /// Where the heap has nothing for it, nobody knows what was said and heard: the connection is
  /// lost.
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
  std::uint32_t uses_at_keepalive_ = 0;  // those that the keepalive thread knows of; its own
  std::mutex mutex_;                     // of all below, but for reading the atomic ones
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
  std::optional<ProvenSession> proven_;  // null: nobody asked for proofs
  State state_ = State::connecting;
  std::uint64_t give_up_ns_ = 0;
  bool heard_ = true;  // anything from the node, since it was dialled last
  // Slots that had moved when a packet did not get through last.
  std::uint64_t moved_before_undelivered_ = ~std::uint64_t{0};
  std::uint64_t again_ns_ = 0;
  std::uint64_t asked_idle_ns_ = 0;
  std::uint64_t asked_ns_ = 0;
  std::uint32_t quiet_works_ = 0;
  std::atomic<std::uint64_t> resumed_{0};
  std::atomic<std::uint32_t> uses_{0};
  std::uint64_t idle_since_ns_ = 0;  // when a lane last said so, and none has asked since; 0: never
  bool in_a_row_ = false;            // the next request usually follows at once
};

}  // namespace espalier::client
