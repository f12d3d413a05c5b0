// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/requester.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/sim/pair.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {
namespace {

// As verbs has it: this many stand for no end of them.
constexpr std::uint32_t kForEver = 7;

bool fetches(Opcode opcode) { return opcode == Opcode::read || is_atomic(opcode); }

}  // namespace

std::size_t Requester::take(std::span<const WorkRequest> requests) {
  const std::size_t room = pair_.options().send_depth - works_.size();
  const std::size_t count = std::min(room, requests.size());
  for (const WorkRequest& request : requests.first(count)) {
    Work& work = works_.emplace_back();
    work.request = request;
    if (request.inlined) work.inlined.assign(request.local, request.local + request.bytes);
  }
  if (count != 0) {
    World& world = pair_.world();
    pair_.after(world.faults().start_ns.draw(world.random()), What::doorbell, first_,
                [](Pair& pair) { pair.requester().send_more(); });
  }
  return count;
}

void Requester::send_more() {
  if (pair_.state() != QueuePair::State::connected) return;
  const std::uint32_t limit =
      std::min(pair_.options().reads_in_flight, pair_.properties().reads_in_flight_max);
  while (sent_ < works_.size()) {
    const WorkRequest& next = works_[sent_].request;
    if (next.fence && reads_in_flight_ != 0) return;
    if (fetches(next.opcode)) {
      if (reads_in_flight_ == limit) return;
      ++reads_in_flight_;
    }
    transmit(first_ + sent_++);
  }
}

Requester::Work* Requester::in_flight(std::uint64_t sequence) {
  if (sequence < first_ || sequence - first_ >= sent_) return nullptr;
  Work& work = works_[sequence - first_];
  return work.answered ? nullptr : &work;
}

void Requester::transmit(std::uint64_t sequence) {
  const Work& work = works_[sequence - first_];
  const WorkRequest& request = work.request;
  Message message = pair_.message(Message::Kind::request, sequence);
  message.answered = first_;
  message.attempt = work.attempt;
  message.opcode = request.opcode;
  message.bytes = request.bytes;
  message.immediate = request.immediate;
  message.key = request.key;
  message.remote = request.remote;
  message.operand = request.operand;
  message.compare = request.compare;
  if (request.inlined) {
    message.data = work.inlined;
  } else if (is_send(request.opcode) || is_write(request.opcode)) {
    message.data.assign(request.local, request.local + request.bytes);
  }
  pair_.world().send(std::move(message));
  if (!timer_runs_) expect_answer();
}

// One event stands for the timer, however often the deadline moves.
void Requester::expect_answer() {
  const std::uint64_t timeout = pair_.options().timeout_ns;
  deadline_ns_ = pair_.world().now_ns() + timeout;
  if (std::exchange(timer_runs_, true)) return;
  pair_.after(timeout, What::timer, 0, [](Pair& pair) { pair.requester().on_timer(); });
}

void Requester::on_timer() {
  World& world = pair_.world();
  timer_runs_ = false;
  if (pair_.state() != QueuePair::State::connected || sent_ == 0) return;
  if (world.now_ns() < deadline_ns_) {
    timer_runs_ = true;
    pair_.after(deadline_ns_ - world.now_ns(), What::timer, 0,
                [](Pair& pair) { pair.requester().on_timer(); });
    return;
  }
  // A peer that has no receive does answer, and this side waits by itself.
  if (works_.front().waits) return expect_answer();
  if (retries_ == pair_.options().retries) {
    ++world.counts().retry_exceeded;
    return fail_first(Status::retry_exceeded);
  }
  ++retries_;
  for (std::uint64_t sequence = first_; sequence < first_ + sent_; ++sequence) {
    const Work* const work = in_flight(sequence);
    if (work == nullptr || work->waits) continue;
    ++world.counts().sent_again;
    transmit(sequence);
  }
  expect_answer();
}

void Requester::on_answer(const Message& answer) {
  Work* const work = in_flight(answer.sequence);
  if (work == nullptr) return;
  const WorkRequest& request = work->request;
  if (answer.status == Status::success) {
    if (request.opcode == Opcode::read && request.bytes != 0) {
      std::memcpy(request.local, answer.data.data(), request.bytes);
    }
    if (is_atomic(request.opcode) && request.local != nullptr) {
      std::memcpy(request.local, &answer.old_value, kAtomicBytes);
    }
  }
  work->old_value = answer.old_value;
  finish(*work, answer.status);
}

void Requester::on_not_ready(const Message& answer) {
  Work* const work = in_flight(answer.sequence);
  if (work == nullptr || work->waits || work->attempt != answer.attempt) return;
  World& world = pair_.world();
  const std::uint32_t tries = pair_.options().receive_retries;
  if (tries != kForEver && work->attempt == tries) {
    ++world.counts().no_receive;
    return finish(*work, Status::no_receive);
  }
  retries_ = 0;
  ++work->attempt;
  work->waits = true;
  const std::uint64_t delay = world.faults().no_receive_ns.draw(world.random());
  pair_.after(delay, What::not_ready_over, answer.sequence,
              [sequence = answer.sequence](Pair& pair) {
                Requester& self = pair.requester();
                Work* const again = self.in_flight(sequence);
                if (again == nullptr) return;
                again->waits = false;
                self.transmit(sequence);
                self.expect_answer();
              });
}

void Requester::finish(Work& work, Status status) {
  work.answered = true;
  work.status = status;
  if (fetches(work.request.opcode)) --reads_in_flight_;
  retries_ = 0;
  if (timer_runs_) expect_answer();
  complete_answered();
}

void Requester::complete_answered() {
  while (sent_ != 0 && works_.front().answered) {
    const Work& work = works_.front();
    if (work.status != Status::success) return fail_first(work.status);
    pair_.complete_noted(work.request, Status::success, work.old_value);
    works_.pop_front();
    ++first_;
    --sent_;
  }
  send_more();
}

void Requester::fail_first(Status status) {
  pair_.complete_noted(works_.front().request, status);
  works_.pop_front();
  ++first_;
  --sent_;
  // A peer that has refused a request has ended its pair by itself.
  const bool by_this_side = status == Status::retry_exceeded || status == Status::no_receive;
  pair_.end(status, by_this_side);
}

void Requester::flush() {
  for (const Work& work : works_) pair_.complete_noted(work.request, Status::flushed);
  works_.clear();
  sent_ = 0;
}

void Requester::release() {
  for (std::size_t i = 0; i < works_.size(); ++i) pair_.sends().release();
  works_.clear();
  sent_ = 0;
}

}  // namespace espalier::fabric::sim
