// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"

namespace espalier::bench {
namespace {

using fabric::Opcode;
using fabric::WorkRequest;

constexpr std::uint32_t kLine = 64;
constexpr std::uint64_t kFabricWarmUpOps = 2000;

/// Places of the operations: the same for equal seeds. READs use the first half of the region,
/// which does not change; verbs that change memory use the second.
class Places {
 public:
  Places(const FabricLoop& loop, std::uint64_t region_bytes)
      : random_(loop.seed),
        step_((std::max(loop.bytes, 1u) + kLine - 1) / kLine * kLine),
        begin_(loop.opcode == Opcode::read ? 0 : changing(region_bytes)),
        count_(region_bytes / 2 / step_) {}
  std::uint64_t next() { return begin_ + random_.below(count_) * step_; }
  static std::uint64_t changing(std::uint64_t region_bytes) {
    return region_bytes / 2 / kLine * kLine;
  }

 private:
  base::Random random_;
  std::uint64_t step_;
  std::uint64_t begin_;
  std::uint64_t count_;
};

std::uint64_t first_word(const std::byte* at, std::uint32_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, std::min<std::size_t>(bytes, sizeof word));
  return word;
}

class Loop {
 public:
  Loop(FabricServer& server, const FabricLoop& loop)
      : loop_(loop),
        region_(server.region()),
        counter_(region_.at(Places::changing(region_.bytes))),
        client_(server, std::max(loop.in_flight, loop.batch) * 2),
        places_(loop, region_.bytes),
        slot_bytes_((std::max(loop.bytes, 1u) + kLine - 1) / kLine * kLine),
        slots_(std::max(loop.in_flight, loop.batch)),
        memory_(std::size_t{slot_bytes_} * slots_) {}

  std::uint64_t run(std::uint64_t ops) {
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::vector<WorkRequest> requests(loop_.batch);
    std::array<fabric::Completion, 64> ends;
    std::uint64_t checksum = 0;
    while (done < ops) {
      while (posted < ops && posted - done + loop_.batch <= slots_) {
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(loop_.batch, ops - posted));
        for (std::size_t i = 0; i < count; ++i) requests[i] = request(posted + i, ops);
        const auto some = std::span(requests).first(count);
        if (client_.pair->post(some).taken != count) throw std::runtime_error("queue is full");
        posted += count;
      }
      const std::size_t count = client_.queue->poll(ends);
      for (std::size_t i = 0; i < count; ++i) checksum += take(ends[i], done);
    }
    return checksum;
  }

  std::uint64_t run_timed(std::uint64_t ops, base::Histogram& latencies) {
    std::uint64_t checksum = 0;
    std::array<fabric::Completion, 1> ends;
    for (std::uint64_t i = 0; i < ops; ++i) {
      const base::Stopwatch watch;
      if (client_.pair->post(request(i, 1)).taken != 1) throw std::runtime_error("queue is full");
      while (client_.queue->poll(ends) == 0) {
      }
      latencies.record(watch.elapsed_ns());
      std::uint64_t done = i;
      checksum += take(ends[0], done);
    }
    return checksum;
  }

 private:
  WorkRequest request(std::uint64_t number, std::uint64_t ops) {
    const std::span slot(memory_.data() + number % slots_ * slot_bytes_, loop_.bytes);
    const std::uint64_t remote = region_.at(places_.next());
    WorkRequest made;
    switch (loop_.opcode) {
      case Opcode::read: made = WorkRequest::read(number, slot, region_.key, remote); break;
      case Opcode::write: made = WorkRequest::write(number, slot, region_.key, remote); break;
      case Opcode::write_immediate:
        made = WorkRequest::write_immediate(number, slot, region_.key, remote, 7);
        break;
      case Opcode::fetch_add:
        made = WorkRequest::fetch_add(number, region_.key, counter_, 1);
        break;
      case Opcode::compare_swap:
        made = WorkRequest::compare_swap(number, region_.key, counter_, 0, 0);
        break;
      default: made = WorkRequest::send(number, slot); break;
    }
    made.inlined = loop_.inlined;
    made.signalled = (number + 1) % loop_.signal_every == 0 || number + 1 == ops;
    return made;
  }

  /// Counts what a completion covers: itself, and the unsignalled operations before it.
  std::uint64_t take(const fabric::Completion& end, std::uint64_t& done) {
    if (end.status != fabric::Status::success) {
      throw std::runtime_error(
          fmt::format("{}: {}", fabric::name(end.opcode), fabric::name(end.status)));
    }
    done = end.work_id + 1;
    if (loop_.opcode == Opcode::read) {
      return first_word(memory_.data() + end.work_id % slots_ * slot_bytes_, loop_.bytes);
    }
    return loop_.opcode == Opcode::fetch_add ? end.old_value - first_value_ : 0;
  }

 public:
  /// Atomics count from the present value.
  void begin_counting(std::uint64_t value) { first_value_ = value; }

 private:
  FabricLoop loop_;
  fabric::RemoteRegion region_;
  std::uint64_t counter_;  // the address that atomics work on
  FabricClient client_;
  Places places_;
  std::uint32_t slot_bytes_;
  std::uint32_t slots_;
  std::vector<std::byte> memory_;
  std::uint64_t first_value_ = 0;
};

}  // namespace

PointSample run_loop(FabricServer& server, const FabricLoop& loop) {
  FabricLoop warm_up = loop;
  warm_up.seed = loop.seed + 1;
  Loop(server, warm_up).run(std::min(loop.ops, kFabricWarmUpOps));

  Loop running(server, loop);
  running.begin_counting(
      first_word(server.bytes() + Places::changing(server.region().bytes), sizeof(std::uint64_t)));
  PointSample sample;
  const double cpu_before = server.cpu_seconds();
  const base::Stopwatch watch;
  sample.checksum =
      loop.in_flight == 1 ? running.run_timed(loop.ops, sample.latencies) : running.run(loop.ops);
  sample.took(loop.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
  sample.numbers = {{"target_cpu", (server.cpu_seconds() - cpu_before) / sample.seconds},
                    {"bytes_per_s", static_cast<double>(loop.ops * loop.bytes) / sample.seconds}};
  return sample;
}

PointSample run_memcpy(const FabricServer& server, const FabricLoop& loop) {
  Places places(loop, server.region().bytes);
  std::vector<std::byte> memory(std::size_t{kLine} * std::max(loop.bytes, kLine));
  PointSample sample;
  const std::uint32_t slots = kLine;
  const base::Stopwatch watch;
  for (std::uint64_t i = 0; i < loop.ops; ++i) {
    std::byte* const to = memory.data() + i % slots * loop.bytes;
    std::memcpy(to, server.bytes() + places.next(), loop.bytes);
    asm volatile("" ::: "memory");
    // Like the other loop, which reads the results of operations some time later.
    if (i >= slots / 2) {
      sample.checksum += first_word(memory.data() + (i - slots / 2) % slots * loop.bytes, 8);
    }
  }
  const double seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  for (std::uint64_t i = loop.ops - std::min<std::uint64_t>(loop.ops, slots / 2); i < loop.ops;
       ++i) {
    sample.checksum += first_word(memory.data() + i % slots * loop.bytes, 8);
  }
  sample.took(loop.ops, seconds);
  sample.numbers = {{"target_cpu", 0},
                    {"bytes_per_s", static_cast<double>(loop.ops * loop.bytes) / seconds}};
  return sample;
}

}  // namespace espalier::bench
