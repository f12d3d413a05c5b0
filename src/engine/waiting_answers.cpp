// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting_answers.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "engine/planted_engine_bugs.hpp"

namespace espalier::offload {
namespace {

// The first capacity of a queue.
constexpr std::size_t kCapacityFirst = 16;

}  // namespace

WaitingAnswers::~WaitingAnswers() {
  ESPALIER_ASSERT(empty());  // each counts as a user of its object
  resize(0, nullptr);
}

bool WaitingAnswers::make_room() noexcept {
  if (count_ < capacity_) [[likely]]
    return true;
  const std::size_t wanted = std::max(kCapacityFirst, 2 * capacity_);
  if (!share_.allows((wanted - capacity_) * sizeof(WaitingAnswer))) return false;
  std::unique_ptr<WaitingAnswer[]> more(new (std::nothrow) WaitingAnswer[wanted]);
  if (more == nullptr) return false;
  for (std::size_t i = 0; i < count_; ++i) more[i] = answers_[(first_ + i) & (capacity_ - 1)];
  resize(wanted, std::move(more));
  return true;
}

void WaitingAnswers::push(const WaitingAnswer& answer) noexcept {
  ESPALIER_ASSERT(count_ < capacity_ && answer.hops <= wire::kHopsMax);
  answers_[(first_ + count_++) & (capacity_ - 1)] = answer;
  ++by_hops_[answer.hops];
}

std::size_t WaitingAnswers::place_of_next() const {
  const std::size_t at = planted(Bug::waiting_answers_last_first) ? first_ + count_ - 1 : first_;
  return at & (capacity_ - 1);
}

void WaitingAnswers::pop() noexcept {
  ESPALIER_ASSERT(!empty());
  --by_hops_[front().hops];
  --count_;
  if (!planted(Bug::waiting_answers_last_first)) first_ = (first_ + 1) & (capacity_ - 1);
  if (count_ == 0 && capacity_ > kKept) resize(0, nullptr);
}

void WaitingAnswers::resize(std::size_t capacity,
                            std::unique_ptr<WaitingAnswer[]> answers) noexcept {
  share_.give(capacity_ * sizeof(WaitingAnswer));
  answers_ = std::move(answers);
  capacity_ = capacity;
  first_ = 0;
  share_.take_anyway(capacity_ * sizeof(WaitingAnswer));
}

}  // namespace espalier::offload
