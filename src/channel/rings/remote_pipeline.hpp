// SPDX-License-Identifier: Apache-2.0
// Requests in flight through one lane: a fixed number of places, each with the request that it
// waits for. A response finds its place by its tag.
//
// When the connection is lost, everything in flight completes with connection_lost, and nothing is
// sent again: whether a write was done, nobody here can know.
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

/// Takes a chunk of a streamed answer; false: no more is wanted. Its bytes, aligned to 8, are there
/// until it returns.
using ChunkSink = std::function<bool(wire::ChunkKind kind, std::string_view payload)>;

/// What a kind of object keeps with a lane, for the calls that use it.
class LanePart {
 public:
  virtual ~LanePart() = default;
};

class RemoteRequests {
 public:
  RemoteRequests(ThreadRings& rings, std::uint32_t in_flight);
  /// Waits for what is in flight: its places are the lane's.
  ~RemoteRequests();
  RemoteRequests(const RemoteRequests&) = delete;
  RemoteRequests& operator=(const RemoteRequests&) = delete;

  /// Errors: std::bad_alloc, and none of them is taken.
  void submit(std::span<const Request> requests, Handler& handler, const Scope& scope);
  /// The same; false: there is no memory, and none of them is taken.
  [[nodiscard]] bool try_submit(std::span<const Request> requests, Handler& handler,
                                const Scope& scope);
  /// As Pipeline::poll.
  std::size_t poll();
  /// As Pipeline::advance.
  std::size_t advance();
  void drain();
  [[nodiscard]] std::size_t pending() const { return queued_ + busy_; }
  /// Since it was made.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  /// Sends a message that is no request of a map's, and waits for its answer.
  /// Errors: connection_lost, and what the node answers; std::bad_alloc, before anything is sent of
  /// a long message, or when the node has done what it asks. Requires: nothing is pending.
  Result<Reply> call(const wire::CallMessage& request);
  /// The same, of an offload that streams its answer, or says in words what was wrong. Where the
  /// sink wants no more, the node is told, and its answer waited for.
  std::expected<Reply, Refusal> ask(const wire::CallMessage& request, const ChunkSink& sink = {});

  // The same piece by piece. Nothing else may be in flight.
  /// Sends a message. False: the connection is lost.
  bool begin(const wire::CallMessage& request);
  /// Waits for the whole answer, as ask() does.
  std::expected<Reply, Refusal> await(const ChunkSink& sink = {});
  /// The next piece of its answer, if one has come; there until the next call.
  std::optional<Incoming> take_piece();
  /// Waits until take_piece() may bring one, or until about this moment of the monotonic clock.
  /// False: the connection is lost.
  bool wait_piece(std::uint64_t until_ns) { return rings_.wait(until_ns); }
  /// Tells the node that no more is wanted; the last piece is still to come. False: it cannot be
  /// sent now, and everything comes.
  bool cancel_begun();
  /// Sends a message besides, whose answer nobody wants. False: it cannot be sent now.
  bool send_aside(const wire::CallMessage& request);
  [[nodiscard]] static bool is_last(const Incoming& piece) {
    return piece.header.kind != static_cast<std::uint8_t>(wire::ResponseKind::chunk);
  }
  /// Why it was refused. Requires: it is the last piece, of a code other than 0.
  [[nodiscard]] static Refusal refusal_of(const Incoming& piece);

  // The same without waiting. Several may be in flight, but nothing else meanwhile.
  /// An answer to one of them.
  struct Answered {
    std::uint32_t ticket;
    Result<Reply> reply;
  };
  /// Sends one; `ticket` tells its answer from those of others. False: there is no room now, or the
  /// connection is lost. `more`: the node need not hear of it before ring_alone().
  bool send_alone(const wire::CallMessage& request, std::uint32_t ticket, bool more = false);
  void ring_alone() { rings_.ring(); }
  /// Takes the next answer, if one has come.
  std::optional<Answered> take_alone();
  /// The same as it lies, until anything else is taken; its tag is the ticket.
  std::optional<Incoming> take_alone_in_place();
  /// Sleeps until take_alone() may bring one. False: the connection is lost.
  bool wait_alone() { return rings_.wait(); }
  /// It may be long until anything is called again: what the node is owed goes now.
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
    bool stopped = false;    // a scan whose handler wants no more
    bool no_memory = false;  // for something that has come of it
    std::uint64_t items = 0;
  };

  bool send_whole(const wire::CallMessage& request, std::uint32_t tag);
  // A lane goes from one pipeline to the next, of another size, with answers to cancels still to
  // come: so their tag, and that of an answer taken piece by piece, are no place's of any.
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
  std::vector<wire::CallMessage> prepared_;  // that are to be sent together
  std::size_t queued_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t completed_ = 0;
  std::uint32_t fruitless_ = 0;  // looks in a row that found no answer
  static constexpr std::size_t kItemsTogether = 256;
  std::vector<Item> items_;      // of the response in hand
  bool answer_refused_ = false;  // there was no memory for that which await() waited for
};

}  // namespace espalier::client
