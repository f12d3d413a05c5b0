// SPDX-License-Identifier: Apache-2.0
// Long answers of a host that a device hands on: rows of tables. Each has a response ring of the
// device's connection to itself while it lasts, from which nothing is taken before its client has
// taken what came before. So the host's query waits for that client, and for no other.
//
//   post -> waiting_ -> a stream that is free -> pieces, while the request wants more
//        -> refused_, where too many wait
//
// Thread: one: that of the worker.
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
  /// Of a connection that has come; null: there is none.
  void go_by(std::shared_ptr<client::NodeConnection> connection);
  /// How many may wait for a stream: more are answered with `busy`, for what waits takes places in
  /// the scheduler that all clients share.
  static constexpr std::size_t kWaitingMost = 32;

  /// Begins it in the next turn, or when a stream is free. Requires: there is a connection.
  void post(offload::Request& request, const wire::CallMessage& message);
  /// The rest of the answer to this request is not wanted.
  void cancel(const offload::Request& request);
  /// Hands on what has come and is wanted. Returns whether there was anything.
  bool turn(PostedRequests& posted);
  /// Tells everybody that the host is gone. There is no connection then.
  void fail(PostedRequests& posted);

  /// Those that wait for an answer, or for the rest of one.
  [[nodiscard]] std::size_t pending() const;
  /// Pieces of answers that have come, ever.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  struct Stream {
    std::unique_ptr<HostRings> rings;
    offload::Request* request = nullptr;  // whose answer has not ended
    /// A cancel may wait for room in the ring for longer than the answer does.
    [[nodiscard]] bool is_free() const { return request == nullptr && rings->pending() == 0; }
  };
  class Ending;
  struct Waiting {
    offload::Request* request;
    wire::CallMessage message;
    bool cancelled = false;
  };

  /// Null: there is none, and can be none more.
  Stream* free_stream();
  void begin_waiting();

  std::shared_ptr<client::NodeConnection> connection_;
  std::deque<Stream> streams_;  // as many as were needed at a time
  std::deque<Waiting> waiting_;
  std::vector<offload::Request*> refused_;
  std::uint64_t heard_ = 0;
};

}  // namespace espalier::device
