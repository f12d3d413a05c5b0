// SPDX-License-Identifier: Apache-2.0
#include "bench/placement_points.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "base/clock.hpp"
#include "base/prefetch.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "bench/placement_model.hpp"
#include "bench/probe.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/queue_pair.hpp"
#include "fabric/shm/endpoint.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {
namespace {

/// A peer, and the memory that it writes: both on this thread.
class WrittenMemory {
 public:
  explicit WrittenMemory(const PlacementSetting& setting)
      : tables_{value_or_throw(fabric::RegionTable::create(), "keys"),
                value_or_throw(fabric::RegionTable::create(), "keys")},
        peer_(value_or_throw(fabric::shm::open(tables_[0]), "no endpoint")),
        owner_(value_or_throw(fabric::shm::open(tables_[1]), "no endpoint")),
        queue_(*peer_, 16),
        owner_queue_(*owner_, 16),
        memory_(value_or_throw(memory::SharedMemory::create("espalier-bench", setting.region_bytes),
                               "no memory")) {
    tables_[1]->set_placement_policy(setting.policy);
    region_ = value_or_throw(
        tables_[1]->offer({memory_.at(0), memory_.bytes(), memory_.descriptor(), 0, setting.kind},
                          fabric::RemoteRights::write),
        "no region");
    connect();
  }

  void write(std::uint64_t offset, std::span<const std::byte> record) {
    const auto& to = region_.remote();
    post(fabric::WorkRequest::write(0, record, to.key, to.at(offset)));
  }
  /// Counted by the peer, which makes these stores.
  [[nodiscard]] fabric::PlacedCounts placed() const { return tables_[0]->placed().counts(); }
  [[nodiscard]] std::uint64_t hash() const {
    return bytes_hash({reinterpret_cast<const char*>(memory_.at(0)), memory_.bytes()});
  }

 private:
  void connect() {
    const std::string path = (folder_ / "socket").string();
    fabric::QueuePairOptions options;
    options.sends = &queue_;
    fabric::QueuePairOptions owners = options;
    owners.sends = &owner_queue_;
    if (!owner_->listen(path)) throw std::runtime_error("cannot listen");
    pair_ = value_or_throw(peer_->connect(path, options, {}), "no connection");
    while (pair_->state() == fabric::QueuePair::State::connecting) {
      turn();
      if (const auto request = owner_->next_request()) {
        owner_pair_ = value_or_throw(owner_->accept(*request, owners, {}), "no connection");
      }
    }
  }
  void turn() {
    peer_->progress();
    owner_->progress();
  }
  void post(const fabric::WorkRequest& request) {
    if (pair_->post(request).taken != 1) throw std::runtime_error("a WRITE is not taken");
    std::array<fabric::Completion, 1> ended;
    while (queue_.poll(ended) == 0) turn();
    if (ended[0].status != fabric::Status::success) throw std::runtime_error("a WRITE fails");
  }

  base::TemporaryFolder folder_;
  std::array<std::shared_ptr<fabric::RegionTable>, 2> tables_;
  std::unique_ptr<fabric::Endpoint> peer_;
  std::unique_ptr<fabric::Endpoint> owner_;
  fabric::CompletionQueue queue_;
  fabric::CompletionQueue owner_queue_;
  memory::SharedMemory memory_;
  fabric::Registration region_;
  std::unique_ptr<fabric::QueuePair> owner_pair_;
  std::unique_ptr<fabric::QueuePair> pair_;
};

/// The places of records, in order.
class RecordPlaces {
 public:
  explicit RecordPlaces(const PlacementSetting& setting)
      : setting_(setting), random_(setting.seed) {}
  std::uint64_t next() {
    const std::uint64_t records = setting_.region_bytes / setting_.record_bytes;
    const std::uint64_t number = setting_.sequential ? count_++ % records : random_.below(records);
    return number * setting_.record_bytes;
  }

 private:
  const PlacementSetting& setting_;
  base::Random random_;
  std::uint64_t count_ = 0;
};

/// Stores a record in the model.
void store_in_model(const PlacementSetting& setting, ModelledCache& cache, std::uint64_t offset) {
  const bool past_cache = placement_of(setting.kind, setting.policy).past_cache;
  for (std::uint64_t at = offset; at < offset + setting.record_bytes; at += base::kLineBytes) {
    past_cache ? cache.store_past(at / base::kLineBytes) : cache.store_line(at / base::kLineBytes);
  }
}

void add_numbers(const PlacementSetting& setting, const fabric::PlacedCounts& placed,
                 const ModelledTraffic& before, const ModelledTraffic& after, PointSample& sample) {
  const auto ops = static_cast<double>(setting.ops);
  const double bytes = ops * setting.record_bytes;
  const auto written = static_cast<double>(after.written_bytes - before.written_bytes);
  const auto read = static_cast<double>(after.read_bytes - before.read_bytes);
  const auto add = [&](const char* key, double value) { sample.numbers.emplace_back(key, value); };
  add("granules_per_op", static_cast<double>(placed.granules) / ops);
  add("cached_lines_per_op", static_cast<double>(placed.cached_lines) / ops);
  add("write_amplification", placed.write_amplification());
  add("model_written_bytes_per_op", written / ops);
  add("model_read_bytes_per_op", read / ops);
  add("model_write_amplification", written / bytes);
  add("model_write_gb_per_s", kModelledArrivalGb * written / bytes);
  add("model_read_gb_per_s", kModelledArrivalGb * read / bytes);
}

PointSample run_placement(const PlacementSetting& setting) {
  WrittenMemory memory(setting);
  ModelledMemory modelled(setting.kind);
  ModelledCache cache(modelled, setting.cache_bytes, setting.seed);
  RecordPlaces places(setting);
  base::Random random(setting.seed);
  std::vector<std::byte> record(setting.record_bytes);
  // After so many stores a cache with random eviction is practically full of its region.
  const std::uint64_t full =
      4 * std::min(setting.cache_bytes, setting.region_bytes) / setting.record_bytes;
  for (std::uint64_t i = 0; i < full; ++i) store_in_model(setting, cache, places.next());
  random.fill(record);
  memory.write(places.next(), record);  // from here on it is mapped
  const fabric::PlacedCounts placed_before = memory.placed();
  const ModelledTraffic before = modelled.traffic();
  PointSample sample;
  std::uint64_t spent_ns = 0;
  for (std::uint64_t i = 0; i < setting.ops; ++i) {
    random.fill(record);
    const std::uint64_t offset = places.next();
    const base::Stopwatch watch;
    memory.write(offset, record);
    const std::uint64_t took_ns = watch.elapsed_ns();
    sample.latencies.record(took_ns);
    spent_ns += took_ns;
    store_in_model(setting, cache, offset);
  }
  fabric::PlacedCounts placed = memory.placed();
  placed -= placed_before;
  add_numbers(setting, placed, before, modelled.traffic(), sample);
  sample.took(setting.ops, static_cast<double>(spent_ns) / 1e9);
  sample.checksum = memory.hash();
  return sample;
}

}  // namespace

std::string_view name(fabric::MemoryKind kind) {
  return kind == fabric::MemoryKind::persistent ? "persistent" : "volatile";
}

PointSample measure_placement(const PlacementSetting& setting) {
  PointSample sample;
  run_pinned([&] { sample = run_placement(setting); });
  return sample;
}

}  // namespace espalier::bench
