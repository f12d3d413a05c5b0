// SPDX-License-Identifier: Apache-2.0
#include "tests/support/model_driver.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/support/version_replay.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kReplayEvery = 500;
constexpr std::size_t kHeldMax = 4;
constexpr std::uint32_t kRequestsInFlight = 32;

}  // namespace

ModelDriver::ModelDriver(Map map, const ModelOptions& options)
    : map_(map),
      options_(options),
      random_(options.seed),
      recorder_(map, clock_, 0),
      keys_(make_keys(options.pattern, options.keys, map.max_key_bytes(), options.seed)) {
  auto pipeline = PipelineRecorder::open(recorder_, kRequestsInFlight);
  if (pipeline) {
    pipeline_ = std::move(*pipeline);
  } else {
    fail("no pipeline: " + message(pipeline.error()));
  }
}

void ModelDriver::fail(std::string what) {
  if (!failure_) failure_ = fmt::format("step {}: {}", steps_, what);
}

std::optional<std::string> ModelDriver::run() {
  for (; steps_ < options_.steps && !failure_; ++steps_) {
    if (steps_ % options_.steps_per_phase == 0) shrinking_ = steps_ != 0 && !shrinking_;
    step();
    if (steps_ % options_.audit_every == 0) {
      for (const std::string& wrong : map_.audit()) fail("audit: " + wrong);
    }
    if (steps_ % kReplayEvery == kReplayEvery - 1) {
      if (auto wrong = replay()) fail(*wrong);
    }
  }
  held_.clear();
  if (failure_) return failure_;
  if (auto wrong = replay()) return wrong;
  return compare_all();
}

void ModelDriver::step() {
  switch (random_.below(24)) {
    case 0: return batch_one();
    case 1: return version_condition();
    case 2: return stale_version_condition();
    case 3: return snapshot_one();
    case 4: return pipeline_writes();
    case 5: return pipeline_reads();
    case 6:
    case 7: scan_one(recorder_, false); return follow();
    case 8:
    case 9:
    case 10: read_one(recorder_); return follow();
    default: return write_one();
  }
}

// --- What to ask ---------------------------------------------------------------------------------

const std::string& ModelDriver::random_key() {
  const bool in_order =
      options_.pattern == KeyPattern::ascending || options_.pattern == KeyPattern::descending;
  if (in_order && !random_.one_in(4)) return keys_[steps_ % keys_.size()];
  if (options_.pattern == KeyPattern::hot_leaf && random_.one_in(2)) {
    return keys_[random_.below(std::min<std::size_t>(keys_.size(), 12))];
  }
  return random_.pick(keys_);
}

// A key, one near it, or no bound at all.
std::string ModelDriver::random_bound() {
  std::string bound = random_key();
  switch (random_.below(8)) {
    case 0: return {};
    case 1:
      if (bound.size() < map_.max_key_bytes()) bound += '\0';
      return bound;
    case 2:
      if (bound.size() > 1) bound.pop_back();
      return bound;
    case 3: bound.back() = static_cast<char>(bound.back() + 1); return bound;
    default: return bound;
  }
}

std::string ModelDriver::random_value() {
  const std::size_t inline_max = std::min<std::size_t>(map_.options().node_bytes / 16, 469);
  std::size_t bytes = 0;
  switch (random_.below(6)) {
    case 0: bytes = random_.below(3); break;
    case 1: bytes = inline_max - random_.below(3) + 1; break;
    case 2: bytes = 500; break;
    default: bytes = random_.between(0, inline_max); break;
  }
  if (options_.large_value_bytes != 0 && random_.one_in(50)) bytes = options_.large_value_bytes;
  std::string value = std::to_string(++values_);
  value.resize(bytes, static_cast<char>('a' + values_ % 26));
  return value;
}

void ModelDriver::write_one() {
  const std::string& key = random_key();
  const std::uint64_t roll = random_.below(12);
  if (shrinking_ ? roll < 8 : roll < 2) {
    recorder_.erase(key);
  } else if (roll == 8) {
    recorder_.insert(key, random_value());
  } else if (roll == 9) {
    recorder_.update(key, random_value());
  } else if (roll == 10) {
    const bool erases = random_.one_in(shrinking_ ? 2 : 4);
    recorder_.modify(key, erases ? std::nullopt : std::optional(random_value()));
  } else {
    recorder_.put(key, random_value());
  }
  follow();
}

void ModelDriver::read_one(Recorder& recorder) {
  switch (random_.below(4)) {
    case 0: return recorder.floor(random_key());
    case 1: return recorder.count(random_bound(), random_bound());
    default: return recorder.get(random_key());
  }
}

void ModelDriver::scan_one(Recorder& recorder, bool held) {
  ScanOptions options;
  const std::uint64_t kind = random_.below(3);
  options.reverse = kind == 1;
  options.from_floor = kind == 2;
  if (!random_.one_in(3)) options.limit = random_.between(1, 12);
  std::string low = random_bound();
  std::string high = random_bound();
  // Inverted ranges are requested, but not half of the time.
  if (!high.empty() && high < low && !random_.one_in(8)) std::swap(low, high);
  held ? recorder.scan_held(low, high, options) : recorder.scan(low, high, options);
}

void ModelDriver::batch_one() {
  WriteBatch batch;
  const std::uint64_t writes = random_.between(1, 8);
  for (std::uint64_t i = 0; i < writes; ++i) {
    if (random_.one_in(shrinking_ ? 2 : 4)) {
      batch.erase(random_key());
    } else {
      batch.put(random_key(), random_value());
    }
  }
  for (std::uint64_t i = random_.below(3); i > 0; --i) {
    const std::string& key = random_key();
    const auto now = reference_.contents().find(key);
    const bool present = now != reference_.contents().end();
    // Conditions that hold, mostly: several that fail at random would hide each other.
    switch (random_.below(6)) {
      case 0: batch.only_if_absent(key); break;
      case 1: batch.only_if_present(key); break;
      case 2: batch.only_if_value(key, random_value()); break;
      default:
        if (!present) {
          batch.only_if_absent(key);
        } else if (random_.one_in(2)) {
          batch.only_if_present(key);
        } else {
          batch.only_if_value(key, now->second);
        }
        break;
    }
  }
  recorder_.write(batch);
  follow();
}

// What was read a moment ago must still have its version, but for reorganisations of its leaf.
void ModelDriver::version_condition() {
  constexpr int kTries = 3;
  if (!map_.options().versions) return;
  const std::string& key = random_key();
  if (!reference_.contents().contains(key)) return;
  for (int i = 0; i < kTries; ++i) {
    recorder_.get(key);
    if (!recorder_.last_item()) return follow();
    WriteBatch batch;
    batch.put(random_key(), random_value()).only_if_version(key, recorder_.last_item()->version);
    remembered_.push_back(*recorder_.last_item());
    recorder_.write(batch);
    const bool applied = recorder_.log().back().applied;
    follow();
    if (applied) return;
  }
  fail("a condition on a version failed again and again");
}

void ModelDriver::stale_version_condition() {
  if (remembered_.empty()) return;
  const ReadItem item = random_.pick(remembered_);
  WriteBatch batch;
  batch.put(random_key(), random_value()).only_if_version(item.key, item.version);
  recorder_.recall(item);
  recorder_.write(batch);
  follow();
}

void ModelDriver::snapshot_one() {
  if (!map_.options().versions) return;
  if (held_.size() < kHeldMax && random_.one_in(3)) {
    auto held = std::make_unique<Held>(Held{Recorder(map_, clock_, 1), reference_});
    held->recorder.hold_snapshot();
    if (held->recorder.unexpected()) fail(*held->recorder.unexpected());
    held->recorder.log().clear();
    held_.push_back(std::move(held));
    return;
  }
  if (held_.empty()) return;
  const std::size_t chosen = random_.below(held_.size());
  if (random_.one_in(5)) {
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(chosen));
    return;
  }
  Held& held = *held_[chosen];
  for (int i = 0; i < 3; ++i) {
    held.recorder.get_held(random_key());
    held.recorder.floor_held(random_key());
    scan_one(held.recorder, true);
  }
  for (const Operation& operation : held.recorder.log()) {
    if (auto wrong = held.then.follow(operation)) fail(*wrong);
  }
  held.recorder.log().clear();
}

Question ModelDriver::random_read() {
  Question question;
  constexpr Op kReads[] = {Op::get, Op::get, Op::floor, Op::scan, Op::scan_reverse, Op::scan_floor};
  question.op = random_.pick(kReads);
  if (question.op == Op::get || question.op == Op::floor) {
    question.key = random_key();
    return question;
  }
  question.key = random_bound();
  question.high = random_bound();
  if (!random_.one_in(4)) question.limit = static_cast<std::uint32_t>(random_.between(1, 12));
  return question;
}

// Operations in flight together are concurrent, so no two of them may name one key.
void ModelDriver::pipeline_writes() {
  std::vector<std::size_t> order(keys_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t count = std::min<std::size_t>(keys_.size(), random_.between(1, 64));
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(order[i], order[i + random_.below(order.size() - i)]);
    constexpr Op kGrow[] = {Op::get, Op::put, Op::put, Op::insert, Op::update, Op::erase};
    constexpr Op kShrink[] = {Op::get, Op::put, Op::update, Op::erase, Op::erase, Op::erase};
    Question& question = questions.emplace_back();
    question.op = shrinking_ ? random_.pick(kShrink) : random_.pick(kGrow);
    question.key = keys_[order[i]];
    if (question.op != Op::get && question.op != Op::erase) question.value = random_value();
  }
  pipeline_->submit(std::move(questions));
  pipeline_->drain();
  follow();
}

void ModelDriver::pipeline_reads() {
  std::vector<Question> questions;
  for (std::uint64_t i = random_.between(1, 40); i > 0; --i) questions.push_back(random_read());
  pipeline_->submit(std::move(questions));
  pipeline_->drain();
  follow();
}

// --- Comparing -----------------------------------------------------------------------------------

void ModelDriver::follow() {
  if (recorder_.unexpected()) fail(*recorder_.unexpected());
  for (Operation& operation : recorder_.log()) {
    if (auto wrong = reference_.follow(operation)) fail(*wrong);
    history_.operations.push_back(std::move(operation));
  }
  recorder_.log().clear();
}

std::optional<std::string> ModelDriver::replay() {
  std::optional<std::string> wrong;
  if (map_.options().versions) wrong = replay_versions(history_);
  history_.operations.clear();
  history_.initial = reference_.contents();
  history_.initial_version = map_.stats()->write_version;
  return wrong;
}

std::optional<std::string> ModelDriver::compare_all() {
  recorder_.scan("", "");
  recorder_.scan("", "", {.reverse = true});
  recorder_.count("", "");
  follow();
  for (const std::string& wrong : map_.audit()) fail("audit: " + wrong);
  const std::uint64_t items = map_.stats()->items;
  if (items != reference_.contents().size()) fail(fmt::format("stats count {} items", items));
  return failure_;
}

std::optional<std::string> ModelDriver::empty() {
  std::vector<std::string> keys = keys_;
  while (!keys.empty() && !failure_) {
    std::swap(keys[random_.below(keys.size())], keys.back());
    recorder_.erase(keys.back());
    keys.pop_back();
    follow();
  }
  if (failure_) return failure_;
  return compare_all();
}

}  // namespace espalier::test
