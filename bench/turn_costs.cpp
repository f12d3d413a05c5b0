// SPDX-License-Identifier: Apache-2.0
#include "bench/turn_costs.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>

#include "base/cpu_clock.hpp"
#include "bench/median.hpp"

namespace espalier::bench {
namespace {

// Time for which the other threads have the client's core; longer if the wake-up is late.
constexpr timespec kPause{0, 50'000};

/// Passes answers on, and counts them.
class Counting final : public Handler {
 public:
  explicit Counting(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    ++taken_;
    to_.done(completion);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    ++taken_;
    return to_.items(tag, items);
  }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }

 private:
  Handler& to_;
  std::uint64_t taken_ = 0;
};

}  // namespace

double cpu_clock_ns() {
  static const double measured = [] {
    std::vector<double> between(1001);
    for (double& each : between) {
      const std::uint64_t before = base::thread_cpu_ns();
      each = static_cast<double>(base::thread_cpu_ns() - before);
    }
    return median_of(std::move(between));
  }();
  return measured;
}

// --- workers -------------------------------------------------------------------------------------

WorkerMeter::WorkerMeter(const node::Node& node) : node_(node) {
  for (const auto& worker : node_.workers()) worker->set_metered(true);
  before_ = busy();
}

WorkerMeter::~WorkerMeter() {
  for (const auto& worker : node_.workers()) worker->set_metered(false);
}

WorkerMeter::Busy WorkerMeter::busy() const {
  Busy all;
  for (const auto& worker : node_.workers()) {
    all.turns += worker->counts().busy_turns.load(std::memory_order_relaxed);
    all.cpu_ns += worker->counts().busy_cpu_ns.load(std::memory_order_relaxed);
  }
  return all;
}

double WorkerMeter::cpu_ns() const {
  const Busy now = busy();
  const auto turns = static_cast<double>(now.turns - before_.turns);
  return std::max(0.0, static_cast<double>(now.cpu_ns - before_.cpu_ns) - turns * cpu_clock_ns());
}

// --- client --------------------------------------------------------------------------------------

void ClientTurns::run(Pipeline& pipeline, std::span<const Request> batch, Handler& handler) {
  Counting counting(handler);
  const double clock_ns = cpu_clock_ns();
  const auto metered = [&](const auto& call, const auto& counts) {
    const std::uint64_t began_ns = base::thread_cpu_ns();
    call();
    const auto took_ns = static_cast<double>(base::thread_cpu_ns() - began_ns);
    if (counts()) cpu_ns_ += std::max(0.0, took_ns - clock_ns);
  };
  metered([&] { pipeline.submit(batch, counting); }, [] { return true; });
  for (std::size_t left = batch.size(); left != 0;) {
    ::ppoll(nullptr, 0, &kPause, nullptr);
    const std::uint64_t before = counting.taken();
    metered([&] { left = pipeline.advance(); },
            [&] { return reads_alone_ || counting.taken() != before; });
  }
}

// --- the model -----------------------------------------------------------------------------------

double model_ops_per_s(std::span<const Side> sides) {
  double longest_ns = 0;
  for (const Side& side : sides) {
    longest_ns = std::max(longest_ns, side.cpu_ns_per_op * side.slowness / side.cores);
  }
  return longest_ns == 0 ? 0 : 1e9 / longest_ns;
}

}  // namespace espalier::bench
