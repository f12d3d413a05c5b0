// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_streams.hpp"

#include <algorithm>
#include <utility>

namespace espalier::device {

/// Detects the last piece of a stream's answer, after which its request may be gone.
class HostStreams::Ending final : public PostedRequests {
 public:
  Ending(Stream& stream, PostedRequests& to) : stream_(stream), to_(to) {}

  void answered(offload::Request& request, const HostAnswer& answer) override {
    if (answer.last) stream_.request = nullptr;
    to_.answered(request, answer);
  }
  bool wants_more(offload::Request& request) override { return to_.wants_more(request); }

 private:
  Stream& stream_;
  PostedRequests& to_;
};

void HostStreams::go_by(std::shared_ptr<client::NodeConnection> connection) {
  connection_ = std::move(connection);
}

void HostStreams::post(offload::Request& request, const wire::CallMessage& message) {
  if (waiting_.size() >= kWaitingMost) return refused_.push_back(&request);
  waiting_.push_back({&request, message});
}

std::size_t HostStreams::pending() const {
  const auto busy =
      std::ranges::count_if(streams_, [](const auto& each) { return !each.is_free(); });
  return waiting_.size() + refused_.size() + static_cast<std::size_t>(busy);
}

HostStreams::Stream* HostStreams::free_stream() {
  for (Stream& stream : streams_) {
    if (stream.is_free()) return &stream;
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
    stream->rings->post(*first.request, first.message);
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

// Takes one piece of each stream per turn: whether there is room for another is known only once the
// first one was forwarded.
bool HostStreams::turn(PostedRequests& posted) {
  begin_waiting();
  bool moved = !refused_.empty();
  for (offload::Request* const request : std::exchange(refused_, {})) {
    posted.answered(*request, failed_with(Code::busy));
  }
  for (Stream& stream : streams_) {
    if (stream.is_free()) continue;
    if (stream.request != nullptr && !posted.wants_more(*stream.request)) continue;
    const std::uint64_t before = stream.rings->heard();
    Ending ending(stream, posted);
    moved = stream.rings->turn(ending, 1) || moved;
    heard_ += stream.rings->heard() - before;
  }
  begin_waiting();
  return moved;
}

void HostStreams::fail(PostedRequests& posted) {
  connection_ = nullptr;
  const auto streams = std::exchange(streams_, {});
  const auto waiting = std::exchange(waiting_, {});
  const auto refused = std::exchange(refused_, {});
  for (const Stream& stream : streams) stream.rings->fail(posted);
  const HostAnswer gone = failed_with(Code::connection_lost);
  for (const Waiting& each : waiting) posted.answered(*each.request, gone);
  for (offload::Request* const request : refused) posted.answered(*request, gone);
}

}  // namespace espalier::device
