// SPDX-License-Identifier: Apache-2.0
// Requests in flight through one lane: a fixed number of places, each with its request. A response
// carries the number of its place as its tag.
//
// When the connection is lost, all requests in flight complete with connection_lost, and none is
// sent again: the client cannot know whether a write was done.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "channel/rings/pipeline_impl.hpp"
#include "channel/rings/thread_rings.hpp"
#include "espalier/types.hpp"

namespace espalier::client {

using channel::Refusal;
using channel::Reply;

/// Takes a chunk of a streamed answer; false cancels the rest. The chunk's bytes, aligned to 8, are
/// valid until it returns.
using ChunkSink = std::function<bool(wire::ChunkKind kind, std::string_view payload)>;

/// State that a kind of object keeps with a lane, for the calls that use it.
class LanePart {
 public:
  virtual ~LanePart() = default;
};

class RemoteRequests {
 public:
  RemoteRequests(ThreadRings& rings, std::uint32_t in_flight);
  /// Waits for requests in flight: their tags belong to the lane.
  ~RemoteRequests();
  RemoteRequests(const RemoteRequests&) = delete;
  RemoteRequests& operator=(const RemoteRequests&) = delete;

  /// Errors: std::bad_alloc, and then no request was accepted.
  void submit(std::span<const Request> requests, Handler& handler, const Scope& scope);
  /// The same; false: there is no memory, and no request was accepted.
  [[nodiscard]] bool try_submit(std::span<const Request> requests, Handler& handler,
                                const Scope& scope);
  /// As Pipeline::poll.
  std::size_t poll();
  /// As Pipeline::advance.
  std::size_t advance();
  void drain();
  [[nodiscard]] std::size_t pending() const { return queued_ + busy_; }
  /// Requests completed so far.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  /// Sends a call and waits for its answer. Not for requests of pipelines.
  /// Errors: connection_lost, and those in the node's answer; std::bad_alloc, before a long message
  /// is sent, or after the node has executed the call. Requires: nothing is pending.
  Result<Reply> call(const wire::CallMessage& request);
  /// The same for an offload that streams its answer, or reports errors with text. If the sink
  /// returns false, cancels the rest and waits for the end of the answer.
  std::expected<Reply, Refusal> ask(const wire::CallMessage& request, const ChunkSink& sink = {});

  // The same in steps. Nothing else may be in flight.
  /// Sends a message. False: the connection is lost.
  bool begin(const wire::CallMessage& request);
  /// Waits for the whole answer, as ask() does.
  std::expected<Reply, Refusal> await(const ChunkSink& sink = {});
  /// The next piece of the answer, if one has arrived; valid until the next call.
  std::optional<Incoming> take_piece();
  /// Blocks until take_piece() may return one, or until `until_ns` of the monotonic clock. False:
  /// the connection is lost.
  bool wait_piece(std::uint64_t until_ns) { return rings_.wait(until_ns); }
  /// Cancels the rest of the answer; its last piece still arrives. False: no room for the cancel
  /// now, and the whole answer arrives.
  bool cancel_begun();
  /// Sends another message, whose answer is discarded. False: there is no room now.
  bool send_aside(const wire::CallMessage& request);
  [[nodiscard]] static bool is_last(const Incoming& piece) {
    return piece.header.kind != static_cast<std::uint8_t>(wire::ResponseKind::chunk);
  }
  /// The error of an answer. Requires: its last piece, with a code other than 0.
  [[nodiscard]] static Refusal refusal_of(const Incoming& piece);

  // The same without waiting. Several such calls may be in flight, but nothing else meanwhile.
  /// An answer to such a call.
  struct Answered {
    std::uint32_t ticket;
    Result<Reply> reply;
  };
  /// Sends a call; its answer carries `ticket`. False: there is no room now, or the connection is
  /// lost. `more`: the doorbell may wait for ring_alone().
  bool send_alone(const wire::CallMessage& request, std::uint32_t ticket, bool more = false);
  void ring_alone() { rings_.ring(); }
  /// Takes the next answer, if one has arrived.
  std::optional<Answered> take_alone();
  /// The same without a copy: valid until the next one is taken; its tag is the ticket.
  std::optional<Incoming> take_alone_in_place();
  /// Blocks until take_alone() may return an answer. False: the connection is lost.
  bool wait_alone() { return rings_.wait(); }
  /// Call when no call may follow for long: flushes pending ACKs.
  void rest() { rings_.enter_idle(); }

 private:
  struct Batch {
    std::span<const Request> requests;
    Handler* handler;
    Scope scope;
  };
  struct Place {
    const Request* request = nullptr;
    Handler* handler = nullptr;
    bool stopped = false;    // a scan that its handler has cancelled
    bool no_memory = false;  // for a part of its answer
    std::uint64_t items = 0;
  };

  bool send_whole(const wire::CallMessage& request, std::uint32_t tag);
  // Tags beyond any pipeline's places: a lane passes to pipelines of other sizes while answers to
  // cancels may still arrive.
  static constexpr std::uint32_t kAsideTag = 0xffff'ffff;
  static constexpr std::uint32_t kBegunTag = kAsideTag - 1;
  [[nodiscard]] std::uint32_t first_alone() const {
    return static_cast<std::uint32_t>(places_.size());
  }
  void send_more();
  [[nodiscard]] static wire::CallMessage outgoing(const Request& request, const Scope& scope);
  void prepare(const Batch& batch);
  bool send_some(Batch& batch);
  [[nodiscard]] static Code refuse(const Request& request, const Scope& scope);
  bool take_one();
  void refuse_next(Batch& batch, const Error& error);
  bool take_items(Place& place, std::string_view payload);
  void stop(Place& place);
  void finish(std::uint32_t number, const Incoming& response);
  void complete(const Request& request, Handler& handler, Completion& completion);
  void lose_all();

  ThreadRings& rings_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<Batch> batches_;
  std::vector<wire::CallMessage> prepared_;  // to be sent together
  std::size_t queued_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t completed_ = 0;
  std::uint32_t fruitless_ = 0;  // consecutive polls without an answer
  static constexpr std::size_t kItemsTogether = 256;
  std::vector<Item> items_;      // of the response in hand
  bool answer_refused_ = false;  // no memory for the answer that await() waited for
};

}  // namespace espalier::client
