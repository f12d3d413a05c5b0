// SPDX-License-Identifier: Apache-2.0
#include "device/host_streams.hpp"

#include <utility>

namespace espalier::device {

void HostStreams::go_by(std::shared_ptr<client::NodeConnection> connection) {
  connection_ = std::move(connection);
}

void HostStreams::post(offload::Request& request, const offload::Post& post) {
  waiting_.push_back({&request, post});
}

HostStreams::Stream* HostStreams::free_stream() {
  for (Stream& stream : streams_) {
    if (stream.request == nullptr) return &stream;
  }
  auto rings = client::ThreadRings::open(connection_);
  if (!rings) return nullptr;
  return &streams_.emplace_back(std::make_unique<HostRings>(std::move(*rings)), nullptr);
}

void HostStreams::begin_waiting() {
  while (!waiting_.empty() && connection_) {
    Stream* const stream = free_stream();
    if (stream == nullptr) return;
    const Waiting first = waiting_.front();
    waiting_.pop_front();
    stream->request = first.request;
    ++busy_;
    stream->rings->post(*first.request, first.post);
    if (first.cancelled) stream->rings->cancel(*first.request);
  }
}

void HostStreams::cancel(const offload::Request& request) {
  for (Waiting& waiting : waiting_) {
    if (waiting.request == &request) waiting.cancelled = true;
  }
  for (const Stream& stream : streams_) {
    if (stream.request == &request) stream.rings->cancel(request);
  }
}

// One piece of each in a turn, for whether there is room for another is known once the first has
// been handed on.
bool HostStreams::turn(offload::PostedRequests& posted) {
  begin_waiting();
  bool moved = false;
  for (Stream& stream : streams_) {
    if (stream.request == nullptr || !posted.wants_more(*stream.request)) continue;
    const std::uint64_t before = stream.rings->heard();
    moved = stream.rings->turn(posted, 1) || moved;
    heard_ += stream.rings->heard() - before;
    if (stream.rings->pending() != 0) continue;
    stream.request = nullptr;
    --busy_;
  }
  begin_waiting();
  return moved;
}

void HostStreams::fail(offload::PostedRequests& posted) {
  connection_ = nullptr;
  const auto streams = std::exchange(streams_, {});
  const auto waiting = std::exchange(waiting_, {});
  busy_ = 0;
  for (const Stream& stream : streams) stream.rings->fail(posted);
  offload::HostAnswer gone;
  gone.header.code = static_cast<std::uint16_t>(Code::connection_lost);
  for (const Waiting& each : waiting) posted.answered(*each.request, gone);
}

}  // namespace espalier::device
