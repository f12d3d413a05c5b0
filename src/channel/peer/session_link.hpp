// SPDX-License-Identifier: Apache-2.0
// A link to a peer over a session of rings and a pair beside it.
//
//   down --(opened aside)--> up --(the session or the pair is lost)--> down, after a pause again
//
// One failure ends both: keys are the session's, so what left by the pair that failed can take no
// effect any more once the peer has ended the session. The thread that opens the next one has it do
// that first, and opens none while the peer may know the one before: where that cannot be had, the
// link stays down until the peer has forgotten it.
//
// While anything is awaited and no answer comes, the peer is asked by a no-op whether it is there,
// and is given up if it does not answer that. What it does not do though it is there ends by a time
// of its own: a call is given up, the link goes on; posts on memory end with the link.
//
// Where the heap has nothing, the link is lost, as if the peer were gone.
//
// What never happens
// - The worker waits: handshakes, and what ends a session, are done on a thread aside.
// - Anything is posted twice.
// - A post that means an earlier session leaves.
//
// Thread: that of the worker, but for what is opened.
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
  /// Posts on memory that have not ended, at most, and calls.
  static constexpr std::uint32_t kPostsMax = 256;
  static constexpr std::uint32_t kCallsMax = 256;
  /// Calls of as many hops, if any. The peer has room for one more of each, that asks whether it is
  /// there.
  static constexpr std::uint32_t kCallsOfHopsMax = wire::kHopRequestsMax - 1;
  /// Calls that were given up, at most; then the session is.
  static constexpr std::uint32_t kGivenUpMax = kCallsOfHopsMax / 2;

  /// The first poll() begins to open it. `wake`: called by another thread when there is something
  /// for poll(); stays callable until the link is gone.
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
    bool is_call;
  };
  /// A post that never leaves, and how many were taken before it.
  struct NeverLeft {
    std::uint64_t behind;
    Ended ended;
  };
  struct WaitingCall {
    enum class State : std::uint8_t { free, waits, given_up };
    State state = State::free;
    bool in_pieces = false;   // its answer is one of several messages
    bool to_cancel = false;   // it was given up, and the peer is to hear of it
    bool cancelling = false;  // the peer hears of it just now, and has not said so yet
    bool answered = false;    // though it was given up, and the peer hears of that just now
    std::uint8_t hops = 0;
    std::uint64_t owner = 0;
    channel::PeerAnswer* answer = nullptr;  // null, unless it waits
    std::uint64_t since_ns = 0;
  };

  /// What another thread brings.
  struct Opening {
    std::optional<Result<OpenedPeer>> opened;
    std::shared_ptr<client::FabricConnection> before;  // that the peer may know still
    std::atomic<bool> is_done{false};
    std::future<void> thread;  // ends with it
  };

  /// A pair for memory, which the peer had no room for.
  struct MemoryOpening {
    std::shared_ptr<client::FabricConnection> connection;
    std::optional<Result<std::unique_ptr<client::SideLink>>> opened;
    std::atomic<bool> is_done{false};
    std::future<void> thread;  // ends with it
  };

  [[nodiscard]] bool call_never_leaves(std::uint64_t owner, fabric::Status why);
  [[nodiscard]] bool post_never_leaves(std::uint64_t owner, fabric::Status why);
  [[nodiscard]] bool has_room(std::uint8_t hops) const;
  /// What was given up is not awaited.
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
  std::unique_ptr<client::SideLink> memory_;              // null: down, or the peer gives none
  fabric::PostQueue posts_;
  std::vector<Ended> calls_never_left_;      // to be told
  std::vector<NeverLeft> posts_never_left_;  // each when those before it have ended
  std::uint64_t taken_ = 0;                  // posts, by the queue
  std::uint64_t completed_ = 0;              // of these, that have ended
  std::vector<WaitingCall> calls_ = std::vector<WaitingCall>(kCallsMax);  // by tag
  std::vector<std::uint32_t> free_calls_;
  std::array<std::uint32_t, wire::kHopsMax + 1> calls_of_hops_{};
  std::uint32_t given_up_ = 0;   // of the calls
  std::uint32_t to_cancel_ = 0;  // of these
  bool asked_ = false;           // whether it is there, by a no-op
  bool sending_ = false;         // the rest of a long call is still to be sent
  bool lost_ = false;            // it was silent for too long, or there was no memory
  bool batch_stays_ = false;     // the last post never left, for there was no pair
  std::shared_ptr<client::FabricConnection> before_;  // of a session that the peer may know still
  std::unique_ptr<Opening> opening_;                  // null: nothing is being opened
  bool memory_may_come_ = false;                      // the peer had no room for a pair
  std::unique_ptr<MemoryOpening> memory_opening_;     // null: it is not asked just now
  std::uint64_t memory_pause_ns_ = 0;                 // before it is asked again
  std::uint64_t memory_again_ns_ = 0;                 // when that is
  std::uint64_t pause_ns_;                            // before the next try
  std::uint64_t again_ns_ = 0;                        // when that is
  std::uint64_t now_ns_ = 0;                          // of this poll
  std::uint64_t polled_ns_ = 0;  // when it was last looked at though nothing was awaited
  std::uint64_t heard_ns_ = 0;   // when the peer last answered, or nothing was awaited
  std::uint64_t doubts_ns_ = 0;  // since when it is to be asked whether it is there; 0: it is not
  std::uint64_t ended_ns_ = 0;   // when a post last ended, or none was in flight
  std::uint64_t looked_ns_ = 0;  // when the times of calls were looked at
  std::uint64_t sessions_ = 0;
};

}  // namespace espalier::peer
