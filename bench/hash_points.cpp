// SPDX-License-Identifier: Apache-2.0
#include "bench/hash_points.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu_clock.hpp"
#include "bench/fabric_ends.hpp"
#include "bench/hash_work.hpp"
#include "bench/map_session.hpp"
#include "bench/probe.hpp"
#include "espalier/hash_map.hpp"
#include "fabric/post_queue.hpp"

namespace espalier::bench {
namespace {

/// Memory for a pair, sampled from time to time.
class GrowthBytes {
 public:
  explicit GrowthBytes(std::uint64_t pairs)
      : from_(pairs / 64), every_(std::max(pairs / 4096, 1ul)) {}

  void look(const HashMap& map, std::uint64_t stored) {
    if (stored < from_ || stored % every_ != 0) return;
    const auto stats = value_or_throw(map.stats(), "cannot read the map's numbers");
    const double each = static_cast<double>(stats.memory_bytes) / static_cast<double>(stored);
    worst_ = std::max(worst_, each);
    sum_ += each;
    ++looks_;
  }
  [[nodiscard]] double worst() const { return worst_; }
  [[nodiscard]] double average() const { return looks_ == 0 ? 0 : sum_ / looks_; }

 private:
  const std::uint64_t from_;
  const std::uint64_t every_;
  double worst_ = 0;
  double sum_ = 0;
  double looks_ = 0;
};

/// The processor time of pieces of work, and how many took more than a millisecond.
struct Pieces {
  void took(std::uint64_t ns) {
    sum_ns += ns;
    longest_ns = std::max(longest_ns, ns);
    slow += ns > 1'000'000 ? 1 : 0;
  }
  std::uint64_t sum_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint64_t slow = 0;
};

/// About as long as a put, without memory accesses: what such a piece takes beyond its usual time
/// is due to the machine, whose hypervisor's time counts as this thread's.
std::uint64_t spin(std::uint64_t value) {
  for (int i = 0; i < 500; ++i) value = value * 0x9e3779b97f4a7c15u + 1;
  return value;
}

PointSample grow(const HashBenchOptions& options) {
  const HashPairs pairs(options.pairs, options.seed);
  Store store = value_or_throw(Store::open(), "cannot open a store");
  HashMap map = value_or_throw(store.create_hash_map("growth", {.versions = options.versions}),
                               "cannot make a hash map");
  PointSample sample;
  GrowthBytes bytes(pairs.count());
  Pieces puts;
  Pieces spins;
  volatile std::uint64_t spun = 0;
  const base::Stopwatch watch;
  for (std::uint64_t i = 0; i < pairs.count(); ++i) {
    const HashPairs::Key key = pairs.key(i);
    const HashPairs::Value value = pairs.value(i);
    const std::uint64_t before = base::thread_cpu_ns();
    const auto written =
        value_or_throw(map.put({key.data(), key.size()}, {value.data(), value.size()}), "put");
    const std::uint64_t took = base::thread_cpu_ns() - before;
    sample.latencies.record(took);
    puts.took(took);
    const std::uint64_t spin_began = base::thread_cpu_ns();
    spun = spin(spun);
    spins.took(base::thread_cpu_ns() - spin_began);
    sample.checksum += written.applied ? 1 : 0;
    bytes.look(map, i + 1);
  }
  sample.took(pairs.count(), static_cast<double>(watch.elapsed_ns()) * 1e-9);
  const double pair_bytes = kHashKeyBytes + kHashValueBytes;
  sample.numbers = {{"longest_put_cpu_us", static_cast<double>(puts.longest_ns) * 1e-3},
                    {"longest_spin_cpu_us", static_cast<double>(spins.longest_ns) * 1e-3},
                    {"puts_over_1ms", static_cast<double>(puts.slow)},
                    {"spins_over_1ms", static_cast<double>(spins.slow)},
                    {"put_cpu_s", static_cast<double>(puts.sum_ns) * 1e-9},
                    {"spin_cpu_s", static_cast<double>(spins.sum_ns) * 1e-9},
                    {"bytes_per_pair", bytes.average()},
                    {"bytes_per_pair_worst", bytes.worst()},
                    {"times_the_pair", bytes.average() / pair_bytes},
                    {"times_the_pair_worst", bytes.worst() / pair_bytes}};
  return sample;
}

constexpr std::uint32_t kAnswersTogether = 64;
constexpr std::uint32_t kAnswerBytes = 64;

PointSample write_answers(FabricServer& server, std::uint32_t signal_every, std::uint64_t answers) {
  constexpr std::uint32_t kDepth = 2 * kAnswersTogether;
  FabricClient client(server, kDepth);
  fabric::PostQueue posts(kDepth, signal_every);
  posts.attach(*client.pair);
  std::array<std::byte, kAnswerBytes> answer{};
  std::array<fabric::Completion, kDepth> completed;
  std::uint64_t added = 0;
  std::uint64_t ended = 0;
  const base::Stopwatch watch;
  while (ended < answers) {
    for (std::uint32_t i = 0; i < kAnswersTogether && added < answers && posts.has_room(); ++i) {
      const std::uint64_t at = server.region().at(added % 4096 * kAnswerBytes);
      const auto write = fabric::WorkRequest::write(0, answer, server.region().key, at);
      if (!posts.add(write, added)) throw std::runtime_error("no room for a post");
      ++added;
    }
    if (posts.waits()) posts.ring();
    const std::size_t count = client.queue->poll(completed);
    for (std::size_t i = 0; i < count; ++i) posts.completed(completed[i]);
    for (const fabric::PostQueue::Ended& end : posts.ends()) {
      if (end.how != fabric::PostEnd::done) throw std::runtime_error("a WRITE failed");
      ++ended;
    }
  }
  PointSample sample;
  sample.took(answers, static_cast<double>(watch.elapsed_ns()) * 1e-9);
  sample.checksum = ended;
  const fabric::PostQueue::Counts& counts = posts.counts();
  const auto each = [&](std::uint64_t of) {
    return static_cast<double>(of) / static_cast<double>(answers);
  };
  sample.numbers = {{"doorbells_per_answer", each(counts.doorbells)},
                    {"completions_per_answer", each(counts.completions)}};
  client.pair->close();
  posts.detach();
  return sample;
}

}  // namespace

std::vector<MeasuredPoint> growth_points(const HashBenchOptions& options) {
  MeasuredPoint point{.target = "embedded",
                      .workload = "growth",
                      .parameters = {{"keys", options.pairs},
                                     {"key_bytes", kHashKeyBytes},
                                     {"value_bytes", kHashValueBytes},
                                     {"versions", options.versions}},
                      .answers = "all stored",
                      .measure = pinned([&options] { return grow(options); })};
  return {std::move(point)};
}

std::vector<MeasuredPoint> signal_points(const HashBenchOptions& options) {
  const auto server = std::make_shared<FabricServer>(FabricKind::shm, std::uint64_t{2} << 20);
  std::vector<MeasuredPoint> points;
  for (std::uint32_t every = 1; every <= kAnswersTogether; every *= 2) {
    points.push_back({.target = "shm",
                      .workload = "answers",
                      .parameters = {{"signal_every", every},
                                     {"answers_together", kAnswersTogether},
                                     {"bytes", kAnswerBytes}},
                      .threads = 2,
                      .answers = "answers",
                      .measure = pinned([server, every, answers = options.ops] {
                        return write_answers(*server, every, answers);
                      })});
  }
  return points;
}

}  // namespace espalier::bench
