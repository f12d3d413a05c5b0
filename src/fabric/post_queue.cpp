// SPDX-License-Identifier: Apache-2.0
#include "fabric/post_queue.hpp"

#include <bit>

#include "base/assert.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric {
namespace {

// Whether the peer did nothing of it. A WRITE may have come in pieces, of which it took the first.
bool is_refusal(const Completion& completion) {
  const Status status = completion.status;
  const bool says_no = status == Status::remote_invalid || status == Status::remote_access;
  return says_no && (completion.opcode == Opcode::read || is_atomic(completion.opcode));
}

}  // namespace

PostQueue::PostQueue(std::uint32_t depth, std::uint32_t signal_every)
    : depth_(depth),
      signal_every_(signal_every),
      mask_(std::bit_ceil(depth) - 1),
      owners_(std::make_unique<std::uint64_t[]>(std::size_t{mask_} + 1)) {
  ESPALIER_ASSERT(signal_every != 0 &&
                  (signal_every <= depth / 2 || (depth == 1 && signal_every == 1)));
  waiting_.reserve(depth);
  ended_.reserve(depth);  // so that ends need no memory
}

void PostQueue::attach(QueuePair& pair) {
  ESPALIER_ASSERT(pair_ == nullptr);
  pair_ = &pair;
}

void PostQueue::detach() {
  ESPALIER_ASSERT(pair_ == nullptr || pair_->state() == QueuePair::State::error);
  pair_ = nullptr;
  while (end_ - begin_ > waiting_.size()) finish(PostEnd::unknown, Status::flushed);
  while (begin_ != end_) finish(PostEnd::not_sent, Status::flushed);
  waiting_.clear();
}

bool PostQueue::ring() {
  if (waiting_.empty() || pair_ == nullptr || pair_->state() != QueuePair::State::connected) {
    return false;
  }
  mark_signalled();
  const Posted posted = post_waiting();
  ESPALIER_ASSERT(posted.stopped != Posted::Stopped::malformed);  // as add() requires
  counts_.posts += posted.taken;
  counts_.doorbells += posted.taken != 0 ? 1 : 0;
  if (posted.taken == waiting_.size()) [[likely]] {
    waiting_.clear();
  } else {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(posted.taken));
  }
  return posted.taken != 0;
}

// When the heap is exhausted it is unknown how many the pair has taken: so all of them end as
// unknown, and later completions are ignored.
Posted PostQueue::post_waiting() {
  try {
    if (planted(Bug::atomic_posted_again)) {
      for (WorkRequest request : waiting_) {
        request.signalled = false;
        if (is_atomic(request.opcode)) pair_->post(request);
      }
    }
    return pair_->post(waiting_);
  } catch (...) {
    waiting_.clear();
    pair_ = nullptr;
    throw;
  }
}

// What the pair does not take is marked once more with the next doorbell; that what it took before
// may end without a completion until then does no harm.
void PostQueue::mark_signalled() {
  for (WorkRequest& request : waiting_) {
    request.signalled = request.signalled || request.work_id + 1 - signalled_ >= signal_every_;
    if (request.signalled) signalled_ = request.work_id + 1;
  }
  if (planted(Bug::last_not_signalled)) return;
  waiting_.back().signalled = true;
  signalled_ = end_;
}

void PostQueue::completed(const Completion& completion) {
  if (pair_ == nullptr || completion.pair != pair_->number()) return;
  if (completion.work_id < begin_) return;  // of an earlier pair, which had the same number
  ESPALIER_ASSERT(completion.work_id < end_ - waiting_.size());
  ++counts_.completions;
  while (begin_ != completion.work_id) finish(PostEnd::done, Status::success);
  const Status status = completion.status;
  if (status == Status::success || planted(Bug::failed_post_believed)) {
    return finish(PostEnd::done, Status::success);
  }
  finish(is_refusal(completion) ? PostEnd::refused : PostEnd::unknown, status);
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
