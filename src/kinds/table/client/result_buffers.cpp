// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/result_buffers.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/table/calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kBuffersPauseNs = 1'000'000'000;  // after a failure
constexpr std::uint64_t kAllBytes =
    std::uint64_t{ResultBuffers::kBuffers} * ResultBuffers::kBufferBytes;

}  // namespace

bool ResultBuffers::offer(RemoteRequests& requests, NodeConnection& connection) {
  if (memory_ != nullptr) return true;
  if (refused_) return false;
  const std::uint64_t now = base::monotonic_ns();
  if (now < not_before_ns_) return false;
  not_before_ns_ = now + kBuffersPauseNs;
  const auto memory = connection.offer_memory(kAllBytes);
  if (!memory) {
    refused_ = memory.error().code == Code::unsupported;
    return false;
  }
  wire::ResultOffer offer{};
  offer.base = memory->remote.base;
  offer.buffer_bytes = kBufferBytes;
  offer.buffers = kBuffers;
  offer.key = memory->remote.key;
  const auto reply = ask(requests, table_calls::OfferBuffers{offer});
  // On failure the memory stays registered, unused.
  refused_ = !reply && reply.error().code != Code::connection_lost;
  if (reply) memory_ = memory->at;
  return reply.has_value();
}

std::optional<std::span<const std::byte>> ResultBuffers::find(
    const wire::ResultPlace& place) const {
  const bool there = memory_ != nullptr && place.buffer < kBuffers && place.offset % 8 == 0 &&
                     place.offset <= kBufferBytes && place.bytes <= kBufferBytes - place.offset;
  if (!there) return std::nullopt;
  const std::byte* const buffer = memory_ + std::size_t{place.buffer} * kBufferBytes;
  return std::span(buffer + place.offset, place.bytes);
}

void ReadBuffers::give_back(RemoteRequests& requests) {
  while (!buffers_.empty()) {
    const std::size_t count = std::min<std::size_t>(buffers_.size(), wire::kResultBuffersMax);
    const wire::RequestMessage<table_calls::ReturnBuffers> message(
        {text_of(std::as_bytes(std::span(buffers_).first(count)))});
    if (!requests.send_aside(message.get())) return;
    buffers_.erase(buffers_.begin(), buffers_.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace espalier::client
