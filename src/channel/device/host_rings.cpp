// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_rings.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/request.hpp"
#include "wire/session_calls.hpp"

namespace espalier::device {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};  // the tag if no answer is awaited
/// A cancel's tag: this bit and the tag that it names.
constexpr std::uint32_t kCancelTag = std::uint32_t{1} << 31;

}  // namespace

void HostRings::post(offload::Request& request, const wire::CallMessage& message) {
  queue_.push_back({message, {}, {&request, {}}, kNobody});
}

void HostRings::ask(const wire::CallMessage& message, OnAnswer on_answer) {
  ESPALIER_ASSERT(message.key.empty() && message.principal.empty());
  std::string payload(message.payload);
  payload += message.more_payload;
  wire::CallMessage own = message;
  own.payload = own.more_payload = {};
  queue_.push_back({own, std::move(payload), {nullptr, std::move(on_answer)}, kNobody});
}

void HostRings::cancel(const offload::Request& request) {
  for (Queued& queued : queue_) {
    if (queued.waiting.request == &request) queued.waiting.cancelled = true;
  }
  for (std::uint32_t tag = 0; tag < places_.size(); ++tag) {
    Waiting& waiting = places_[tag];
    if (waiting.request == &request && !std::exchange(waiting.cancelled, true)) queue_cancel(tag);
  }
}

// A cancel goes before all queued requests: it may make room for them.
void HostRings::queue_cancel(std::uint32_t tag) {
  const wire::RequestMessage<session_calls::Cancel> message({tag});
  queue_.push_front({message.get(), {}, {}, kCancelTag | tag});
  places_[tag].cancelling = true;
}

bool HostRings::turn(PostedRequests& posted, int pieces_max) {
  // After a long message other senders to this host get their turn.
  const bool was_sending = sending_;
  bool moved = send_queued();
  for (int i = 0; i < pieces_max && receive_one(posted); ++i) moved = true;
  if (!was_sending && !queue_.empty()) moved = send_queued() || moved;
  if (moved && pending() == 0 && !sending_) rings_->enter_idle();
  return moved;
}

bool HostRings::send_queued() {
  if (sending_) {
    sending_ = !rings_->send_rest();
    rings_->ring();
    return !sending_;
  }
  bool sent = false;
  while (!sending_ && !queue_.empty() && send_first()) sent = true;
  rings_->ring();
  return sent;
}

// Returns false if there is no room now.
bool HostRings::send_first() {
  Queued& first = queue_.front();
  const bool awaited = first.waiting.awaited();
  if (!first.payload.empty()) first.message.payload = first.payload;
  const std::uint32_t tag = awaited ? take_place(first.waiting) : first.tag;
  if (!rings_->begin_send(first.message, tag)) {
    if (awaited) free_place(tag);
    return false;
  }
  sending_ = !rings_->send_rest();
  const bool cancelled = first.waiting.cancelled;  // while it was queued
  queue_.pop_front();
  if (cancelled) queue_cancel(tag);
  return true;
}

std::uint32_t HostRings::take_place(Waiting waiting) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const std::uint32_t tag = free_.back();
  free_.pop_back();
  places_[tag] = std::move(waiting);
  ++busy_;
  return tag;
}

// The tag stays taken while a cancel names it.
void HostRings::free_place(std::uint32_t tag) {
  Waiting& place = places_[tag];
  const bool cancelling = place.cancelling;
  place = {};
  place.cancelling = cancelling;
  if (!cancelling) free_.push_back(tag);
  --busy_;
}

void HostRings::end_cancel(std::uint32_t tag) {
  if (tag >= places_.size() || !std::exchange(places_[tag].cancelling, false)) return;
  if (!places_[tag].awaited()) free_.push_back(tag);
}

bool HostRings::receive_one(PostedRequests& posted) {
  client::Incoming response;
  if (!rings_->receive(response)) return false;
  ++heard_;
  const std::uint32_t tag = response.header.tag;
  if ((tag & kCancelTag) != 0) {
    end_cancel(tag & ~kCancelTag);
    return true;
  }
  if (tag >= places_.size()) return true;  // an invalid tag: a hostile host
  Waiting& place = places_[tag];
  if (!place.awaited()) return true;
  HostAnswer answer;
  answer.header = response.header;
  answer.payload = response.payload;
  answer.last = response.header.kind != static_cast<std::uint8_t>(wire::ResponseKind::chunk);
  if (!answer.last && response.refused) {
    place.incomplete = true;
    if (!std::exchange(place.cancelled, true)) queue_cancel(tag);
  }
  if (!answer.last) {
    if (place.incomplete) return true;
    if (place.request != nullptr) posted.answered(*place.request, answer);
    return true;
  }
  const Waiting waiting = place;
  free_place(tag);
  if (waiting.incomplete) answer = failed_with(Code::out_of_memory);
  complete(waiting, answer, posted);
  return true;
}

void HostRings::complete(const Waiting& waiting, const HostAnswer& answer, PostedRequests& posted) {
  if (waiting.request != nullptr) {
    posted.answered(*waiting.request, answer);
  } else if (waiting.on_answer) {
    waiting.on_answer(answer);
  }
}

void HostRings::fail(PostedRequests& posted) {
  const HostAnswer gone = failed_with(Code::connection_lost);
  const auto queue = std::exchange(queue_, {});
  const auto places = std::exchange(places_, {});
  free_.clear();
  busy_ = 0;
  for (const Waiting& waiting : places) complete(waiting, gone, posted);
  for (const Queued& queued : queue) complete(queued.waiting, gone, posted);
}

}  // namespace espalier::device
