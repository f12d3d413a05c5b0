// SPDX-License-Identifier: Apache-2.0
#include "bench/read_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/map_session.hpp"
#include "bench/one_at_a_time.hpp"
#include "bench/option_rows.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kReadsTogether = 4096;  // requests made before their clock runs

/// Counts wrong answers.
class ReadChecks final : public Handler {
 public:
  explicit ReadChecks(const ReadLoad& load) : load_(load) {}
  void begin_batch(std::size_t requests) { scans_.assign(requests, {}); }
  /// The scan with this tag has keys [from, end).
  void expect(std::uint64_t tag, std::uint64_t from, std::uint64_t end) {
    scans_[tag] = {from, end};
  }
  void done(const Completion& completion) override {
    bool good = completion.ok;
    if (completion.op == Op::get) {
      good = good && completion.found && completion.value.size() == load_.value_bytes;
    }
    if (completion.op == Op::scan) {
      good = good && scans_[completion.tag].next == scans_[completion.tag].end;
    }
    wrong_ += good ? 0 : 1;
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    for (const Item& item : items) {
      if (item.key != read_key(scans_[tag].next++) || item.value.size() != load_.value_bytes)
        ++wrong_;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  struct Scan {
    std::uint64_t next = 0;  // the number of the key that comes next
    std::uint64_t end = 0;
  };
  const ReadLoad& load_;
  std::vector<Scan> scans_;  // by tag
  std::uint64_t wrong_ = 0;
};

/// Random requests, and what is known of their answers.
class Reads {
 public:
  Reads(const ReadLoad& load, std::uint64_t seed)
      : load_(load), random_(seed), checks_(load), keys_(kReadsTogether) {}

  /// So many new ones, at most kReadsTogether.
  std::span<const Request> draw(std::size_t count) {
    requests_.resize(count);
    checks_.begin_batch(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = random_.below(load_.keys);
      const bool scans = random_.below(100) < load_.scan_percent;
      keys_[i] = read_key(number);
      requests_[i] = {.op = scans ? Op::scan : Op::get, .tag = i, .key = keys_[i]};
      if (!scans) continue;
      requests_[i].limit = static_cast<std::uint32_t>(load_.scan_items);
      checks_.expect(i, number, std::min(number + load_.scan_items, load_.keys));
    }
    return requests_;
  }
  [[nodiscard]] ReadChecks& checks() { return checks_; }

 private:
  const ReadLoad& load_;
  base::Random random_;
  ReadChecks checks_;
  std::vector<std::string> keys_;
  std::vector<Request> requests_;
};

// Of each thread in each round.
std::uint64_t seed_of(const ReadLoad& load, std::uint64_t round, std::uint64_t thread) {
  return (load.seed * 1000 + round) * 1000 + thread;
}

std::uint64_t read_alone(const Map& map, const ReadLoad& load, std::uint64_t seed,
                         std::barrier<>& all_warm, std::atomic<std::uint64_t>& wrong) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, load.in_flight), "no pipeline");
  Reads reads(load, seed);
  get_each(pipeline, load.keys, load.warm_stride, reads.checks());
  all_warm.arrive_and_wait();
  std::uint64_t ns = 0;
  for (std::uint64_t done = 0; done < load.ops; done += kReadsTogether) {
    const auto requests = reads.draw(std::min<std::uint64_t>(kReadsTogether, load.ops - done));
    const base::Stopwatch watch;
    pipeline.run(requests, reads.checks());
    ns += watch.elapsed_ns();
  }
  wrong += reads.checks().wrong();
  return ns;
}

}  // namespace

std::string read_key(std::uint64_t number) { return fmt::format("user{:012}", number); }

void get_each(Pipeline& pipeline, std::uint64_t keys, std::uint64_t stride, Handler& handler) {
  if (stride == 0) return;
  std::vector<std::string> some;
  std::vector<Request> gets;
  for (std::uint64_t number = 0; number < keys;) {
    some.clear();
    gets.clear();
    for (; some.size() < kReadsTogether && number < keys; number += stride) {
      some.push_back(read_key(number));
    }
    for (const std::string& key : some) gets.push_back({.op = Op::get, .key = key});
    pipeline.run(gets, handler);
  }
}

void ReadLoad::declare(OptionRows& rows) {
  rows.number("--keys", keys, {100, 100'000'000}, "of the map");
  rows.number("--value-bytes", value_bytes, {0, 400}, "of each value");
  rows.number("--ops", ops, {1, 1'000'000'000}, "requests of each thread");
  rows.number("--scans", scan_percent, {0, 100}, "percent of them that scan");
  rows.number("--scan-items", scan_items, {1, 100'000}, "of each scan");
  rows.number("--threads", threads, {1, 256}, "that ask");
  rows.number("--in-flight", in_flight, {1, 256}, "requests of each thread");
  rows.number("--seed", seed, {}, "of the keys that are asked for");
}

void fill(const Map& map, const ReadLoad& load) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, 64), "no pipeline");
  const std::string value(load.value_bytes, 'v');
  ReadChecks checks(load);
  std::vector<std::string> keys(kReadsTogether);
  std::vector<Request> puts(kReadsTogether);
  for (std::uint64_t from = 0; from < load.keys; from += kReadsTogether) {
    const std::size_t count = std::min<std::uint64_t>(kReadsTogether, load.keys - from);
    for (std::size_t i = 0; i < count; ++i) {
      keys[i] = read_key(from + i);
      puts[i] = {.op = Op::put, .key = keys[i], .value = value};
    }
    pipeline.run(std::span(puts).first(count), checks);
  }
  if (checks.wrong() != 0) throw std::runtime_error("cannot fill the map");
}

double read(const Map& map, const ReadLoad& load, std::uint64_t round) {
  std::atomic<std::uint64_t> wrong{0};
  std::barrier all_warm(load.threads);
  std::vector<std::uint64_t> took(load.threads);
  std::vector<std::jthread> threads;
  for (std::uint32_t t = 0; t < load.threads; ++t) {
    const std::uint64_t seed = seed_of(load, round, t);
    threads.emplace_back([&, t, seed] { took[t] = read_alone(map, load, seed, all_warm, wrong); });
  }
  threads.clear();
  if (wrong != 0) throw std::runtime_error("answers are wrong");
  const auto longest = static_cast<double>(*std::ranges::max_element(took));
  return static_cast<double>(load.ops * load.threads) * 1e9 / longest;
}

base::Histogram latencies_of_gets(const Map& map, const ReadLoad& load, std::uint64_t round) {
  ReadLoad gets = load;
  gets.scan_percent = 0;
  Pipeline pipeline = value_or_throw(Pipeline::open(map, 1), "no pipeline");
  Reads reads(gets, seed_of(gets, round, 0));
  get_each(pipeline, gets.keys, gets.warm_stride, reads.checks());
  const auto requests = reads.draw(std::min<std::uint64_t>(kReadsTogether, gets.ops));
  base::Histogram latencies = one_at_a_time(pipeline, requests, reads.checks());
  if (reads.checks().wrong() != 0) throw std::runtime_error("answers are wrong");
  return latencies;
}

std::uint64_t read_by_turns(const Map& map, const ReadLoad& load, std::uint64_t round,
                            ClientTurns& turns) {
  Pipeline pipeline = value_or_throw(Pipeline::open(map, load.in_flight), "no pipeline");
  Reads reads(load, seed_of(load, round, 0));
  const std::uint64_t ops = std::min(load.ops, kCostBatches * load.in_flight);
  for (std::uint64_t done = 0; done < ops; done += load.in_flight) {
    const std::size_t count = std::min<std::uint64_t>(load.in_flight, ops - done);
    turns.run(pipeline, reads.draw(count), reads.checks());
  }
  if (reads.checks().wrong() != 0) throw std::runtime_error("answers are wrong");
  return ops;
}

}  // namespace espalier::bench
