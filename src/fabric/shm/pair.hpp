// SPDX-License-Identifier: Apache-2.0
// A queue pair between two processes of one machine.
//
// One-sided requests execute inside post(), unless an earlier request has not completed: then they
// wait their turn, so that effects and completions keep their order. SENDs and WRITEs with
// immediate go through the ring, and complete when the peer has taken them; a WRITE behind such a
// one goes the same way, and the peer executes it, so that it neither overtakes nor waits.
//
// Invariants
// I1. While requests have begun and not completed, all of them went through the ring.
// I2. completed_ <= sent_: messages that the peer has taken were written wholly.
// I3. A pair whose socket was closed still receives what its ring holds, as far as there are
//     receives, before it enters the error state: the last message, mostly a close note, counts as
//     much as all before.
//
// Thread: that of its endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/queue_pair.hpp"
#include "fabric/region_table.hpp"
#include "fabric/send_queue.hpp"
#include "fabric/shm/one_sided.hpp"
#include "fabric/shm/pair_socket.hpp"
#include "fabric/shm/piece_rings.hpp"
#include "fabric/shm/service.hpp"

namespace espalier::fabric::shm {

class Pair;

/// Lines of a connection's ring, each way.
inline constexpr std::uint32_t kRingSlots = 1024;

/// What the pairs of an endpoint have in common.
struct Host {
  RegionTable& regions;
  RegionTable::Reader& reader;
  Service& service;
  std::vector<Pair*>& pairs;
  std::optional<std::uint32_t> server_user;  // as of dial()
};

class Pair final : public QueuePair {
 public:
  Pair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties,
       const Host& host);
  ~Pair() override;

  std::shared_ptr<PeerMemory> writable_memory(RegionKey key, std::uint64_t remote,
                                              std::uint64_t bytes) override;
  void prefetch(std::span<const WorkRequest> requests) const override;
  void close() override;

  // For the endpoint.

  /// Begins to connect. Errors: invalid_argument, system.
  Result<void> dial(std::string_view path, std::span<const std::byte> data);
  /// Becomes connected to a peer that was accepted. Errors: system.
  Result<void> accept(std::uint64_t number, std::shared_ptr<PairSocket> link,
                      std::span<const std::byte> data);
  /// Makes progress, but for what attend() handles. Cost: a load while there is nothing.
  void progress() {
    if (state() != State::connected) return redial();
    if (reader_.ready()) static_cast<void>(receive());
    if (!queue_.empty()) send_on();
  }
  /// Takes what the service thread has queued.
  void attend();
  /// Announces that this side sleeps, or no longer does.
  void set_asleep(bool asleep);
  /// Whether progress() would do something. After a full barrier that follows set_asleep(true).
  [[nodiscard]] bool has_work();
  /// When progress() may have something to do although nothing came, on base::monotonic_ns(); 0:
  /// never.
  [[nodiscard]] std::uint64_t due_ns() const;

 private:
  // The peer's message whose first piece has arrived.
  struct Incoming {
    bool open = false;
    wire::FabricPieceHead first{};
    std::optional<Receive> receive;
    std::uint32_t got = 0;
  };
  enum class Taken : std::uint8_t { piece, message, starved, failed };

  std::size_t begin(std::span<const WorkRequest> requests) override;

  // Connecting and ending: pair.cpp.
  void redial();
  void join(PieceRings channel, memory::SharedMemory words, std::span<const std::byte> peer_data);
  void lose();
  void end(Status why);
  [[nodiscard]] Status peer_end_status() const;

  // What is sent: pair_send.cpp.
  [[nodiscard]] std::size_t begin_any(std::span<const WorkRequest> requests, bool at_once);
  [[nodiscard]] std::size_t run_inline(std::span<const WorkRequest> requests);
  [[nodiscard]] bool run_now(const WorkRequest& request);
  [[nodiscard]] std::size_t begin_in_turn(std::span<const WorkRequest> requests, std::size_t taken);
  [[nodiscard]] bool peer_starves() const;
  void send_on();
  void take_done();
  void begin_waiting();
  [[nodiscard]] bool run_next();
  [[nodiscard]] bool write_next();
  void fail_front(Status why);
  void ask(RegionKey key);
  [[nodiscard]] bool front_waits_for(RegionKey key) const;
  void look_for_starving();
  void wake_peer();
  [[nodiscard]] bool goes_by_ring(const WorkRequest& request) const {
    return takes_receive(request.opcode) ||
           (request.opcode == Opcode::write && (queue_.any_begun() || written_.has_value()));
  }

  // What comes: pair_receive.cpp.
  bool receive();
  void receive_rest();
  [[nodiscard]] Taken take_piece(const wire::FabricPieceHead& head);
  [[nodiscard]] Taken begin_message(const wire::FabricPieceHead& head);
  [[nodiscard]] bool place(const wire::FabricPieceHead& head);
  void finish_message();
  [[nodiscard]] Taken refuse(Status why);

  Host host_;
  SendQueue queue_;
  std::shared_ptr<PairSocket> link_;
  std::uint64_t link_number_ = 0;
  PieceRings channel_;
  PieceReader reader_;
  PieceWriter writer_;
  OneSided one_sided_;

  std::uint64_t sent_ = 0;                // messages that were written wholly
  std::uint64_t completed_ = 0;           // those among them that the peer has taken
  std::optional<std::uint32_t> written_;  // of the next message, which has begun to be written
  RegionKey asked_ = 0;
  std::uint64_t starving_since_ns_ = 0;  // 0: the peer has not said that it has no receive

  Incoming incoming_;
  std::uint64_t done_ = 0;  // messages of the peer that were taken wholly
  std::uint64_t starved_ = 0;

  std::string path_;  // to connect to; empty: that is done
  std::vector<std::byte> hello_;
  std::uint64_t redial_ns_ = 0;
};

}  // namespace espalier::fabric::shm
