// SPDX-License-Identifier: Apache-2.0
// Long answers that a device forwards from its host: rows of tables. Each stream has a response
// ring of the device's connection to itself. Nothing is taken from that ring before the stream's
// client has taken what came before. So flow control reaches the host's query, and only for that
// client.
//
//   post -> waiting_ -> a free stream -> pieces, while the request wants more
//        -> refused_, if too many wait
//
// Thread: that of the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "channel/device/host_rings.hpp"

namespace espalier::device {

class HostStreams {
 public:
  /// Sets the connection, once it is up; null: there is none.
  void go_by(std::shared_ptr<client::NodeConnection> connection);
  /// Most requests that wait for a stream; more are answered `busy`, since waiting ones take places
  /// in the scheduler that all clients share.
  static constexpr std::size_t kWaitingMost = 32;

  /// Begins the request in the next turn, or when a stream is free. Requires: there is a
  /// connection.
  void post(offload::Request& request, const wire::CallMessage& message);
  /// Cancels the rest of the answer to this request.
  void cancel(const offload::Request& request);
  /// Forwards pieces that have arrived and are wanted. Returns whether there were any.
  bool turn(PostedRequests& posted);
  /// Completes all requests with connection_lost, and drops the connection.
  void fail(PostedRequests& posted);

  /// Requests that await an answer, or the rest of one.
  [[nodiscard]] std::size_t pending() const;
  /// Pieces of answers received, in total.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  struct Stream {
    std::unique_ptr<HostRings> rings;
    offload::Request* request = nullptr;  // until its answer has ended
    /// A cancel may wait longer for room in the ring than the answer takes.
    [[nodiscard]] bool is_free() const { return request == nullptr && rings->pending() == 0; }
  };
  class Ending;
  struct Waiting {
    offload::Request* request;
    wire::CallMessage message;
    bool cancelled = false;
  };

  /// Null: none is free, and none can be added.
  Stream* free_stream();
  void begin_waiting();

  std::shared_ptr<client::NodeConnection> connection_;
  std::deque<Stream> streams_;  // as many as were needed at any one time
  std::deque<Waiting> waiting_;
  std::vector<offload::Request*> refused_;
  std::uint64_t heard_ = 0;
};

}  // namespace espalier::device
