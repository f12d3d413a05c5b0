// SPDX-License-Identifier: Apache-2.0
#include "bench/doorbell_probe.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/random.hpp"
#include "bench/mix.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kApart = 128;  // two lines: the prefetcher fetches them in pairs
constexpr std::uint64_t kRingsListed = 1 << 16;

// What the n-th operation of a measurement publishes.
std::uint64_t value_of(std::uint64_t seed, std::uint64_t op) { return (seed + op) * kGolden; }

// What the threads of a measurement agree on: when it begins, when it is over.
class Race {
 public:
  Race(std::uint32_t threads, double seconds_max)
      : threads_(threads),
        ns_max_(static_cast<std::uint64_t>(seconds_max * 1e9)),
        crowded_(threads > base::usable_cores().size()) {}

  void begin() {
    if (arrived_.fetch_add(1) + 1 == threads_) {
      begin_ns_ = base::monotonic_ns();
      begun_.store(true);
    }
    while (!begun_.load()) {
      base::spin_pause();
      if (crowded_) std::this_thread::yield();
    }
  }
  [[nodiscard]] std::uint64_t begin_ns() const { return begin_ns_; }
  [[nodiscard]] bool crowded() const { return crowded_; }
  [[nodiscard]] bool given_up() const { return given_up_.load(std::memory_order_relaxed); }

  // Whether there is time left; for once in a while.
  bool look() {
    if (crowded_) std::this_thread::yield();
    if (base::monotonic_ns() - begin_ns_ > ns_max_) {
      given_up_.store(true, std::memory_order_relaxed);
    }
    return !given_up();
  }

 private:
  std::uint32_t threads_;
  std::uint64_t ns_max_;
  bool crowded_;
  std::uint64_t begin_ns_ = 0;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<bool> begun_{false};
  std::atomic<bool> given_up_{false};
};

// Waits in small steps for one thread. Where cores are shared, whoever is waited for may need this
// one; else looking at the clock seldom is enough.
class Patience {
 public:
  explicit Patience(Race& race) : race_(race), spins_per_look_(race.crowded() ? 32 : 1024) {}
  // Whether to go on waiting.
  bool wait() {
    base::spin_pause();
    return ++spins_ % spins_per_look_ != 0 || race_.look();
  }

 private:
  Race& race_;
  std::uint32_t spins_per_look_;
  std::uint32_t spins_ = 0;
};

struct alignas(kApart) Counter {
  std::atomic<std::uint64_t> count{0};
};

// Runs work(thread, race) on `threads` pinned threads; gives the time from when all were there to
// when the last had done.
DoorbellResult run_race(std::uint32_t threads, double seconds_max,
                        const std::function<void(std::uint32_t, Race&)>& work) {
  Race race(threads, seconds_max);
  std::vector<std::uint64_t> end_ns(threads);
  {
    std::vector<std::jthread> running;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        pin_worker(thread);
        race.begin();
        work(thread, race);
        end_ns[thread] = base::monotonic_ns();
      });
    }
  }
  DoorbellResult result;
  result.seconds = static_cast<double>(std::ranges::max(end_ns) - race.begin_ns()) * 1e-9;
  result.complete = !race.given_up();
  return result;
}

// Random rings, drawn before the clock starts; whoever needs more begins again.
std::vector<std::uint32_t> draw_rings(const DoorbellPlan& plan) {
  std::vector<std::uint32_t> rings(std::clamp<std::uint64_t>(plan.ops, 1, kRingsListed));
  base::Random random(plan.seed);
  for (std::uint32_t& ring : rings) ring = static_cast<std::uint32_t>(random.below(plan.rings));
  return rings;
}

std::vector<std::uint32_t> starts_of(const RingMemory& memory) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t ring = 0; ring < memory.rings(); ++ring) starts.push_back(memory.start(ring));
  return starts;
}

// The writer of `notify`. Returns when everything is published, or time is up.
void publish_ahead(const DoorbellPlan& plan, const RingMemory& memory,
                   const std::vector<std::uint32_t>& rings, const Counter& answered, Race& race,
                   base::Histogram& latencies) {
  std::vector<std::uint32_t> counts = starts_of(memory);
  Patience patience(race);
  const auto wait_for = [&](std::uint64_t count) {
    while (answered.count.load(std::memory_order_acquire) < count) {
      if (!patience.wait()) return false;
    }
    return true;
  };
  const auto publish = [&](std::uint64_t op) {
    const std::uint32_t ring = rings[op % rings.size()];
    memory.publish(ring, counts[ring]++, value_of(plan.seed, op));
  };
  for (std::uint64_t op = 0; op < plan.ops; ++op) {
    if (plan.window == 1) {
      const base::Stopwatch watch;
      publish(op);
      if (!wait_for(op + 1)) return;
      latencies.record(watch.elapsed_ns());
    } else {
      if (op >= plan.window && !wait_for(op - plan.window + 1)) return;
      publish(op);
    }
  }
}

// The reader of `notify` and `stream`: takes until it has all.
template <class Reader, class Emptied>
void take_all(Reader& reader, std::uint64_t ops, Race& race, Emptied&& emptied) {
  Patience patience(race);
  while (reader.taken() < ops) {
    if (reader.pass(emptied) == 0 && !patience.wait()) return;
  }
}

// A writer of `stream`.
void publish_stream(const RingMemory& memory, std::uint32_t ring, std::uint64_t ops,
                    std::uint64_t first_value, const Counter& taken, Race& race) {
  std::uint32_t count = memory.start(ring);
  std::uint64_t known = 0;  // how many of ours were taken, when we last looked
  Patience patience(race);
  for (std::uint64_t op = 0; op < ops; ++op) {
    while (op - known == kRingSlots) {
      known = taken.count.load(std::memory_order_acquire);
      if (op - known == kRingSlots && !patience.wait()) return;
    }
    memory.publish(ring, count++, value_of(first_value, op));
  }
}

}  // namespace

double DoorbellResult::ns_per_op() const {
  return ops == 0 ? 0 : seconds * 1e9 / static_cast<double>(ops);
}

double DoorbellResult::ops_per_s() const {
  return seconds <= 0 ? 0 : static_cast<double>(ops) / seconds;
}

DoorbellResult scan_empty(const DoorbellPlan& plan) {
  const RingMemory memory(plan.form.doorbell, plan.rings, plan.seed);
  const auto ignore = [](std::uint32_t, std::uint32_t) {};
  DoorbellResult result;
  with_reader(plan.form, memory, [&](auto& reader) {
    reader.pass(ignore);  // into the cache
    result = run_race(1, plan.seconds_max, [&](std::uint32_t, Race&) {
      for (std::uint64_t op = 0; op < plan.ops; ++op) reader.pass(ignore);
    });
    ESPALIER_ASSERT(reader.taken() == 0);
    for (std::uint32_t ring = 0; ring < plan.rings; ++ring) {
      memory.publish(ring, memory.start(ring), value_of(plan.seed, ring));
    }
    reader.pass(ignore);
    ESPALIER_ASSERT(reader.taken() == plan.rings);
    result.checksum = reader.checksum();
  });
  result.ops = plan.ops;
  return result;
}

DoorbellResult notify(const DoorbellPlan& plan) {
  const RingMemory memory(plan.form.doorbell, plan.rings, plan.seed);
  const std::vector<std::uint32_t> rings = draw_rings(plan);
  Counter answered;
  base::Histogram latencies;
  DoorbellResult result;
  with_reader(plan.form, memory, [&](auto& reader) {
    result = run_race(2, plan.seconds_max, [&](std::uint32_t thread, Race& race) {
      if (thread == 1) return publish_ahead(plan, memory, rings, answered, race, latencies);
      const auto answer = [&](std::uint32_t, std::uint32_t) {
        answered.count.store(reader.taken(), std::memory_order_release);
      };
      take_all(reader, plan.ops, race, answer);
    });
    result.ops = reader.taken();
    result.checksum = reader.checksum();
  });
  result.latencies = latencies;
  return result;
}

DoorbellResult stream(const DoorbellPlan& plan) {
  ESPALIER_ASSERT(plan.writers <= plan.rings);
  const RingMemory memory(plan.form.doorbell, plan.rings, plan.seed);
  const std::uint64_t each = plan.ops / plan.writers;
  std::deque<Counter> taken(plan.writers);
  DoorbellResult result;
  with_reader(plan.form, memory, [&](auto& reader) {
    const auto work = [&](std::uint32_t thread, Race& race) {
      if (thread > 0) {
        const std::uint32_t ring = thread - 1;
        return publish_stream(memory, ring, each, plan.seed + ring * each, taken[ring], race);
      }
      const auto tell = [&](std::uint32_t ring, std::uint32_t count) {
        taken[ring].count.store(count - memory.start(ring), std::memory_order_release);
      };
      take_all(reader, each * plan.writers, race, tell);
    };
    result = run_race(1 + plan.writers, plan.seconds_max, work);
    result.ops = reader.taken();
    result.checksum = reader.checksum();
  });
  return result;
}

DoorbellResult announce_unread(const DoorbellPlan& plan, bool slots) {
  ESPALIER_ASSERT(plan.writers <= plan.rings);
  const RingMemory memory(plan.form.doorbell, plan.rings, plan.seed);
  const std::uint64_t each = plan.ops / plan.writers;
  const auto work = [&](std::uint32_t ring, Race&) {
    std::uint32_t count = memory.start(ring);
    for (std::uint64_t op = 0; op < each; ++op, ++count) {
      if (slots) {
        memory.publish(ring, count, value_of(plan.seed, op));
      } else {
        memory.announce(ring, count + 1);
      }
    }
  };
  DoorbellResult result = run_race(plan.writers, plan.seconds_max, work);
  result.ops = each * plan.writers;
  // What the writers left behind, read once all of them are done.
  for (std::uint32_t ring = 0; ring < plan.writers; ++ring) {
    if (slots) {
      const auto last = static_cast<std::uint32_t>(memory.start(ring) + each - 1);
      result.checksum += base::load_shared<std::uint64_t>(memory.slot(ring, last));
    } else if (memory.stride() != 0) {
      result.checksum += base::load_shared<std::uint32_t>(memory.tail(ring)) - memory.start(ring);
    } else {
      result.checksum += base::load_shared<std::uint64_t>(memory.bits(ring)) >> ring % 64 & 1;
    }
  }
  return result;
}

}  // namespace espalier::bench
