// SPDX-License-Identifier: Apache-2.0
#include "node/numbers_format.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "engine/payload_reader.hpp"
#include "engine/registry.hpp"
#include "wire/node_numbers.hpp"

namespace espalier::node {
namespace {

constexpr double kUsPerSecond = 1e6;
constexpr std::string_view kNodeWord = "node";  // the owner of the samples
static_assert(wire::kDurationBuckets ==
              std::tuple_size_v<decltype(offload::DurationCounts::buckets)>);

using Header = wire::NodeNumbersHeader;

Header header_of(const NodeNumbers& numbers) {
  Header header{};
  constexpr double kSecondsMax = 1e12;  // beyond this it is no time of a process
  const double seconds = std::clamp(numbers.start_time_seconds, 0.0, kSecondsMax);
  header.started_us = static_cast<std::uint64_t>(seconds * kUsPerSecond);
  header.uptime_ns = numbers.uptime_ns;
  header.failure_bytes = static_cast<std::uint32_t>(numbers.log_failure.size());
  header.samples = static_cast<std::uint32_t>(numbers.samples.size());
  header.version_bytes = static_cast<std::uint32_t>(numbers.version.size());
  header.offloads = static_cast<std::uint32_t>(
      std::ranges::count_if(numbers.offloads, [](const auto& o) { return o.requests != 0; }));
  header.workers = static_cast<std::uint32_t>(numbers.workers.size());
  header.holders = static_cast<std::uint32_t>(numbers.holders.size());
  header.principals = static_cast<std::uint32_t>(numbers.principals.size());
  return header;
}

wire::OffloadNumbers to_wire(const OffloadNumbers& offload) {
  wire::OffloadNumbers bytes{};
  bytes.offload = static_cast<std::uint64_t>(offload.id);
  bytes.requests = offload.requests;
  bytes.duration_sum_ns = offload.durations.sum_ns;
  std::ranges::copy(offload.durations.buckets, bytes.durations);
  return bytes;
}

OffloadNumbers from_wire(const wire::OffloadNumbers& bytes) {
  OffloadNumbers offload;
  const auto id = static_cast<std::uint8_t>(std::min<std::uint64_t>(bytes.offload, 255));
  const offload::Offload* const known = offload::find_offload(id);
  offload.id = static_cast<wire::OffloadId>(id);
  offload.name = known != nullptr ? known->name : "unknown";
  offload.requests = bytes.requests;
  offload.durations.sum_ns = bytes.duration_sum_ns;
  std::ranges::copy(bytes.durations, offload.durations.buckets.begin());
  return offload;
}

void append(std::string& bytes, const memory::Holder& holder) {
  wire::HolderEntry entry{};
  entry.since = holder.since;
  entry.bytes = holder.bytes;
  entry.kind = static_cast<std::uint32_t>(holder.kind);
  entry.owner_bytes = static_cast<std::uint32_t>(holder.owner.size());
  entry.map_bytes = static_cast<std::uint32_t>(holder.object.size());
  bytes.append(base::bytes_of(entry));
  bytes += holder.owner;
  bytes += holder.object;
}

memory::Holder take_holder(offload::PayloadReader& reader) {
  const auto entry = reader.take<wire::HolderEntry>();
  memory::Holder holder;
  if (entry.kind <= static_cast<std::uint32_t>(memory::Holder::Kind::snapshot)) {
    holder.kind = static_cast<memory::Holder::Kind>(entry.kind);
  }
  holder.owner = std::string(reader.text(entry.owner_bytes));
  holder.object = std::string(reader.text(entry.map_bytes));
  holder.since = entry.since;
  holder.bytes = entry.bytes;
  return holder;
}

}  // namespace

std::string encode(const NodeNumbers& numbers) {
  std::string bytes;
  bytes.append(base::bytes_of(header_of(numbers)));
  bytes += numbers.version;
  bytes += numbers.log_failure;
  for (const wire::Sample& sample : numbers.samples) wire::append(bytes, sample);
  for (const OffloadNumbers& offload : numbers.offloads) {
    if (offload.requests != 0) bytes.append(base::bytes_of(to_wire(offload)));
  }
  for (const WorkerNumbers& worker : numbers.workers) {
    bytes.append(base::bytes_of(
        wire::WorkerNumbers{worker.in_flight, worker.connections, worker.sleeps, worker.wake_ups}));
  }
  for (const memory::Holder& holder : numbers.holders) append(bytes, holder);
  for (const PrincipalNumbers& principal : numbers.principals) {
    const auto name_bytes = static_cast<std::uint32_t>(principal.name.size());
    bytes.append(base::bytes_of(wire::PrincipalEntry{principal.connections, principal.ring_bytes,
                                                     principal.snapshots, name_bytes, 0}));
    bytes += principal.name;
  }
  return bytes;
}

// Counts are trusted only as far as there are bytes: the input may be anything.
Result<NodeNumbers> decode(std::string_view bytes) {
  offload::PayloadReader reader(bytes);
  const auto header = reader.take<Header>();
  NodeNumbers numbers;
  numbers.start_time_seconds = static_cast<double>(header.started_us) / kUsPerSecond;
  numbers.uptime_ns = header.uptime_ns;
  numbers.version = reader.text(header.version_bytes);
  numbers.log_failure = reader.text(header.failure_bytes);
  for (std::uint32_t i = 0; i < header.samples && reader.good(); ++i) {
    auto sample = wire::take_sample(reader, kNodeWord);
    if (!sample) return fail(Code::corrupt);
    if (wire::is_known(sample->type)) numbers.samples.push_back(*std::move(sample));
  }
  for (std::uint32_t i = 0; i < header.offloads && reader.good(); ++i) {
    numbers.offloads.push_back(from_wire(reader.take<wire::OffloadNumbers>()));
  }
  for (std::uint32_t i = 0; i < header.workers && reader.good(); ++i) {
    const auto worker = reader.take<wire::WorkerNumbers>();
    numbers.workers.push_back(
        {worker.in_flight, worker.connections, worker.sleeps, worker.wake_ups});
  }
  for (std::uint32_t i = 0; i < header.holders && reader.good(); ++i) {
    numbers.holders.push_back(take_holder(reader));
  }
  for (std::uint32_t i = 0; i < header.principals && reader.good(); ++i) {
    const auto entry = reader.take<wire::PrincipalEntry>();
    numbers.principals.push_back({std::string(reader.text(entry.name_bytes)), entry.connections,
                                  entry.ring_bytes, entry.snapshots});
  }
  if (!reader.complete()) return fail(Code::corrupt);
  return numbers;
}

}  // namespace espalier::node
