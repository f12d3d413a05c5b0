// SPDX-License-Identifier: Apache-2.0
// For tests: one of several concurrent clients of a hash map. It records its requests and answers
// for the checkers of histories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/hash_map.hpp"
#include "tests/support/history.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// One thread's calls, and their history.
class HashClient {
 public:
  HashClient(HashMap map, std::uint32_t thread, std::uint64_t seed, std::uint64_t keys,
             Clock& clock)
      : map_(std::move(map)), thread_(thread), random_(seed + thread), keys_(keys), clock_(clock) {}

  /// Makes so many calls, or stops at the first failure.
  void work(std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls && unexpected.empty(); ++i) step();
  }

  std::vector<Operation> seen;
  std::string unexpected;  ///< an error of a call; empty: none had one

 private:
  void step() {
    Operation made;
    made.thread = thread_;
    made.key = "key" + std::to_string(random_.below(keys_));
    // No value is written twice, so a search can distinguish them.
    made.value = std::to_string(thread_) + "." + std::to_string(count_++);
    if (random_.one_in(10)) made.value->append(2000, 'x');
    const std::uint64_t what = random_.below(8);
    made.invoked = clock_.tick();
    if (what < 3) {
      get(made);
    } else if (what == 7) {
      modify(made);
    } else {
      write(made, what);
    }
    made.responded = clock_.tick();
    if (unexpected.empty()) seen.push_back(std::move(made));
  }
  void get(Operation& made) {
    made.kind = Kind::get;
    made.value.reset();
    const auto found = map_.get(made.key);
    if (!found) return fail_with(found.error());
    if (*found) made.items.push_back({made.key, (*found)->value, (*found)->version});
  }
  void write(Operation& made, std::uint64_t what) {
    Result<Written> written = fail(Code::unsupported);
    if (what == 3) {
      made.kind = Kind::insert;
      written = map_.insert(made.key, *made.value);
    } else if (what == 4) {
      made.kind = Kind::update;
      written = map_.update(made.key, *made.value);
    } else if (what == 5) {
      made.kind = Kind::erase;
      made.value.reset();
      written = map_.erase(made.key);
    } else {
      made.kind = Kind::put;
      written = map_.put(made.key, *made.value);
    }
    take(made, written);
  }
  void modify(Operation& made) {
    made.kind = Kind::modify;
    const auto written = map_.modify(made.key, [&](std::optional<std::string_view> now) {
      made.seen.reset();
      if (now) made.seen.emplace(*now);
      return made.value;
    });
    take(made, written);
  }
  void fail_with(const Error& error) { unexpected = message(error); }
  void take(Operation& made, const Result<Written>& written) {
    if (!written) return fail_with(written.error());
    made.applied = written->applied;
    made.existed = written->existed;
    made.version = written->version;
  }

  HashMap map_;
  const std::uint32_t thread_;
  Random random_;
  const std::uint64_t keys_;
  Clock& clock_;
  std::uint64_t count_ = 0;
};

}  // namespace espalier::test
