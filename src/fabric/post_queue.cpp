// SPDX-License-Identifier: Apache-2.0
#include "fabric/post_queue.hpp"

#include <bit>

#include "base/assert.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric {
namespace {

// By a reason that the peer gave before it did anything.
bool is_refusal(Status status) {
  return status == Status::remote_invalid || status == Status::remote_access;
}

}  // namespace

PostQueue::PostQueue(std::uint32_t depth, std::uint32_t signal_every)
    : depth_(depth),
      signal_every_(signal_every),
      mask_(std::bit_ceil(depth) - 1),
      owners_(std::make_unique<std::uint64_t[]>(std::size_t{mask_} + 1)) {
  ESPALIER_ASSERT(signal_every != 0 && (signal_every <= depth / 2 || depth == 1));
  waiting_.reserve(depth);
  ended_.reserve(depth);  // so that ends need no memory
}

void PostQueue::attach(QueuePair& pair) {
  ESPALIER_ASSERT(pair_ == nullptr);
  pair_ = &pair;
}

void PostQueue::detach() {
  pair_ = nullptr;
  while (end_ - begin_ > waiting_.size()) finish(PostEnd::unknown, Status::flushed);
  while (begin_ != end_) finish(PostEnd::not_sent, Status::flushed);
  waiting_.clear();
}

bool PostQueue::add(const WorkRequest& request, std::uint64_t owner) {
  if (!has_room()) return false;
  owners_[end_ & mask_] = owner;
  waiting_.push_back(request);
  waiting_.back().work_id = end_++;
  return true;
}

void PostQueue::ring() {
  if (waiting_.empty() || pair_ == nullptr || pair_->state() != QueuePair::State::connected) {
    return;
  }
  for (WorkRequest& request : waiting_) {
    const bool last = &request == &waiting_.back();
    request.signalled = last || request.work_id + 1 - signalled_ >= signal_every_;
    if (request.signalled) signalled_ = request.work_id + 1;
  }
  const Posted posted = pair_->post(waiting_);
  ESPALIER_ASSERT(posted.stopped != Posted::Stopped::malformed);
  if (posted.taken == 0) return;
  counts_.posts += posted.taken;
  ++counts_.doorbells;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(posted.taken));
  // Of those that found no room here the first is counted from the last that was taken and
  // signalled, or from later: the next doorbell ends with a signalled one all the same.
}

void PostQueue::completed(const Completion& completion) {
  ESPALIER_ASSERT(pair_ != nullptr && completion.pair == pair_->number());
  ESPALIER_ASSERT(completion.work_id >= begin_ && completion.work_id < end_ - waiting_.size());
  ++counts_.completions;
  while (begin_ != completion.work_id) finish(PostEnd::done, Status::success);
  const Status status = completion.status;
  if (status == Status::success || planted(Bug::failed_post_believed)) {
    return finish(PostEnd::done, Status::success);
  }
  finish(is_refusal(status) ? PostEnd::refused : PostEnd::unknown, status);
}

std::span<const PostQueue::Ended> PostQueue::ends() {
  if (taken_) ended_.clear();
  taken_ = true;
  return ended_;
}

void PostQueue::finish(PostEnd how, Status status) {
  if (taken_) ended_.clear();
  taken_ = false;
  ended_.push_back({owners_[begin_++ & mask_], how, status});
  if (how != PostEnd::done) ++counts_.failures;
}

}  // namespace espalier::fabric
