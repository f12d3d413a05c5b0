// SPDX-License-Identifier: Apache-2.0
// A device's requests to its host over rings. Each request in flight has a place, whose number is
// the tag of the host's answers. Requests beyond the ring's room wait in order; a long message is
// sent piece by piece, and no call blocks.
//
//   post -> queue_ -> ring -> places_[tag] -> answers, the last one frees the place
//
// The place of a cancelled request stays taken until the host has answered the cancel too: the host
// may look up the cancel's tag after it has begun later requests.
//
// Thread: that of the worker.
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
  /// The same for the device's own calls; copies the payload.
  void ask(const wire::CallMessage& message, OnAnswer on_answer) override;
  /// Cancels the rest of the answer to this request.
  void cancel(const offload::Request& request);
  /// Sends what there is room for, and reports at most so many pieces of answers. Returns whether
  /// there was anything.
  bool turn(PostedRequests& posted, int pieces_max = kPiecesPerTurn);
  /// Completes all requests with connection_lost.
  void fail(PostedRequests& posted);

  /// Requests that await an answer, or are queued. Answers to cancels are not awaited.
  [[nodiscard]] std::size_t pending() const { return queue_.size() + busy_; }
  [[nodiscard]] bool lost() const { return rings_->lost(); }
  /// Pieces of answers received, in total.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  static constexpr int kPiecesPerTurn = 64;

  /// A request that awaits its answer.
  struct Waiting {
    offload::Request* request = nullptr;  // null: the device's own call
    OnAnswer on_answer;
    bool cancelled = false;
    bool cancelling = false;  // the cancel is not answered yet
    bool incomplete = false;  // a piece was dropped for lack of memory
    [[nodiscard]] bool awaited() const { return request != nullptr || on_answer; }
  };
  struct Queued {
    wire::CallMessage message;
    std::string payload;  // of the device's own calls
    Waiting waiting;
    std::uint32_t tag;  // of a message whose answer is not awaited
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
  bool sending_ = false;  // the rest of a long message must still be sent
};

}  // namespace espalier::device
