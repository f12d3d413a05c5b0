// SPDX-License-Identifier: Apache-2.0
// `espalier-bench rings --experiment doorbell`: the cost of polling for new requests while there
// are none: at the doorbells, as a worker with many rings does, and at the next line of each ring,
// as one with few does.
//
// Rings begin at random lines: if all began at line 0, the next lines would share one set of the
// cache, and polling them would seem slower than it is.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/huge_memory.hpp"
#include "bench/map_session.hpp"
#include "bench/point_run.hpp"
#include "bench/probe.hpp"
#include "bench/run_rings.hpp"
#include "rings/doorbells.hpp"
#include "wire/ring.hpp"

namespace espalier::bench {
namespace {

/// The node's own doorbells.
class DoorbellRow {
 public:
  DoorbellRow(std::uint32_t rings, std::uint64_t)
      : doorbells_(value_or_throw(rings::Doorbells::reserve(rings), "doorbells")) {
    for (std::uint32_t ring = 0; ring < rings; ++ring) {
      places_.push_back(value_or_throw(doorbells_.open(0), "doorbells").place);
    }
  }
  /// How many have new requests.
  std::uint64_t look() { return doorbells_.scan().size(); }
  void announce(std::uint32_t ring) { doorbells_.ring(places_[ring], 1); }

 private:
  rings::Doorbells doorbells_;
  std::vector<std::uint32_t> places_;
};

/// No doorbells, but the rings themselves.
class NextLines {
 public:
  NextLines(std::uint32_t rings, std::uint64_t seed)
      : memory_(std::size_t{rings} * kLines * wire::kRingSlotBytes), next_(rings) {
    std::memset(memory_.data(), 0, memory_.bytes());  // no page is taken while the clock runs
    base::Random random(seed);
    for (auto& next : next_) next = static_cast<std::uint32_t>(random.below(kLines));
  }
  std::uint64_t look() {
    std::uint64_t found = 0;
    for (std::uint32_t ring = 0; ring < next_.size(); ++ring) {
      if (base::load_shared<std::uint32_t>(at(ring)) == kCome) [[unlikely]]
        ++found;
    }
    return found;
  }
  void announce(std::uint32_t ring) { base::store_shared(at(ring), kCome); }

 private:
  static constexpr std::uint32_t kLines = 256;
  static constexpr std::uint32_t kCome = 1;
  [[nodiscard]] std::byte* at(std::uint32_t ring) const {
    return memory_.data() + (std::size_t{ring} * kLines + next_[ring]) * wire::kRingSlotBytes;
  }

  HugeBuffer memory_;
  std::vector<std::uint32_t> next_;
};

// The checksum is the number found: none before, and then all.
template <class Looker>
PointSample look_in_vain(std::uint32_t rings, std::uint64_t ops, std::uint64_t seed) {
  Looker looker(rings, seed);
  std::uint64_t found = looker.look();  // into the cache
  const base::Stopwatch watch;
  for (std::uint64_t op = 0; op < ops; ++op) found += looker.look();
  PointSample sample;
  sample.took(ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
  for (std::uint32_t ring = 0; ring < rings; ++ring) looker.announce(ring);
  sample.checksum = (found << 32) + looker.look();
  return sample;
}

template <class Looker>
MeasuredPoint empty_scan(std::string target, std::uint32_t rings, const RingsOptions& options) {
  return {.target = std::move(target),
          .workload = "empty-scan",
          .parameters = {{"rings", rings}},
          .answers = "each of " + std::to_string(rings),
          .measure = pinned([rings, ops = options.ops, seed = options.seed] {
            return look_in_vain<Looker>(rings, ops, seed);
          })};
}

}  // namespace

std::vector<MeasuredPoint> doorbell_points(const RingsOptions& options) {
  std::vector<MeasuredPoint> points;
  for (const std::uint32_t rings : options.rings) {
    points.push_back(empty_scan<DoorbellRow>("doorbells", rings, options));
    points.push_back(empty_scan<NextLines>("next-lines", rings, options));
  }
  return points;
}

}  // namespace espalier::bench
