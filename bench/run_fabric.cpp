// SPDX-License-Identifier: Apache-2.0
#include "bench/run_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <stdexcept>

#include "bench/fabric_atomics.hpp"
#include "bench/fabric_loop.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

using fabric::Opcode;

constexpr std::array<std::string_view, 5> kFabricExperiments{"verbs", "batch", "loss", "atomics",
                                                             "local"};
constexpr std::array kVerbs{Opcode::read,      Opcode::write,        Opcode::send,
                            Opcode::fetch_add, Opcode::compare_swap, Opcode::write_immediate};
constexpr std::uint32_t kSmall = 64;
constexpr std::uint32_t kDeep = 64;
constexpr std::uint32_t kShallow = 16;            // where packets get lost
constexpr std::uint32_t kAddBatch = 16;           // where two threads add to one word
constexpr std::uint32_t kMessageBytesMax = 4096;  // what the server has room for
// A measurement moves at most so many bytes.
constexpr std::uint64_t kMovedBytesMax = std::uint64_t{2} << 30;

/// The servers that points ask, made when the first one does; the clients come and go.
class Servers {
 public:
  explicit Servers(std::uint64_t bytes) : bytes_(bytes) {}
  FabricServer& of(FabricKind kind, double loss = 0) {
    // One at a time, for each has a core.
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
      if (kind == FabricKind::shm || kind == FabricKind::ofi_tcp) continue;  // no packets of ours
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
    copy.measure = [loop, servers = servers_] {
      return pinned([&] { return run_memcpy(servers->of(FabricKind::shm), loop); });
    };
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

  template <class Work>
  static PointSample pinned(const Work& work) {
    PointSample sample;
    run_pinned([&] { sample = work(); });
    return sample;
  }

  void add(FabricKind kind, const FabricLoop& loop, double loss = 0) {
    MeasuredPoint point;
    point.target = name(kind);
    point.workload = fabric::name(loop.opcode);
    point.parameters["bytes"] = loop.bytes;
    point.parameters["in_flight"] = loop.in_flight;
    point.parameters["batch"] = loop.batch;
    point.parameters["signal_every"] = loop.signal_every;
    point.parameters["inline"] = loop.inlined;
    point.parameters["region_bytes"] = options_.region_bytes;
    point.parameters["loss"] = loss;
    point.threads = 2;
    point.answers =
        fmt::format("{} {} {} {}", point.workload, loop.bytes, loop.ops, loop.signal_every);
    point.measure = [kind, loss, loop, servers = servers_] {
      return pinned([&] { return run_loop(servers->of(kind, loss), loop); });
    };
    points_.push_back(std::move(point));
  }

  const FabricOptions& options_;
  std::shared_ptr<Servers> servers_;
  std::vector<MeasuredPoint> points_;
};

}  // namespace

std::string fabric_experiment_names() {
  return fmt::to_string(fmt::join(kFabricExperiments, ", "));
}

std::optional<std::string> problem_of(const FabricOptions& options) {
  if (auto problem = problem_of_experiments(options.experiments, kFabricExperiments))
    return problem;
  const auto any = [](const std::vector<std::uint32_t>& values, std::uint32_t low,
                      std::uint32_t high) {
    return values.empty() || std::ranges::any_of(values, [&](std::uint32_t value) {
             return value < low || value > high;
           });
  };
  if (options.transports.empty()) return "--transport names none";
  if (any(options.bytes, 1, 1u << 20)) return "--bytes must be 1 to 1048576";
  if (any(options.in_flight, 1, 1024)) return "--in-flight must be 1 to 1024";
  if (any(options.batches, 1, 1024)) return "--batches must be 1 to 1024";
  if (options.region_bytes < (std::uint64_t{2} << 20) ||
      options.region_bytes > (std::uint64_t{1} << 40)) {
    return "--region-bytes must be 2 MiB to 1 TiB";
  }
  if (options.ops < 1 || options.ops > (std::uint64_t{1} << 32)) {
    return "--ops must be 1 to 4294967296";
  }
  if (std::ranges::any_of(options.losses,
                          [](double loss) { return !(loss >= 0 && loss <= 0.5); })) {
    return "--loss must be 0 to 0.5";
  }
  if (options.repeats < 1) return "--repeats must be at least 1";
  return std::nullopt;
}

int run_fabric(const FabricOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  PointRun run("fabric", options, output);
  const auto servers = std::make_shared<Servers>(options.region_bytes);
  const auto points = [&] { return FabricPoints(options, servers); };
  if (is_chosen(options.experiments, "verbs")) run.run("verbs", points().verbs());
  if (is_chosen(options.experiments, "batch")) run.run("batch", points().batches());
  if (is_chosen(options.experiments, "loss")) run.run("loss", points().losses());
  if (is_chosen(options.experiments, "atomics")) run.run("atomics", points().atomics());
  if (is_chosen(options.experiments, "local")) run.run("local", points().local());
  return run.finish();
}

}  // namespace espalier::bench
