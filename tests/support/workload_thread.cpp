// SPDX-License-Identifier: Apache-2.0
#include "tests/support/workload_thread.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace espalier::test {

// Often the same key again: what a thread has read must stay true for it.
const std::string& WorkloadThread::key() {
  if (!random_.one_in(4)) last_key_ = random_.below(keys_.size());
  return keys_[last_key_];
}

std::string WorkloadThread::value() {
  std::string value = value_prefix_ + std::to_string(++values_) + ".";
  const std::uint64_t bytes = random_.between(value.size(), options_.value_bytes_max);
  value.resize(bytes, static_cast<char>('a' + values_ % 26));
  return value;
}

void WorkloadThread::call() {
  Random pauses = Random(random_());
  recorder_.in_between = [&pauses] {
    if (pauses.one_in(3)) std::this_thread::yield();
  };
  for (std::uint64_t i = 0; i < options_.operations; ++i) {
    shrinking_ = i / options_.operations_per_phase % 2 == 1;
    step();
  }
  recorder_.drop_snapshot();
  recorder_.in_between = nullptr;
}

void WorkloadThread::step() {
  const std::uint64_t roll = random_.below(16);
  if (roll == 0 && options_.batches) return batch();
  if (roll == 1 && options_.snapshots) return read_snapshot();
  if (roll <= 3 && options_.ranges) return scan(false);
  if (roll <= 7) return read();
  return write();
}

void WorkloadThread::write() {
  const std::uint64_t roll = random_.below(12);
  if (shrinking_ ? roll < 7 : roll < 2) return recorder_.erase(key());
  switch (roll) {
    case 7:
    case 8: return recorder_.insert(key(), value());
    case 9: return recorder_.update(key(), value());
    case 10: {
      if (!options_.modifies) return recorder_.put(key(), value());
      const bool erases = random_.one_in(4);
      const std::string& chosen = key();
      return recorder_.modify(chosen, erases ? std::nullopt : std::optional(value()));
    }
    default: return recorder_.put(key(), value());
  }
}

void WorkloadThread::read() {
  if (!options_.ranges || !random_.one_in(4)) return recorder_.get(key());
  if (random_.one_in(3)) return recorder_.count(key(), "");
  recorder_.floor(key());
}

void WorkloadThread::scan(bool held) {
  ScanOptions options;
  const std::uint64_t kind = random_.below(3);
  options.reverse = kind == 1;
  options.from_floor = kind == 2;
  if (!random_.one_in(3)) options.limit = random_.between(1, 8);
  options.parts = static_cast<std::uint32_t>(options.limit % 4);
  std::string low = random_.one_in(4) && !options.from_floor ? "" : key();
  std::string high = random_.one_in(4) ? "" : key();
  if (!high.empty() && high < low) std::swap(low, high);
  held ? recorder_.scan_held(low, high, options) : recorder_.scan(low, high, options);
}

void WorkloadThread::batch() {
  WriteBatch batch;
  // Conditions on what was read just now: by value or, with versions, by version.
  if (random_.one_in(2)) {
    const std::string& read = key();
    recorder_.get(read);
    const auto& item = recorder_.last_item();
    if (!item || item->key != read) {
      batch.only_if_absent(read);
    } else if (item->version != 0 && random_.one_in(2)) {
      batch.only_if_version(read, item->version);
    } else if (random_.one_in(2)) {
      batch.only_if_value(read, item->value);
    } else {
      batch.only_if_present(read);
    }
  }
  for (std::uint64_t i = random_.between(2, 5); i > 0; --i) {
    const std::string& chosen = random_.pick(keys_);
    random_.one_in(shrinking_ ? 2 : 5) ? batch.erase(chosen) : batch.put(chosen, value());
  }
  recorder_.write(batch);
}

void WorkloadThread::read_snapshot() {
  switch (random_.below(6)) {
    case 0: return recorder_.hold_snapshot();
    case 1: return recorder_.drop_snapshot();
    case 2: return recorder_.floor_held(key());
    case 3: return recorder_.get_held(key());
    default: return scan(true);
  }
}

Question WorkloadThread::question() {
  Question question;
  constexpr Op kRanges[] = {Op::floor, Op::scan, Op::scan_reverse, Op::scan_floor};
  constexpr Op kGrow[] = {Op::put, Op::put, Op::insert, Op::update, Op::erase};
  constexpr Op kShrink[] = {Op::put, Op::update, Op::erase, Op::erase, Op::erase};
  question.key = key();
  const std::uint64_t roll = random_.below(8);
  if (roll < 2) {
    question.op = Op::get;
  } else if (roll < 4 && options_.ranges) {
    question.op = random_.pick(kRanges);
    if (question.op == Op::floor) return question;
    question.high = random_.one_in(4) ? "" : key();
    const bool upside_down = !question.high.empty() && question.high < question.key;
    if (upside_down) std::swap(question.key, question.high);
    if (!random_.one_in(3)) question.limit = static_cast<std::uint32_t>(random_.between(1, 8));
  } else {
    question.op = shrinking_ ? random_.pick(kShrink) : random_.pick(kGrow);
    if (question.op != Op::erase) question.value = value();
  }
  return question;
}

void WorkloadThread::submit() {
  auto pipeline = PipelineRecorder::open(recorder_, options_.in_flight);
  if (!pipeline) return recorder_.give_up("no pipeline: " + message(pipeline.error()));
  for (std::uint64_t i = 0; i < options_.operations;) {
    shrinking_ = i / options_.operations_per_phase % 2 == 1;
    std::vector<Question> questions;
    const std::uint64_t some = random_.between(1, options_.in_flight);
    for (std::uint64_t j = std::min(some, options_.operations - i); j > 0; --j, ++i) {
      questions.push_back(question());
    }
    (*pipeline)->submit(std::move(questions));
    (*pipeline)->drain(random_.below(options_.in_flight));
  }
  (*pipeline)->drain();
}

}  // namespace espalier::test
