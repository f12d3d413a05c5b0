// SPDX-License-Identifier: Apache-2.0
// The requests of one thread, made before the clock starts and then streamed in order, as from a
// network card's ring: the bytes of keys and values lie in the same order, so that the benchmark
// adds no cache miss of its own.
//
// Windows. Requests are handed to a target in windows of kWindow; those of one window may run in
// any order, and a window ends before the next begins. The tail has windows of its own, for it is
// run apart. Requests are made so that the outcome of each (found or not, how many items) does not
// depend on the order inside its window:
//   - what is inserted in a window is first read in a later one, and by the same thread only;
//   - updates of one key in one window write the same value (with several threads: always);
//   - scans begin so low that the initial map alone fills them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/huge_memory.hpp"
#include "bench/key_set.hpp"
#include "bench/workload.hpp"
#include "espalier/types.hpp"

namespace espalier::bench {

inline constexpr std::uint64_t kWindow = 4096;

/// A request of one key; points to the caller's bytes.
Request request_of(Op op, std::string_view key, std::string_view value = {});

/// Requests and the bytes that they point to.
class RequestList {
 public:
  explicit RequestList(std::uint64_t capacity) : requests_(capacity) {}

  /// Adds a request, with copies of its key, high and value. Requires: size() < capacity.
  void add(const Request& request);
  /// Forgets all requests and keeps the memory.
  void clear();

  [[nodiscard]] std::uint64_t size() const { return requests_.size(); }
  [[nodiscard]] std::span<const Request> requests() const { return requests_.span(); }

 private:
  HugeVector<Request> requests_;
  HugeArena bytes_;
};

struct RequestPlan {
  Workload workload = Workload::c;
  Distribution distribution = Distribution::zipfian;
  Shares shares;
  std::uint32_t scan_items = 3;
  ValueLength values;
  std::uint32_t threads = 1;
  /// Of all threads together; the number of keys if the workload visits each once.
  std::uint64_t ops = 0;
  std::uint64_t tail_ops = 0;  ///< of all threads together, after `ops`: for the latency pass
  std::uint64_t seed = 1;
};

/// Makes the requests of one thread: its share of `ops`, then its share of `tail_ops`.
RequestList make_requests(const KeySet& keys, const RequestPlan& plan, std::uint32_t thread);

/// The share of one thread in `ops`.
std::uint64_t share_of(std::uint64_t ops, std::uint32_t threads, std::uint32_t thread);

/// Makes `list` the inserts of keys [first, first + count) in load order, with nothing else in it.
void fill_load_window(const KeySet& keys, std::uint64_t first, std::uint64_t count,
                      ValueLength values, RequestList& list);

}  // namespace espalier::bench
