// SPDX-License-Identifier: Apache-2.0
#include "tests/support/load_worker.hpp"

#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier::test {
namespace {

constexpr std::uint64_t kKeys = 400;
constexpr std::size_t kErasedAtOnce = 500;

template <class T>
T or_throw(Result<T> result, const char* what) {
  if (!result) throw std::runtime_error(std::string(what) + ": " + message(result.error()));
  return std::move(*result);
}

/// Holds the answers of gets against a model.
class Comparison : public Handler {
 public:
  explicit Comparison(const std::map<std::string, std::string>& model) : model_(model) {}
  void add(const std::string& key) { keys_.push_back(key); }
  [[nodiscard]] std::vector<Request> requests() const {
    std::vector<Request> requests;
    for (const std::string& key : keys_) {
      Request request;
      request.op = Op::get;
      request.tag = requests.size();
      request.key = key;
      requests.push_back(request);
    }
    return requests;
  }
  void done(const Completion& completion) override {
    const auto expected = model_.find(keys_[completion.tag]);
    const bool there = expected != model_.end();
    const bool right = completion.ok && completion.found == there &&
                       (!there || completion.value == expected->second);
    if (right) ++right_;
  }
  [[nodiscard]] bool all_right() const { return right_ == keys_.size(); }

 private:
  const std::map<std::string, std::string>& model_;
  std::vector<std::string> keys_;
  std::size_t right_ = 0;
};

}  // namespace

std::string erase_range(const Map& map, std::string_view low, std::string_view high) {
  struct Failures : Handler {
    void done(const Completion& completion) override {
      if (!completion.ok) why = message(completion.error);
    }
    std::string why;
  };
  auto pipeline = Pipeline::open(map);
  if (!pipeline) return message(pipeline.error());
  for (;;) {
    std::vector<std::string> keys;
    const auto gather = [&](std::span<const Item> items) {
      for (const Item& item : items) keys.emplace_back(item.key);
      return true;
    };
    const auto scanned = map.scan(low, high, gather, {.limit = kErasedAtOnce});
    if (!scanned) return message(scanned.error());
    if (keys.empty()) return "";
    std::vector<Request> erases(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      erases[i].op = Op::erase;
      erases[i].key = keys[i];
    }
    Failures failures;
    pipeline->run(erases, failures);
    if (!failures.why.empty()) return failures.why;
  }
}

LoadWorker::LoadWorker(const std::string& address, const std::string& family,
                       const std::string& name, std::uint64_t seed)
    : name_(family + name + ' '),
      random_(seed),
      store_(or_throw(Store::connect(address), "connect")),
      map_(or_throw(store_.open_map("default"), "open the map")) {
  erase_what_was_left(family);
}

void LoadWorker::erase_what_was_left(const std::string& family) {
  for (const std::string& name : or_throw(store_.map_names(), "list maps")) {
    if (name.starts_with(family)) static_cast<void>(store_.drop_map(name));
  }
  const std::string wrong = erase_range(map_, family, family + '~');
  if (!wrong.empty()) throw std::runtime_error(name_ + ": erase what was left: " + wrong);
}

void LoadWorker::work(std::uint64_t operations, const std::function<void()>& go_on) {
  for (std::uint64_t i = 1; i <= operations; ++i) {
    step();
    if (i % 100 == 0) go_on();
  }
  compare(map_, model_, "the last scan");
}

void LoadWorker::expect(bool good, const char* what) const {
  if (!good) throw std::runtime_error(name_ + " got a wrong answer: " + what);
}

template <class T>
T LoadWorker::good(Result<T> result, const char* what) const {
  if (!result) throw std::runtime_error(name_ + ": " + what + ": " + message(result.error()));
  return std::move(*result);
}

template <class Reader>
void LoadWorker::compare(const Reader& reader, const Model& model, const char* what) const {
  auto next = model.begin();
  bool same = true;
  const auto sink = [&](std::span<const Item> items) {
    for (const Item& item : items) {
      same = same && next != model.end() && item.key == next->first && item.value == next->second;
      if (next != model.end()) ++next;
    }
    return true;
  };
  const std::uint64_t count = good(reader.scan(name_, name_ + '~', sink), what);
  expect(same && next == model.end() && count == model.size(), what);
}

std::string LoadWorker::key() { return name_ + std::to_string(random_.below(kKeys)); }

// Some lie out of line, and some are longer than a ring.
std::string LoadWorker::value() {
  const std::uint64_t most = random_.one_in(400) ? 200'000 : random_.one_in(20) ? 5000 : 100;
  return std::string(random_.below(most), static_cast<char>('a' + random_.below(26)));
}

void LoadWorker::step() {
  switch (random_.below(40)) {
    case 0: return compare(map_, model_, "a scan");
    case 1: return use_snapshot();
    case 2:
    case 3: return use_pipeline();
    case 4:
    case 5: return use_counters();
    case 6:
    case 7: return write_batch();
    case 8: return random_.one_in(10) ? use_a_map_of_its_own() : read();
    default: return random_.one_in(2) ? read() : write();
  }
}

void LoadWorker::write() {
  const std::string chosen = key();
  if (random_.one_in(4)) {
    const bool existed = good(map_.erase(chosen), "erase").existed;
    expect(existed == (model_.erase(chosen) == 1), "erase");
    return;
  }
  const std::string bytes = value();
  const bool existed = good(map_.put(chosen, bytes), "put").existed;
  expect(existed == model_.contains(chosen), "put");
  model_[chosen] = bytes;
}

void LoadWorker::read() {
  const std::string chosen = key();
  const auto expected = model_.find(chosen);
  const auto found = good(map_.get(chosen), "get");
  expect(found.has_value() == (expected != model_.end()), "get");
  expect(!found || found->value == expected->second, "get");
}

void LoadWorker::write_batch() {
  WriteBatch batch;
  Model after = model_;
  for (std::uint64_t i = random_.between(1, 20); i != 0; --i) {
    const std::string chosen = key();
    const std::string bytes = value();
    batch.put(chosen, bytes);
    after[chosen] = bytes;
  }
  const std::string condition = key();
  const bool holds = !model_.contains(condition);
  batch.only_if_absent(condition);
  const auto written = map_.write(batch);
  expect(written.has_value() == holds, "batch");
  if (holds) model_ = std::move(after);
  if (!holds) expect(written.error().code == Code::condition_failed, "batch");
}

void LoadWorker::use_snapshot() {
  if (snapshot_) {
    // Others may have made it hold too much.
    const auto sink = [](std::span<const Item>) { return true; };
    const auto scanned = snapshot_->scan(name_, name_ + '~', sink);
    if (scanned || scanned.error().code != Code::snapshot_expired) {
      compare(*snapshot_, held_, "a scan of a snapshot");
    }
  }
  snapshot_.reset();
  if (random_.one_in(3)) return;
  snapshot_.emplace(good(map_.snapshot(), "snapshot"));
  held_ = model_;
}

void LoadWorker::use_pipeline() {
  const auto in_flight = static_cast<std::uint32_t>(random_.between(1, 64));
  Pipeline pipeline = good(Pipeline::open(map_, in_flight), "open a pipeline");
  Comparison comparison(model_);
  for (std::uint64_t i = random_.below(100); i != 0; --i) comparison.add(key());
  pipeline.run(comparison.requests(), comparison);
  expect(comparison.all_right(), "gets in flight");
}

void LoadWorker::use_counters() {
  // Shared with all others.
  const std::uint64_t number = good(store_.sequence("numbers"), "sequence");
  expect(number >= newest_number_, "a number of a sequencer");
  newest_number_ = number + 1;
  const std::uint64_t amount = random_.between(1, 9);
  const std::uint64_t sum = good(map_.add("sum", amount), "add");
  // The cleanup resets it, when there is no worker.
  expect(sum >= sum_ + amount, "a sum");
  sum_ = sum;
}

void LoadWorker::use_a_map_of_its_own() {
  const std::string name = name_ + "map";
  static_cast<void>(store_.drop_map(name));  // not always dropped the last time
  Map map = good(store_.create_map(name, {.node_bytes = 1024}), "create a map");
  for (int i = 0; i < 100; ++i) good(map.put(std::to_string(i), value()), "put into its map");
  expect(good(map.count("", ""), "count") == 100, "a count");
  if (!random_.one_in(5)) expect(store_.drop_map(name).has_value(), "drop a map");
}

}  // namespace espalier::test
