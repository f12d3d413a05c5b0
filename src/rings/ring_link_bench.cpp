// SPDX-License-Identifier: Apache-2.0
// What a link costs its thread for what it carries, without what carries it: a pair that takes what
// is posted, as a transport does, and ends all of it when it is next asked.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/sim/world.hpp"
#include "rings/ring_link.hpp"

namespace espalier::rings {
namespace {

class EndingPair final : public fabric::QueuePair {
 public:
  EndingPair(const fabric::QueuePairOptions& options, const fabric::Properties& properties)
      : QueuePair(1, options, properties), begun_(options.send_depth) {
    become_connected({});
  }
  std::size_t begin(std::span<const fabric::WorkRequest> requests) override {
    for (const fabric::WorkRequest& request : requests) begun_[count_++] = request;
    return requests.size();
  }
  void close() override { enter_error_state(fabric::Status::success); }
  void end_all() {
    for (std::size_t i = 0; i < count_; ++i) complete(begun_[i], fabric::Status::success);
    count_ = 0;
  }

 private:
  std::vector<fabric::WorkRequest> begun_;
  std::size_t count_ = 0;
};

/// The node's end of a connection. In each turn so many of its response rings have an answer of one
/// slot, and a request was read.
void answers(benchmark::State& state) {
  const auto rings = static_cast<std::uint32_t>(state.range(0));
  constexpr wire::ConnectionLayout kLayout{512, 1024, 16};
  fabric::sim::World world(1);
  const auto endpoint = world.add_node("n");
  fabric::CompletionQueue completions(*endpoint, 1024);
  fabric::QueuePairOptions options;
  options.sends = &completions;
  EndingPair pair(options, endpoint->properties());
  std::vector<std::uint64_t> words(kLayout.bytes() / sizeof(std::uint64_t));
  auto* const memory = reinterpret_cast<std::byte*>(words.data());
  RingLink link(RingLink::Side::node, memory, kLayout);
  link.attach(pair, {wire::LinkWay::write, 1, 0});
  std::byte* const request_credit = memory + offsetof(wire::ConnectionPage, request_credit);
  std::uint64_t turn = 0;
  for (auto _ : state) {
    const std::uint64_t slot = turn++ % kLayout.response_slots;
    for (std::uint32_t ring = 0; ring < rings; ++ring) {
      std::byte* const at = memory + kLayout.responses(ring) + slot * wire::kRingSlotBytes;
      base::store_shared(at, wire::sequence_of(turn - 1), std::memory_order_release);
    }
    base::store_shared(request_credit, turn, std::memory_order_release);
    link.mirror();
    pair.end_all();
    fabric::Completion batch[64];
    for (std::size_t i = 0, count = completions.poll(batch); i < count; ++i) {
      link.completed(batch[i]);
    }
  }
  state.SetItemsProcessed(state.iterations() * rings);
}
BENCHMARK(answers)->Arg(1)->Arg(4)->Arg(16);

}  // namespace
}  // namespace espalier::rings

BENCHMARK_MAIN();
