// SPDX-License-Identifier: Apache-2.0
#include "tests/support/walk_recorder.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

#include "tests/support/store_parts.hpp"

namespace espalier::test {
namespace {

const bool kNeverWarm = false;

// A key, or one near it.
std::string random_bound(Random& random, const std::vector<std::string>& keys,
                         std::size_t key_bytes_max) {
  std::string bound = random.pick(keys);
  switch (random.below(4)) {
    case 0:
      if (bound.size() < key_bytes_max) bound += static_cast<char>(random.below(256));
      break;
    case 1:
      if (bound.size() > 1) bound.pop_back();
      break;
    default: break;
  }
  return bound;
}

}  // namespace

Question random_read(Random& random, const std::vector<std::string>& keys,
                     std::size_t key_bytes_max) {
  constexpr Op kReads[] = {Op::get,  Op::get,          Op::get,       Op::floor,
                           Op::scan, Op::scan_reverse, Op::scan_floor};
  Question question;
  question.op = random.pick(kReads);
  question.key = random_bound(random, keys, key_bytes_max);
  if (question.op == Op::get || question.op == Op::floor) return question;
  if (!random.one_in(4)) question.high = random_bound(random, keys, key_bytes_max);
  if (!question.high.empty() && question.high < question.key) {
    std::swap(question.key, question.high);
  }
  if (question.op != Op::scan_floor && random.one_in(4)) question.key.clear();
  if (!random.one_in(3)) question.limit = static_cast<std::uint32_t>(random.between(1, 8));
  return question;
}

tree::WalkRequest WalkRecorder::ask(Question question, const memory::HeldVersion* held,
                                    wire::Ref hint) {
  const std::uint64_t tag = next_tag_++;
  auto pending = std::make_unique<Pending>();
  pending->question = std::move(question);
  const Question& asked = pending->question;
  pending->request = request_of(asked, tag);
  Operation& operation = pending->operation;
  operation = operation_of(asked, thread_);
  operation.pinned = held != nullptr;
  operation.invoked = clock_.tick();
  const tree::WalkRequest walk{&pending->request, this, held, hint, {}};
  pending_.emplace(tag, std::move(pending));
  return walk;
}

void WalkRecorder::done(const Completion& completion) {
  const auto found = pending_.find(completion.tag);
  if (found == pending_.end()) {
    unexpected_ = "an answer to what was not asked, or a second one";
    return;
  }
  answered_ = std::move(found->second);
  pending_.erase(found);
  Operation& operation = answered_->operation;
  if (!completion.ok) {
    operation.refused = true;
    operation.items.clear();
    if (std::ranges::find(expected_, completion.error.code) == expected_.end())
      unexpected_ = fmt::format("{} ended with {}", describe(operation), message(completion.error));
  } else if (!take_answer(operation, completion)) {
    unexpected_ = describe(operation) + " ended with another number of items";
  }
  operation.responded = clock_.tick();
  log_.push_back(std::move(operation));
  if (on_handed_out) on_handed_out(completion.ok ? Error{} : completion.error);
}

bool WalkRecorder::items(std::uint64_t tag, std::span<const Item> items) {
  take_items(pending_.at(tag)->operation, items);
  if (on_handed_out) on_handed_out({});
  return true;
}

HostWalker::HostWalker(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index,
                       Clock& clock, std::uint32_t lanes)
    : context(store, join_epochs(store), index),
      recorder(clock, index),
      executor(context, map, lanes, [&map, lanes](std::uint32_t, base::ReadyQueue& queue) {
        return tree::HostAccess(map.base, queue, lanes > 1, &kNeverWarm);
      }) {}

}  // namespace espalier::test
