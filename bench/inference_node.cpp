// SPDX-License-Identifier: Apache-2.0
#include "bench/inference_node.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bench/map_session.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {

void reduce_many_bags(const EmbeddingTable& table, const QuerySet& queries,
                      std::pair<std::uint64_t, std::uint64_t> share, std::uint32_t bags_of_request,
                      std::uint32_t in_flight, std::span<float> sums, base::Histogram& latencies) {
  constexpr std::uint64_t kTogether = 512;
  const std::uint32_t dimension = table.options().dimension;
  std::vector<ReduceRequest> requests;
  std::vector<std::uint32_t> offsets;
  for (std::uint64_t bag = share.first; bag < share.second;) {
    const base::Stopwatch watch;
    requests.clear();
    offsets.resize(kTogether * bags_of_request);
    std::span<std::uint32_t> left = offsets;
    for (; requests.size() < kTogether && bag < share.second;) {
      const std::uint64_t count = std::min<std::uint64_t>(bags_of_request, share.second - bag);
      const std::uint64_t first = queries.begin(bag);
      const std::span<std::uint32_t> of_request = left.first(count);
      left = left.subspan(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        of_request[i] = static_cast<std::uint32_t>(queries.begin(bag + i) - first);
      }
      ReduceRequest& request = requests.emplace_back();
      request.bags = {std::span(queries.ids).subspan(first, queries.ends[bag + count - 1] - first),
                      of_request};
      request.results = sums.subspan(bag * dimension, count * dimension);
      bag += count;
    }
    const auto done = table.reduce_many(requests, in_flight);
    if (!done) throw std::runtime_error("cannot reduce: " + message(done.error()));
    for (const ReduceRequest& request : requests) {
      if (request.error.error == Error{}) continue;
      throw std::runtime_error("cannot reduce: " + message(request.error));
    }
    latencies.record(watch.elapsed_ns());
  }
}

PointSample measure_noops(NodeTransport transport, std::uint64_t ops, std::uint32_t in_flight) {
  node::Config config = spinning_node_config();
  prepare(config, transport);
  const std::unique_ptr<node::Node> node = start_own_node(config);
  NoopClient client(address_of(*node, transport), {.in_flight = in_flight, .ops = ops});
  static_cast<void>(client.keep_in_flight(std::min<std::uint64_t>(ops, 1000)));
  PointSample sample;
  const base::Stopwatch all;
  if (in_flight == 1) {
    static_cast<void>(client.one_at_a_time(ops, sample.latencies));
  } else {
    static_cast<void>(client.keep_in_flight(ops));
  }
  sample.took(ops, static_cast<double>(all.elapsed_ns()) * 1e-9);
  sample.checksum = ops;
  return sample;
}

}  // namespace espalier::bench
