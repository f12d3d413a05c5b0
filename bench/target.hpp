// SPDX-License-Identifier: Apache-2.0
// An ordered map under test: Espalier's own, or a peer. All get the same requests.
//
// A target receives windows of requests, not single ones, so that this interface costs one virtual
// call in kWindow operations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "bench/answers.hpp"
#include "bench/node_transport.hpp"
#include "bench/resident.hpp"
#include "espalier/types.hpp"

namespace espalier::bench {

enum class TargetKind : std::uint8_t {
  embedded,
  node,
  one_sided,
  device,
  absl,
  rocksdb,
  lmdb,
  redis
};

/// Whether it is Espalier's own map, at any place.
constexpr bool is_ours(TargetKind kind) {
  return kind == TargetKind::embedded || kind == TargetKind::node ||
         kind == TargetKind::one_sided || kind == TargetKind::device;
}

std::string_view name(TargetKind kind);
std::optional<TargetKind> parse_target(std::string_view text);

/// Parameters of a target.
struct TargetOptions {
  std::uint64_t items_max = 0;        ///< how many items it will hold at most
  std::uint32_t fixed_key_bytes = 0;  ///< length of every key; 0: lengths differ
  std::uint32_t value_bytes = 16;     ///< of the longest
  bool fixed_values = true;           ///< all have this length
  std::uint32_t threads = 1;
  std::uint32_t in_flight = 1;  ///< 1: one call at a time
  bool writes = false;          ///< the workload writes (matters with several threads)
  bool ordered = false;         ///< the workload scans (matters to peers without order)
  bool versions = true;         ///< embedded only, and the next two
  std::uint32_t node_bytes = 8192;
  std::uint32_t log_bytes = 512;
  std::uint32_t subscribers = 0;  ///< embedded only: threads that follow its mapping feed
  std::uint32_t node_cores = 1;   ///< node, one_sided and device's host: its workers
  std::string data_dir{};         ///< node only: of its data; empty: in memory only
  Durability durability = Durability::sync;  ///< node only: of its data
  std::string node_address{};  ///< node and one_sided only: a running one; empty: start one
  NodeTransport transport = NodeTransport::unix_socket;  ///< of the started one
  bool one_sided = false;                                ///< node only: clients use one-sided reads
  std::uint64_t cache_bytes = 0;  ///< device only, and the next two: its cache
  std::uint32_t balance = 0;      ///< weight of its balancer; 0: none
  double slowness = 1;            ///< of its core: node::WorkerCore
  std::string redis_address{};    ///< redis only: a running one; empty: start one
  bool redis_tcp = false;         ///< redis only: the started one uses a TCP port
};

/// The traffic of a target's reads, if counted.
struct PathTraffic {
  std::uint64_t round_trips = 0;
  std::uint64_t bytes = 0;  ///< read from the node's memory
  /// All zeros if the target is not a device.
  struct OfDevice {
    std::uint64_t own_bytes = 0;  ///< from its own memory
    std::uint64_t descents = 0;   ///< descents to leaves
    std::uint64_t hits = 0;       ///< descents by cached nodes
    std::uint64_t balanced = 0;   ///< cached nodes that were read all the same
    std::uint64_t forwarded =
        0;  ///< requests that its host's processor did: all writes, some reads
  } of_device{};

  friend PathTraffic operator-(const PathTraffic& now, const PathTraffic& before) {
    const OfDevice& to = now.of_device;
    const OfDevice& from = before.of_device;
    return {now.round_trips - before.round_trips,
            now.bytes - before.bytes,
            {to.own_bytes - from.own_bytes, to.descents - from.descents, to.hits - from.hits,
             to.balanced - from.balanced, to.forwarded - from.forwarded}};
  }
  /// Share of descents by cached nodes; 0 if there were none.
  [[nodiscard]] double hit_share() const {
    return of_device.descents == 0
               ? 0
               : static_cast<double>(of_device.hits) / static_cast<double>(of_device.descents);
  }
};

/// What the subscribers of a map's mapping feed have read, summed up.
struct FeedNews {
  std::uint64_t changes = 0;
  std::uint64_t behind = 0;  // times that one of them started, or fell behind
};

/// Latencies of single operations, in nanoseconds.
using Latencies = base::Histogram;

/// One thread's session with a target. Thread: the one that opened it.
class TargetSession {
 public:
  virtual ~TargetSession() = default;

  /// Runs a window of requests to completion.
  virtual void run(std::span<const Request> requests, Answers& answers) = 0;
  /// The same with a clock around each operation: slower, for latencies only.
  virtual void run_timed(std::span<const Request> requests, Answers& answers,
                         Latencies& latencies) = 0;
  /// Begins each request when it is due, whether earlier ones are done or not, up to the limit in
  /// flight. Latencies count from the due times, so that waiting for other requests is included
  /// [coordinated omission]. `due_ns` counts from the call and rises. Requires: no
  /// read-modify-writes. Errors: throws std::runtime_error if this target takes one call at a time.
  virtual void run_paced(std::span<const Request> requests, std::span<const std::uint64_t> due_ns,
                         Answers& answers, Latencies& latencies);
};

/// The whole contents of a target.
struct Contents {
  std::uint64_t items = 0;
  std::uint64_t hash = 0;  ///< sum of item_hash
  friend bool operator==(const Contents&, const Contents&) = default;
};

class Target {
 public:
  virtual ~Target() = default;

  virtual std::unique_ptr<TargetSession> open_session() = 0;
  /// The same with another number in flight than in TargetOptions. Ignored by targets that take one
  /// call at a time.
  virtual std::unique_ptr<TargetSession> open_session_with(std::uint32_t /*in_flight*/) {
    return open_session();
  }
  /// Called once after loading, for preparations before reads.
  virtual void finish_load() {}
  /// Returns free memory to the operating system.
  virtual void trim() {}
  /// Scans everything. Requires: no session is running.
  virtual Contents contents() = 0;
  /// The traffic of ended sessions' reads since this was made.
  [[nodiscard]] virtual std::optional<PathTraffic> traffic() const { return std::nullopt; }
  /// Ends the subscribers of its mapping feed, and returns what they have read; nothing: there were
  /// none.
  virtual std::optional<FeedNews> end_subscribers() { return std::nullopt; }
  /// This target's settings, for people.
  [[nodiscard]] virtual std::string settings() const = 0;
  /// The pages that it uses; empty if only the operating system knows.
  [[nodiscard]] virtual std::string pages() const { return {}; }
  /// Memory of the process that keeps the items, if that is not this one.
  virtual std::optional<Resident> resident_elsewhere() { return std::nullopt; }
};

/// Makes an empty target. Errors: throws std::runtime_error with the reason.
std::unique_ptr<Target> make_target(TargetKind kind, const TargetOptions& options);
std::unique_ptr<Target> make_embedded_target(const TargetOptions& options);
std::unique_ptr<Target> make_node_target(const TargetOptions& options);
std::unique_ptr<Target> make_device_target(const TargetOptions& options);
std::unique_ptr<Target> make_absl_target(const TargetOptions& options);
std::unique_ptr<Target> make_rocksdb_target(const TargetOptions& options);
std::unique_ptr<Target> make_lmdb_target(const TargetOptions& options);
std::unique_ptr<Target> make_redis_target(const TargetOptions& options);

/// A session of a target that does one operation at a time. `Own` has execute(request, answers),
/// and may have begin(requests) and end() around a window.
template <class Own>
class SerialSession : public TargetSession {
 public:
  void run(std::span<const Request> requests, Answers& answers) override {
    own().begin(requests);
    for (const Request& request : requests) own().execute(request, answers);
    own().end();
  }

  void run_timed(std::span<const Request> requests, Answers& answers,
                 Latencies& latencies) override {
    own().begin(requests);
    for (const Request& request : requests) {
      const base::Stopwatch watch;
      own().execute(request, answers);
      latencies.record(watch.elapsed_ns());
    }
    own().end();
  }

  void begin(std::span<const Request>) {}
  void end() {}

 private:
  Own& own() { return static_cast<Own&>(*this); }
};

}  // namespace espalier::bench
