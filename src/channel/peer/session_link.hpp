// SPDX-License-Identifier: Apache-2.0
// A link to a peer over a session of rings and a pair beside it.
//
//   down --(opened aside)--> up --(the session or the pair is lost)--> down, after a pause again
//
// One failure ends both: keys are the session's, so what left by the pair that failed can take no
// effect any more once the peer has ended the session, which is hung up by the thread that opens
// the next one.
//
// What never happens
// - The worker waits: handshakes, and what ends a session, are done on a thread aside.
// - Anything is posted twice.
// - A post that means an earlier session leaves.
//
// Thread: that of the worker, but for what is opened.
#pragma once

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

  /// The first poll() begins to open it. `wake`: called by another thread when there is something
  /// for poll(); stays callable until the link is gone.
  SessionLink(const PeerOptions& options, std::function<void()> wake);
  ~SessionLink() override;

  [[nodiscard]] bool post(std::uint64_t session, const fabric::WorkRequest& request,
                          std::uint64_t owner) override;
  [[nodiscard]] bool call(std::uint64_t session, const wire::CallMessage& message,
                          channel::PeerAnswer& answer, std::uint64_t owner) override;
  void ring() override;
  bool poll(channel::PeerEnds& ends) override;
  [[nodiscard]] bool waits() const override;
  [[nodiscard]] std::uint64_t session() const override { return rings_ ? sessions_ : 0; }

 private:
  struct Ended {
    std::uint64_t owner;
    fabric::PostEnd how;
    fabric::Status status;
  };
  struct WaitingCall {
    std::uint64_t owner = 0;
    channel::PeerAnswer* answer = nullptr;  // null: the place is free
    bool in_pieces = false;                 // its answer is one of several messages
  };

  /// What another thread brings.
  struct Opening {
    std::optional<Result<OpenedPeer>> opened;
    std::atomic<bool> is_done{false};
    std::future<void> thread;  // ends with it
  };

  [[nodiscard]] bool never_leaves(std::uint64_t owner, fabric::Status why);
  void begin_opening();
  bool take_opened();
  void take_up(OpenedPeer opened);
  bool poll_memory(channel::PeerEnds& ends);
  bool poll_calls(channel::PeerEnds& ends);
  void take_answer(const client::Incoming& response, channel::PeerEnds& ends);
  void report(channel::PeerEnds& ends, const Ended& ended);
  void report_posts(channel::PeerEnds& ends);
  [[nodiscard]] bool is_lost() const;
  void lose(channel::PeerEnds& ends);
  void count();

  const PeerOptions options_;
  const std::function<void()> wake_;
  std::shared_ptr<client::FabricConnection> connection_;  // null: down
  std::unique_ptr<client::ThreadRings> rings_;            // null: down
  std::unique_ptr<client::SideLink> memory_;              // null: down, or the peer gives none
  fabric::PostQueue posts_;
  std::vector<Ended> never_left_;                                         // to be told
  std::vector<WaitingCall> calls_ = std::vector<WaitingCall>(kCallsMax);  // by tag
  std::vector<std::uint32_t> free_calls_;
  bool sending_ = false;                             // the rest of a long call is still to be sent
  bool silent_ = false;                              // for too long
  std::shared_ptr<client::FabricConnection> ended_;  // to be hung up aside
  std::unique_ptr<Opening> opening_;                 // null: nothing is being opened
  std::uint64_t pause_ns_;                           // before the next try
  std::uint64_t again_ns_ = 0;                       // when that is
  std::uint64_t now_ns_ = 0;                         // of this poll
  std::uint64_t polled_ns_ = 0;  // when it was last looked at though nothing was awaited
  std::uint64_t heard_ns_ = 0;   // when something last ended, or nothing was awaited
  std::uint64_t sessions_ = 0;
};

}  // namespace espalier::peer
