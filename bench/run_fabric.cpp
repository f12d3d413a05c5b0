// SPDX-License-Identifier: Apache-2.0
#include "bench/run_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bench/benchmark.hpp"
#include "bench/fabric_atomics.hpp"
#include "bench/fabric_loop.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

using fabric::Opcode;

constexpr std::array kVerbs{Opcode::read,      Opcode::write,        Opcode::send,
                            Opcode::fetch_add, Opcode::compare_swap, Opcode::write_immediate};
constexpr std::uint32_t kSmall = 64;
constexpr std::uint32_t kDeep = 64;
constexpr std::uint32_t kShallow = 16;            // with packet loss
constexpr std::uint32_t kAddBatch = 16;           // for two threads on one word
constexpr std::uint32_t kMessageBytesMax = 4096;  // the server's room
// A measurement moves at most so many bytes.
constexpr std::uint64_t kMovedBytesMax = std::uint64_t{2} << 30;

/// The servers of points, made on first use; clients are made for each point.
class Servers {
 public:
  explicit Servers(std::uint64_t bytes) : bytes_(bytes) {}
  FabricServer& of(FabricKind kind, double loss = 0) {
    // One at a time, since each has a core.
    if (!server_ || server_->kind() != kind || server_->loss() != loss) {
      server_.reset();
      server_ = std::make_unique<FabricServer>(kind, bytes_, loss);
    }
    return *server_;
  }

 private:
  std::uint64_t bytes_;
  std::unique_ptr<FabricServer> server_;
};

class FabricPoints {
 public:
  FabricPoints(const FabricOptions& options, std::shared_ptr<Servers> servers)
      : options_(options), servers_(std::move(servers)) {}

  std::vector<MeasuredPoint> verbs() {
    for (const FabricKind kind : options_.transports) {
      for (const Opcode opcode : kVerbs) {
        for (const std::uint32_t bytes : options_.bytes) {
          if (fabric::is_atomic(opcode) ? bytes != fabric::kAtomicBytes
                                        : fabric::is_send(opcode) && bytes > kMessageBytesMax) {
            continue;
          }
          for (const std::uint32_t in_flight : options_.in_flight) {
            FabricLoop loop = new_loop(opcode, bytes, in_flight);
            add(kind, loop);
          }
        }
      }
    }
    return std::move(points_);
  }
  std::vector<MeasuredPoint> batches() {
    for (const FabricKind kind : options_.transports) {
      for (const std::uint32_t batch : options_.batches) {
        FabricLoop loop = new_loop(Opcode::read, kSmall, std::max(kDeep, 2 * batch));
        loop.batch = batch;
        add(kind, loop);
      }
      FabricLoop writes = new_loop(Opcode::write, kSmall, kDeep);
      writes.batch = writes.signal_every = 16;
      writes.inlined = true;
      add(kind, writes);
    }
    return std::move(points_);
  }
  std::vector<MeasuredPoint> losses() {
    for (const FabricKind kind : options_.transports) {
      if (kind == FabricKind::shm || kind == FabricKind::ofi_tcp) continue;  // no own packets
      for (const double loss : options_.losses) {
        add(kind, new_loop(Opcode::read, kSmall, kShallow), loss);
      }
    }
    return std::move(points_);
  }
  std::vector<MeasuredPoint> atomics() {
    const FabricLoop loop = new_loop(Opcode::fetch_add, fabric::kAtomicBytes, kAddBatch);
    const std::uint64_t ops = loop.ops;
    const auto server = [servers = servers_]() -> FabricServer& {
      return servers->of(FabricKind::shm);
    };
    add(FabricKind::shm, loop);
    points_.back().parameters["batch"] = kAddBatch;
    points_.back().measure = [ops, server] { return add_over_fabric(server(), ops, kAddBatch); };
    MeasuredPoint& plain = points_.emplace_back(points_.back());
    plain.target = "instructions";
    plain.measure = [ops, server] { return add_locally(server(), ops); };
    return std::move(points_);
  }
  std::vector<MeasuredPoint> local() {
    FabricLoop loop = new_loop(Opcode::read, kSmall, kDeep);
    loop.batch = 16;
    loop.ops *= 10;
    add(FabricKind::shm, loop);
    MeasuredPoint& copy = points_.emplace_back(points_.back());
    copy.target = "memcpy";
    copy.measure = pinned(
        [loop, servers = servers_] { return run_memcpy(servers->of(FabricKind::shm), loop); });
    return std::move(points_);
  }

 private:
  FabricLoop new_loop(Opcode opcode, std::uint32_t bytes, std::uint32_t in_flight) const {
    FabricLoop loop;
    loop.opcode = opcode;
    loop.bytes = bytes;
    loop.in_flight = in_flight;
    loop.ops = std::clamp<std::uint64_t>(kMovedBytesMax / std::max(bytes, 1u), 1, options_.ops);
    loop.seed = options_.seed;
    return loop;
  }

  void add(FabricKind kind, const FabricLoop& loop, double loss = 0) {
    const auto opcode = fabric::name(loop.opcode);
    points_.push_back(
        {.target = std::string(name(kind)),
         .workload = std::string(opcode),
         .parameters = {{"bytes", loop.bytes},
                        {"in_flight", loop.in_flight},
                        {"batch", loop.batch},
                        {"signal_every", loop.signal_every},
                        {"inline", loop.inlined},
                        {"region_bytes", options_.region_bytes},
                        {"loss", loss}},
         .threads = 2,
         .answers = fmt::format("{} {} {} {}", opcode, loop.bytes, loop.ops, loop.signal_every),
         .measure = pinned([kind, loss, loop, servers = servers_] {
           return run_loop(servers->of(kind, loss), loop);
         })});
  }

  const FabricOptions& options_;
  std::shared_ptr<Servers> servers_;
  std::vector<MeasuredPoint> points_;
};

}  // namespace

void FabricOptions::declare(OptionRows& rows) {
  rows.choices("--transport", transports, parse_fabric_kind,
               fabric_kind_names() + "; shm,roce-udp by default");
  rows.numbers("--bytes", bytes, {1, 1U << 20}, "sizes (verbs)");
  rows.numbers("--in-flight", in_flight, {1, 1024}, "requests in flight (verbs)");
  rows.numbers("--batches", batches, {1, 1024}, "READs posted with one doorbell (batch)");
  rows.numbers("--loss", losses, {0, 0.5}, "share of packets that get lost (loss)");
  rows.number("--region-bytes", region_bytes, {2U << 20, std::uint64_t{1} << 40},
              "memory that is offered; READs go to random places of its first half");
  rows.number("--ops", ops, {1, std::uint64_t{1} << 32},
              "requests of a measurement; of long ones fewer");
  rows.of_points(*this);
}

std::vector<ExperimentRow> FabricOptions::experiment_rows() const {
  const auto servers = std::make_shared<Servers>(region_bytes);
  const auto of = [&](std::vector<MeasuredPoint> (FabricPoints::*points)()) {
    return [this, servers, points](Report&) { return (FabricPoints(*this, servers).*points)(); };
  };
  return {{"verbs", of(&FabricPoints::verbs)},
          {"batch", of(&FabricPoints::batches)},
          {"loss", of(&FabricPoints::losses)},
          {"atomics", of(&FabricPoints::atomics)},
          {"local", of(&FabricPoints::local)}};
}

}  // namespace espalier::bench
