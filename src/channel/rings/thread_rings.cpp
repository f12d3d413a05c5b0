// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/thread_rings.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/places.hpp"
#include "rings/slot_wait.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kSpins = 4096;  // about 100 us of pauses
constexpr std::uint64_t kSpinNs = 100'000;
constexpr std::uint64_t kFirstSleepNs = 1'000'000;
constexpr std::uint64_t kLongestSleepNs = 50'000'000;  // bounds the time to detect a lost node

}  // namespace

Result<std::unique_ptr<ThreadRings>> ThreadRings::open(std::shared_ptr<NodeConnection> connection,
                                                       rings::MessageBudget* budget) {
  const auto ring = connection->take_ring();
  if (!ring) return base::full(base::Places::response_rings, wire::kResponseRingsMax);
  return std::unique_ptr<ThreadRings>(new ThreadRings(std::move(connection), *ring, budget));
}

ThreadRings::ThreadRings(std::shared_ptr<NodeConnection> connection, std::uint32_t ring,
                         rings::MessageBudget* budget)
    : connection_(std::move(connection)),
      progresses_(connection_->needs_progress()),
      ring_(ring),
      requests_(connection_->requests()),
      share_(budget != nullptr ? rings::MessageShare(*budget) : rings::MessageShare()),
      responses_(connection_->responses(ring), wire::kResponseHeaderBytes, share_) {}

bool ThreadRings::reserve(std::uint64_t slots) {
  ESPALIER_ASSERT(reserved_ == 0);
  const auto first = connection_->reserve(slots, requests_);
  if (!first) return false;
  next_ = *first;
  reserved_ = slots;
  return true;
}

wire::RequestHeader ThreadRings::header_of(const wire::CallMessage& request,
                                           std::uint32_t tag) const {
  wire::RequestHeader header{};
  header.bytes = static_cast<std::uint32_t>(request.bytes());
  header.tag = tag;
  header.offload = static_cast<std::uint8_t>(request.offload);
  header.ring = static_cast<std::uint8_t>(ring_ | request.hops << wire::kHopShift |
                                          (request.at_snapshot ? wire::kAtSnapshot : 0) |
                                          (request.principal.empty() ? 0 : wire::kOnBehalf));
  header.key_bytes = static_cast<std::uint16_t>(request.key.size());
  header.hint = request.hint;
  header.map = request.map;
  header.argument = request.argument;
  return header;
}

bool ThreadRings::send(const wire::CallMessage& request, std::uint32_t tag) {
  const wire::RequestHeader header = header_of(request, tag);
  const std::uint32_t slots = wire::slots_of(header.bytes);
  if (slots > batch_slots_max()) return send_long(header, request);
  if (reserved_ == 0 && !reserve(slots)) return false;
  ESPALIER_ASSERT(slots <= reserved_);
  rings::MessageWriter writer(requests_, next_);
  next_ += slots;
  reserved_ -= slots;
  writer.header(wire::words_of(header));
  writer.put(request.key.data(), request.key.size());
  writer.put(request.payload.data(), request.payload.size());
  writer.put(request.more_payload.data(), request.more_payload.size());
  writer.put(request.principal.data(), request.principal.size());
  tail_ = writer.finish();
  unrung_ = true;
  return true;
}

bool ThreadRings::begin_send(const wire::CallMessage& request, std::uint32_t tag) {
  ESPALIER_ASSERT(stream_.done());
  if (slots_of(request) <= batch_slots_max()) return send(request, tag);
  const wire::RequestHeader header = header_of(request, tag);
  long_message_ = base::joined(base::bytes_of(header), {request.key, request.payload,
                                                        request.more_payload, request.principal});
  const std::uint64_t first = connection_->reserve_anyway(wire::slots_of(header.bytes));
  stream_ = rings::MessageStream(long_message_.data(), header.bytes, first);
  send_rest();
  return true;
}

bool ThreadRings::send_rest() {
  if (stream_.done()) return true;
  const auto room = static_cast<std::int64_t>(requests_.ask_room(stream_.slot()));
  if (room > 0 && stream_.write(requests_, static_cast<std::uint64_t>(room)) != 0) {
    tail_ = stream_.slot();
    unrung_ = true;
  }
  if (!stream_.done()) return false;
  long_message_ = {};
  return true;
}

// Receives responses meanwhile: the node reads requests only of clients that take its answers.
bool ThreadRings::send_long(wire::RequestHeader header, const wire::CallMessage& request) {
  const std::vector<std::byte> message =
      base::joined(base::bytes_of(header),
                   {request.key, request.payload, request.more_payload, request.principal});
  const std::uint32_t slots = wire::slots_of(header.bytes);
  rings::MessageStream stream(message.data(), header.bytes, connection_->reserve_anyway(slots));
  std::uint32_t spins = 0;
  while (!stream.done()) {
    const auto room = static_cast<std::int64_t>(requests_.ask_room(stream.slot()));
    if (room > 0 && stream.write(requests_, static_cast<std::uint64_t>(room)) != 0) {
      connection_->ring(stream.slot());
      spins = 0;
      continue;
    }
    rings::MessageBuffer response;
    if (take(response)) {
      if (!keep_for_later(response)) return false;
    } else if (++spins % kSpins == 0) {
      if (connection_->ask_lost()) return false;
      connection_->ring(stream.slot());  // in case the node sleeps
      connection_->fall_asleep(ring_, responses_.slots(), kFirstSleepNs);
    } else {
      base::spin_pause();
    }
  }
  tail_ = stream.slot();
  unrung_ = true;
  return true;
}

// Without memory the connection is lost: a long message is half sent, and the answer cannot be
// kept.
bool ThreadRings::keep_for_later(rings::MessageBuffer& response) {
  try {
    deferred_.push_back(std::move(response));
    return true;
  } catch (const std::bad_alloc&) {
    connection_->lose();
    return false;
  }
}

// If a ring cannot be read any further, the connection is lost. An answer for which there is no
// memory becomes an error.
bool ThreadRings::take(rings::MessageBuffer& into) {
  if (broken_) return false;
  if (progresses_ && !responses_.ready()) connection_->make_progress();
  const rings::Taken taken = responses_.take(into);
  if (taken == rings::Taken::broken) {
    broken_ = true;
    connection_->lose();
  }
  if (taken == rings::Taken::refused) {
    auto header = base::load_plain<wire::ResponseHeader>(into.data());
    header.bytes = 0;  // a node sends no answer of that length
    header.code = static_cast<std::uint16_t>(Code::out_of_memory);
    base::store_plain(into.data(), header);
  }
  return taken == rings::Taken::message || taken == rings::Taken::refused;
}

bool ThreadRings::receive(Incoming& response) {
  if (!deferred_.empty()) [[unlikely]] {
    message_ = std::move(deferred_.front());
    deferred_.pop_front();
  } else if (!take(message_)) {
    return false;
  }
  response.header = base::load_plain<wire::ResponseHeader>(message_.data());
  response.refused = response.header.bytes == 0;
  if (response.refused) response.header.bytes = sizeof response.header;
  response.payload = {reinterpret_cast<const char*>(message_.data()) + sizeof response.header,
                      response.header.bytes - sizeof response.header};
  return true;
}

// Sleeps only briefly: no wake-up announces free slots.
bool ThreadRings::wait_for_room() {
  for (std::uint32_t spins = 0; spins < kSpins; ++spins) {
    if (progresses_) connection_->make_progress();
    // Another thread may have reserved more than there is room for.
    const auto room = static_cast<std::int64_t>(requests_.ask_room(connection_->tail()));
    if (room >= static_cast<std::int64_t>(requests_.count() / 2)) return true;
    base::spin_pause();
  }
  if (connection_->ask_lost()) return false;
  connection_->fall_asleep(ring_, responses_.slots(), kFirstSleepNs);
  return true;
}

bool ThreadRings::spin_for_response() {
  if (progresses_) {
    const base::Stopwatch watch;
    do {
      connection_->make_progress();
      if (responses_.ready()) return true;
    } while (watch.elapsed_ns() < kSpinNs && !connection_->lost());
    return false;
  }
  for (std::uint32_t spins = 0; spins < kSpins; ++spins) {
    if (responses_.ready()) return true;
    rings::wait_for_slot(responses_.slots());
  }
  return false;
}

bool ThreadRings::wait(std::uint64_t until_ns) {
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  if (!deferred_.empty()) return true;
  if (spin_for_response()) return !broken_;
  for (std::uint64_t sleep_ns = kFirstSleepNs;;
       sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    if (connection_->ask_lost()) return !broken_ && responses_.ready();
    std::uint64_t left_ns = kNever;
    if (until_ns != kNever) {
      const std::uint64_t now_ns = base::monotonic_ns();
      if (now_ns >= until_ns) return !broken_;
      left_ns = until_ns - now_ns;
    }
    connection_->fall_asleep(ring_, responses_.slots(), std::min(sleep_ns, left_ns));
    if (responses_.ready()) return !broken_;
  }
}

}  // namespace espalier::client
