// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wing_gong.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/support/small_model.hpp"

namespace espalier::test {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// A refused operation did nothing; a pinned read is right at a moment that only versions determine.
bool takes_part(const Operation& operation) { return !operation.refused && !operation.pinned; }

// Calls and returns in order of time, as a list from which operations are taken and put back.
class Timeline {
 public:
  explicit Timeline(const std::vector<Operation>& operations) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> events;  // stamp, event
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      if (!takes_part(operations[i])) continue;
      events.emplace_back(operations[i].invoked, 2 * i);
      events.emplace_back(operations[i].responded, 2 * i + 1);
    }
    std::sort(events.begin(), events.end());
    const auto head = static_cast<std::uint32_t>(2 * operations.size());
    links_.resize(head + 1);
    std::uint32_t last = head;
    for (const auto& [stamp, event] : events) {
      links_[last].next = event;
      links_[event].previous = last;
      last = event;
    }
    links_[last].next = kNone;
    remaining_ = events.size() / 2;
  }

  [[nodiscard]] bool empty() const { return remaining_ == 0; }
  [[nodiscard]] std::uint32_t first() const { return links_.back().next; }
  [[nodiscard]] std::uint32_t next(std::uint32_t event) const { return links_[event].next; }
  static bool is_return(std::uint32_t event) { return event == kNone || event % 2 == 1; }

  void take(std::uint32_t operation) {
    unlink(2 * operation);
    unlink(2 * operation + 1);
    --remaining_;
  }
  // Operations come back in the opposite order of being taken.
  void put_back(std::uint32_t operation) {
    relink(2 * operation + 1);
    relink(2 * operation);
    ++remaining_;
  }

 private:
  struct ListLink {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };
  void unlink(std::uint32_t event) {
    const ListLink link = links_[event];
    links_[link.previous].next = link.next;
    if (link.next != kNone) links_[link.next].previous = link.previous;
  }
  void relink(std::uint32_t event) {
    const ListLink link = links_[event];
    links_[link.previous].next = event;
    if (link.next != kNone) links_[link.next].previous = event;
  }

  std::vector<ListLink> links_;  // calls are even, returns odd, the last one is the head
  std::size_t remaining_ = 0;
};

// Which operations were done, with what contents: the states that need not be searched again.
class Memory {
 public:
  explicit Memory(std::size_t operations) : done_((operations + 63) / 64) {}

  void mark(std::uint32_t operation) { flip(operation); }
  void unmark(std::uint32_t operation) { flip(operation); }

  /// Whether this is new.
  bool add(const SmallState& state) {
    // In invocation order what is done is nearly a prefix: its length stands for its full words.
    std::size_t full = 0;
    while (full < done_.size() && done_[full] == ~std::uint64_t{0}) ++full;
    std::size_t used = done_.size();
    while (used > full && done_[used - 1] == 0) --used;
    std::string entry;
    append(entry, full);
    append(entry, used);
    for (std::size_t i = full; i < used; ++i) append(entry, done_[i]);
    for (const std::uint32_t value : state) append(entry, value);
    return seen_.insert(std::move(entry)).second;
  }

 private:
  template <class T>
  static void append(std::string& entry, T value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
    entry.append(bytes.data(), bytes.size());
  }
  void flip(std::uint32_t operation) {
    done_[operation / 64] ^= std::uint64_t{1} << (operation % 64);
  }

  std::vector<std::uint64_t> done_;
  std::unordered_set<std::string> seen_;
};

class Search {
 public:
  Search(const History& history, std::uint64_t steps_max)
      : history_(history),
        model_(history),
        timeline_(history.operations),
        memory_(history.operations.size()),
        state_(model_.initial()),
        steps_max_(steps_max) {}

  CheckResult run() {
    std::uint32_t event = timeline_.first();
    while (!timeline_.empty()) {
      // All calls before the first return may come next; at the return there is nothing left to
      // try.
      if (Timeline::is_return(event)) {
        if (!step_back(event)) return {Answer::no, why(), steps_};
        continue;
      }
      if (++steps_ > steps_max_) return {Answer::unknown, {}, steps_};
      const std::uint32_t operation = event / 2;
      const bool went = possible(model_.compiled(operation), state_) && step(operation);
      event = went ? timeline_.first() : timeline_.next(event);
    }
    return {Answer::yes, {}, steps_};
  }

 private:
  struct Step {
    std::uint32_t operation = 0;
    bool final = false;  // nothing else needs to be tried in its place
    SmallState before;   // empty if it changed nothing
  };

  // Takes an operation as the next one, unless that is known to lead nowhere.
  bool step(std::uint32_t operation) {
    const CompiledOperation& compiled = model_.compiled(operation);
    Step step{operation, compiled.assignments.empty(), {}};
    memory_.mark(operation);
    if (!step.final) {
      step.before = state_;
      for (const auto& [slot, value] : compiled.assignments) state_[slot] = value;
      if (!memory_.add(state_)) {
        memory_.unmark(operation);
        state_ = std::move(step.before);
        return false;
      }
    }
    timeline_.take(operation);
    steps_taken_.push_back(std::move(step));
    return true;
  }

  // Takes the last operation back and continues with the event after it; false if there is none.
  bool step_back(std::uint32_t& event) {
    if (steps_taken_.size() > deepest_.size()) remember_deepest();
    while (!steps_taken_.empty()) {
      Step step = std::move(steps_taken_.back());
      steps_taken_.pop_back();
      timeline_.put_back(step.operation);
      memory_.unmark(step.operation);
      if (step.final) continue;
      state_ = std::move(step.before);
      event = timeline_.next(2 * step.operation);
      return true;
    }
    return false;
  }

  void remember_deepest() {
    deepest_.clear();
    for (const Step& step : steps_taken_) deepest_.push_back(step.operation);
  }

  // The operations that could not be placed after the longest order found, as far as they may come
  // next, and the end of that order.
  [[nodiscard]] std::string why() const {
    std::vector<bool> done(history_.operations.size());
    for (const std::uint32_t operation : deepest_) done[operation] = true;
    std::string text = "no order explains the answers. The longest partial order ends with\n";
    const std::size_t shown = std::min<std::size_t>(deepest_.size(), 8);
    for (std::size_t i = deepest_.size() - shown; i < deepest_.size(); ++i) {
      text += "  " + describe(history_.operations[deepest_[i]]) + "\n";
    }
    std::uint64_t first_return = ~std::uint64_t{0};
    for (std::size_t i = 0; i < done.size(); ++i) {
      const Operation& operation = history_.operations[i];
      if (!done[i] && takes_part(operation)) {
        first_return = std::min(first_return, operation.responded);
      }
    }
    text += "and none of these can follow\n";
    for (std::size_t i = 0; i < done.size(); ++i) {
      const Operation& operation = history_.operations[i];
      if (done[i] || !takes_part(operation) || operation.invoked > first_return) continue;
      text += "  " + describe(operation) + "\n";
    }
    return text;
  }

  const History& history_;
  SmallModel model_;
  Timeline timeline_;
  Memory memory_;
  SmallState state_;
  std::vector<Step> steps_taken_;
  std::vector<std::uint32_t> deepest_;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_max_;
};

}  // namespace

CheckResult check_linearizable(const History& history, std::uint64_t steps_max) {
  for (const Operation& operation : history.operations) {
    if (auto wrong = malformed(operation)) {
      return {Answer::no, describe(operation) + "\n  " + *wrong, 0};
    }
  }
  return Search(history, steps_max).run();
}

}  // namespace espalier::test
