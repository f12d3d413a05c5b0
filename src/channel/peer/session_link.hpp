// SPDX-License-Identifier: Apache-2.0
// A link to a peer: a session with rings for calls, and a queue pair beside it for posts on memory.
//
//   down --(opened on another thread)--> up --(session or pair lost)--> down, again after a pause
//
// A failure of one ends both. Keys belong to the session, so posts that left through the failed
// pair can take no effect once the peer has ended the session. The thread that opens the next
// session first ends the previous one. It opens none while the peer may still know the previous
// one: then the link stays down until the peer has forgotten it.
//
// Keepalive: while an answer or completion is awaited and nothing arrives, the link sends a no-op
// as a probe, and is lost if the peer does not answer that either. If the peer is alive but does
// not complete a request, a timeout ends it: a call is given up and the link stays; a post on
// memory ends with the link.
//
// If heap memory runs out, the link is lost, as if the peer were gone.
//
// Invariants
// - The worker never blocks: handshakes, and the end of a session, run on another thread.
// - Nothing is posted twice.
// - A post for an earlier session never leaves.
//
// Thread: the worker's, except for opening.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "channel/peer/peer_opening.hpp"
#include "channel/peer_link.hpp"
#include "fabric/post_queue.hpp"

namespace espalier::peer {

class SessionLink final : public channel::PeerLink {
 public:
  /// Most posts on memory in flight, and most calls.
  static constexpr std::uint32_t kPostsMax = 256;
  static constexpr std::uint32_t kCallsMax = 256;
  /// Most calls in flight of each number of hops above 0. The peer has room for one more of each:
  /// the keepalive probe.
  static constexpr std::uint32_t kCallsOfHopsMax = wire::kHopRequestsMax - 1;
  /// Most calls given up; beyond that the session is lost.
  static constexpr std::uint32_t kGivenUpMax = kCallsOfHopsMax / 2;

  /// The first poll() begins to open the link. `wake`: called by another thread when there is
  /// something for poll(); must stay callable until the link is destroyed.
  SessionLink(const PeerOptions& options, std::function<void()> wake);
  ~SessionLink() override;

  [[nodiscard]] bool post(std::uint64_t session, const fabric::WorkRequest& request,
                          std::uint64_t owner) override;
  [[nodiscard]] bool post_behind(std::uint64_t session, const fabric::WorkRequest& request,
                                 std::uint64_t owner) override;
  [[nodiscard]] bool call(std::uint64_t session, const wire::CallMessage& message,
                          channel::PeerAnswer& answer, std::uint64_t owner) override;
  void ring() override;
  bool poll(channel::PeerEnds& ends) override;
  [[nodiscard]] bool waits() const override;
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override;
  [[nodiscard]] std::uint64_t session() const override { return rings_ ? sessions_ : 0; }

 private:
  struct Ended {
    std::uint64_t owner;
    fabric::PostEnd how;
    fabric::Status status;
  };
  /// A post that never leaves, and how many were accepted before it.
  struct NeverLeft {
    std::uint64_t behind;
    Ended ended;
  };
  struct WaitingCall {
    enum class State : std::uint8_t { free, waits, given_up };
    State state = State::free;
    bool in_pieces = false;   // its answer has several messages
    bool to_cancel = false;   // given up; a cancel must be sent
    bool cancelling = false;  // a cancel was sent, and is not answered yet
    bool answered = false;    // answered while its cancel is in flight
    std::uint8_t hops = 0;
    std::uint64_t owner = 0;
    channel::PeerAnswer* answer = nullptr;  // null unless the state is `waits`
    std::uint64_t since_ns = 0;
  };

  /// The result of the thread that opens a session.
  struct Opening {
    std::optional<Result<OpenedPeer>> opened;
    std::shared_ptr<client::FabricConnection> before;  // the peer may still know its session
    std::atomic<bool> is_done{false};
    std::future<void> thread;  // joined with it
  };

  /// The opening of a pair for memory in a session without one.
  struct MemoryOpening {
    std::shared_ptr<client::FabricConnection> connection;
    std::optional<Result<std::unique_ptr<client::SideLink>>> opened;
    std::atomic<bool> is_done{false};
    std::future<void> thread;  // joined with it
  };

  [[nodiscard]] bool call_never_leaves(std::uint64_t owner, fabric::Status why);
  [[nodiscard]] bool post_never_leaves(std::uint64_t owner, fabric::Status why);
  [[nodiscard]] bool has_room(std::uint8_t hops) const;
  /// Calls that were given up are not awaited.
  [[nodiscard]] bool awaits_answers() const { return free_calls_.size() + given_up_ != kCallsMax; }
  [[nodiscard]] bool awaits() const;
  [[nodiscard]] std::future<void> run_aside(std::function<void()> work) const;
  [[nodiscard]] bool waits_for_memory() const {
    return rings_ && !memory_ && memory_may_come_ && !memory_opening_;
  }
  void begin_opening_memory();
  bool take_memory();
  void wait_for_memory();
  void begin_opening();
  static void open(const PeerOptions& options, const std::function<void()>& wake, Opening& into);
  bool take_opened();
  void take_up(OpenedPeer opened);
  bool poll_session(channel::PeerEnds& ends);
  bool poll_memory(channel::PeerEnds& ends);
  bool poll_calls(channel::PeerEnds& ends);
  void free_call(std::uint32_t tag);
  void send_more();
  void hear();
  void look_for_silence(channel::PeerEnds& ends);
  void give_up_old_calls(channel::PeerEnds& ends);
  void cancel_given_up();
  void end_cancel(std::uint32_t tag);
  void take_answer(const client::Incoming& response, channel::PeerEnds& ends);
  void report(channel::PeerEnds& ends, const Ended& ended);
  void report_posts(channel::PeerEnds& ends);
  bool report_never_left(channel::PeerEnds& ends);
  [[nodiscard]] bool is_lost() const;
  void lose(channel::PeerEnds& ends);
  void count();

  const PeerOptions options_;
  const std::function<void()> wake_;
  std::shared_ptr<client::FabricConnection> connection_;  // null: down
  std::unique_ptr<client::ThreadRings> rings_;            // null: down
  std::unique_ptr<client::SideLink> memory_;              // null: down, or without a pair
  fabric::PostQueue posts_;
  std::vector<Ended> calls_never_left_;      // to be completed
  std::vector<NeverLeft> posts_never_left_;  // each completes after those before it
  std::uint64_t taken_ = 0;                  // posts that posts_ accepted
  std::uint64_t completed_ = 0;              // of these, completed
  std::vector<WaitingCall> calls_ = std::vector<WaitingCall>(kCallsMax);  // by tag
  std::vector<std::uint32_t> free_calls_;
  std::array<std::uint32_t, wire::kHopsMax + 1> calls_of_hops_{};
  std::uint32_t given_up_ = 0;                        // of the calls
  std::uint32_t to_cancel_ = 0;                       // of these, without a cancel sent
  bool asked_ = false;                                // a keepalive probe is in flight
  bool sending_ = false;                              // the rest of a long call must still be sent
  bool lost_ = false;                                 // the peer timed out, or memory ran out
  bool batch_stays_ = false;                          // the last post never left: there was no pair
  std::shared_ptr<client::FabricConnection> before_;  // the peer may still know its session
  std::unique_ptr<Opening> opening_;                  // null: no opening is under way
  bool memory_may_come_ = false;                      // the peer had no room for a pair
  std::unique_ptr<MemoryOpening> memory_opening_;     // null: no opening is under way
  std::uint64_t memory_pause_ns_ = 0;                 // before the next try
  std::uint64_t memory_again_ns_ = 0;                 // when that is
  std::uint64_t pause_ns_;                            // before the next try
  std::uint64_t again_ns_ = 0;                        // when that is
  std::uint64_t now_ns_ = 0;                          // of this poll
  std::uint64_t polled_ns_ = 0;                       // last poll while nothing was awaited
  std::uint64_t heard_ns_ = 0;   // when the peer last answered, or nothing was awaited
  std::uint64_t doubts_ns_ = 0;  // since when the peer is suspected; 0: not
  std::uint64_t ended_ns_ = 0;   // when a post last completed, or none was in flight
  std::uint64_t looked_ns_ = 0;  // when timeouts of calls were last checked
  std::uint64_t sessions_ = 0;
};

}  // namespace espalier::peer
