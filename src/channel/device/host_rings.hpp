// SPDX-License-Identifier: Apache-2.0
// What a device has asked of its host by rings: each post has a place, whose number the host's
// answer names. What the ring has no room for waits in order; a long message goes piece by piece,
// and nothing here waits for the host.
//
//   post -> queue_ -> ring -> places_[tag] -> answers, the last one frees the place
//
// The place of a request that was cancelled stays taken until the host has answered the cancel too:
// the host may look for that tag later than it begins what came behind the cancel.
//
// Thread: one: that of the worker.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "channel/device/host_asker.hpp"
#include "channel/device/host_link.hpp"
#include "channel/rings/thread_rings.hpp"

namespace espalier::device {

class HostRings final : public HostAsker {
 public:
  explicit HostRings(std::unique_ptr<client::ThreadRings> rings) : rings_(std::move(rings)) {}
  HostRings(const HostRings&) = delete;
  HostRings& operator=(const HostRings&) = delete;

  void post(offload::Request& request, const wire::CallMessage& message);
  /// The same for the device itself, with a payload that is kept here.
  void ask(const wire::CallMessage& message, OnAnswer on_answer) override;
  /// The rest of the answer to this request is not wanted.
  void cancel(const offload::Request& request);
  /// Sends what there is room for, and hands on answers that have come, at most so many pieces.
  /// Returns whether there was anything.
  bool turn(PostedRequests& posted, int pieces_max = kPiecesPerTurn);
  /// Tells everybody that the host is gone.
  void fail(PostedRequests& posted);

  /// What waits for an answer, or to be sent. Nothing waits for the answer to a cancel.
  [[nodiscard]] std::size_t pending() const { return queue_.size() + busy_; }
  [[nodiscard]] bool lost() const { return rings_->lost(); }
  /// Pieces of answers that have come, ever.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  static constexpr int kPiecesPerTurn = 64;

  /// What waits for an answer.
  struct Waiting {
    offload::Request* request = nullptr;  // null: the device itself
    OnAnswer on_answer;
    bool cancelled = false;
    bool cancelling = false;  // and the host has not answered the cancel yet
    bool incomplete = false;  // a piece was lost, for there was no memory for it
    [[nodiscard]] bool awaited() const { return request != nullptr || on_answer; }
  };
  struct Queued {
    wire::CallMessage message;
    std::string payload;  // of the device's own
    Waiting waiting;
    std::uint32_t tag;  // of what nobody waits for
  };

  bool send_queued();
  bool send_first();
  void queue_cancel(std::uint32_t tag);
  std::uint32_t take_place(Waiting waiting);
  void free_place(std::uint32_t tag);
  void end_cancel(std::uint32_t tag);
  bool receive_one(PostedRequests& posted);
  void complete(const Waiting& waiting, const HostAnswer& answer, PostedRequests& posted);

  std::unique_ptr<client::ThreadRings> rings_;
  std::deque<Queued> queue_;
  std::deque<Waiting> places_;  // by tag; an empty one is free
  std::vector<std::uint32_t> free_;
  std::size_t busy_ = 0;
  std::uint64_t heard_ = 0;
  bool sending_ = false;  // the rest of a long message is still to be sent
};

}  // namespace espalier::device
