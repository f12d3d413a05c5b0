// SPDX-License-Identifier: Apache-2.0
#include "fabric/queue_pair.hpp"

#include <utility>

#include "base/assert.hpp"

namespace espalier::fabric {

QueuePair::QueuePair(std::uint32_t number, const QueuePairOptions& options,
                     const Properties& properties)
    : number_(number), options_(options), properties_(properties) {
  ESPALIER_ASSERT(options_.sends != nullptr);
  if (options_.receives == nullptr) options_.receives = options_.sends;
  if (options_.shared_receives == nullptr) {
    own_receives_ = std::make_unique<ReceiveQueue>(*options_.receives, options_.receive_depth);
  }
  receives_ = own_receives_ ? own_receives_.get() : options_.shared_receives;
}

QueuePair::~QueuePair() = default;

bool QueuePair::well_formed(const WorkRequest& request) const {
  if (request.bytes > properties_.message_bytes_max) return false;
  if (request.inlined) {
    const bool carries = is_send(request.opcode) || is_write(request.opcode);
    if (!carries || request.bytes > properties_.inline_bytes_max) return false;
  }
  if (is_atomic(request.opcode)) return request.bytes == kAtomicBytes;
  if (request.local == nullptr && request.bytes != 0) return false;
  return request.opcode == Opcode::read || is_write(request.opcode) || is_send(request.opcode);
}

Posted QueuePair::post(std::span<const WorkRequest> requests) {
  Posted posted;
  std::size_t good = 0;
  while (good < requests.size() && well_formed(requests[good])) ++good;
  if (good != requests.size()) posted.stopped = Posted::Stopped::malformed;
  if (const std::uint32_t places = sends().reserve_up_to(good); places != good) {
    posted.stopped = Posted::Stopped::full;
    good = places;
  }
  if (state_ == State::error) {
    for (std::size_t i = 0; i < good; ++i) complete(requests[i], Status::flushed);
    posted.taken = good;
    return posted;
  }
  posted.taken = begin(requests.first(good));
  if (posted.taken != good) posted.stopped = Posted::Stopped::full;
  for (std::size_t i = posted.taken; i < good; ++i) sends().release();
  return posted;
}

std::size_t QueuePair::post_receives(std::span<const Receive> receives) {
  ESPALIER_ASSERT(own_receives_ != nullptr);
  const std::size_t posted = own_receives_->post(receives);
  if (state_ == State::error) own_receives_->flush(number_);
  return posted;
}

void QueuePair::complete_receive(const Receive& receive, Opcode opcode, Status status,
                                 std::uint32_t bytes, const std::uint32_t* immediate) {
  Completion completion;
  completion.work_id = receive.work_id;
  completion.pair = number_;
  completion.bytes = bytes;
  completion.immediate = immediate != nullptr ? *immediate : 0;
  completion.status = status;
  completion.opcode = opcode;
  completion.with_immediate = immediate != nullptr;
  receives().completions().push(completion);
}

void QueuePair::become_connected(std::span<const std::byte> peer_data) {
  if (state_ != State::connecting) return;
  state_ = State::connected;
  peer_data_.assign(peer_data.begin(), peer_data.end());
}

void QueuePair::keep_refusal(std::span<const std::byte> peer_data) {
  if (state_ == State::connecting) peer_data_.assign(peer_data.begin(), peer_data.end());
}

void QueuePair::enter_error_state(Status why) {
  if (std::exchange(state_, State::error) == State::error) return;
  ended_by_ = why;
  if (own_receives_) own_receives_->flush(number_);
}

}  // namespace espalier::fabric
