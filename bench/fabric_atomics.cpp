// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_atomics.hpp"

#include <array>
#include <barrier>
#include <exception>
#include <functional>
#include <stdexcept>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kThreads = 2;

/// A thread's work once all are ready: adds, and returns the sum of the values found.
using Adder = std::function<std::uint64_t()>;
/// Makes it, on the thread that will run it.
using MakeAdder = std::function<Adder()>;

std::uint64_t place_of_word(const FabricServer& server) {
  constexpr std::uint64_t kLineBytes = 64;
  return server.region().bytes / 2 / kLineBytes *
         kLineBytes;  // READs of others have the first half
}

PointSample run_threads(FabricServer& server, std::uint64_t ops_per_thread, const MakeAdder& make) {
  const auto word = base::shared<std::uint64_t>(server.at(place_of_word(server)));
  const std::uint64_t first = word.load();
  std::barrier<> ready(kThreads + 1);
  std::array<std::uint64_t, kThreads> sums{};
  std::array<std::exception_ptr, kThreads> errors;
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      pin_worker(i);
      Adder add;
      try {
        add = make();
      } catch (...) {
        errors[i] = std::current_exception();
      }
      ready.arrive_and_wait();
      try {
        if (add) sums[i] = add();
      } catch (...) {
        errors[i] = std::current_exception();
      }
      ready.arrive_and_wait();
    });
  }
  ready.arrive_and_wait();
  const double cpu_before = server.cpu_seconds();
  const base::Stopwatch watch;
  ready.arrive_and_wait();
  const double seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
  const double cpu = server.cpu_seconds() - cpu_before;
  threads.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  const std::uint64_t ops = kThreads * ops_per_thread;
  if (word.load() - first != ops) throw std::runtime_error("additions were lost or repeated");
  PointSample sample;
  for (const std::uint64_t sum : sums) sample.checksum += sum;
  sample.checksum -= ops * first;
  sample.took(ops, seconds);
  sample.numbers = {{"target_cpu", cpu / seconds}};
  return sample;
}

std::uint64_t add_by_posting(const FabricServer& server, FabricClient& client, std::uint64_t ops,
                             std::uint32_t batch) {
  using fabric::WorkRequest;
  const fabric::RemoteRegion& region = server.region();
  const std::uint64_t remote = region.at(place_of_word(server));
  std::vector<WorkRequest> requests(batch);
  std::vector<fabric::Completion> ends(batch);
  std::uint64_t sum = 0;
  std::uint64_t done = 0;
  for (std::uint64_t posted = 0; done < ops;) {
    const std::uint64_t count = std::min<std::uint64_t>(batch, ops - posted);
    for (std::uint64_t i = 0; i < count; ++i) {
      requests[i] = WorkRequest::fetch_add(posted + i, region.key, remote, 1);
    }
    posted += client.pair->post(std::span(requests).first(count)).taken;
    while (done < posted) {
      const std::size_t completed = client.queue->poll(ends);
      for (std::size_t i = 0; i < completed; ++i) {
        if (ends[i].status != fabric::Status::success || ends[i].work_id != done++) {
          throw std::runtime_error("FETCH_ADD failed");
        }
        sum += ends[i].old_value;
      }
    }
  }
  return sum;
}

}  // namespace

PointSample add_locally(FabricServer& server, std::uint64_t ops_per_thread) {
  const auto word = base::shared<std::uint64_t>(server.at(place_of_word(server)));
  return run_threads(server, ops_per_thread, [&]() -> Adder {
    return [&] {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < ops_per_thread; ++i) sum += word.fetch_add(1);
      return sum;
    };
  });
}

PointSample add_over_fabric(FabricServer& server, std::uint64_t ops_per_thread,
                            std::uint32_t batch) {
  return run_threads(server, ops_per_thread, [&]() -> Adder {
    auto client = std::make_shared<FabricClient>(server, 2 * batch);
    // The first request maps the region; it adds nothing.
    const auto warm_up = fabric::WorkRequest::fetch_add(
        0, server.region().key, server.region().at(place_of_word(server)), 0);
    static_cast<void>(client->pair->post({&warm_up, 1}));
    fabric::Completion end;
    while (client->queue->poll({&end, 1}) == 0) {
    }
    return [&, client] { return add_by_posting(server, *client, ops_per_thread, batch); };
  });
}

}  // namespace espalier::bench
