// SPDX-License-Identifier: Apache-2.0
// `espalier-bench ycsb`: one workload on one or several targets, in turns, so that a change of the
// machine meets them all. One line for each run, and at last one in total: medians, and ratios to
// absl if it is one of the targets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/key_set.hpp"
#include "bench/point_options.hpp"
#include "bench/request_list.hpp"
#include "bench/target.hpp"
#include "bench/workload.hpp"

namespace espalier::bench {

enum class KeySource : std::uint8_t { random, words, file, integers, prefix, url, ascending };
inline constexpr const char* kKeySourceNames =
    "random, words, file, integers, prefix, url, ascending";
[[nodiscard]] std::string_view name(KeySource source);
[[nodiscard]] std::optional<KeySource> parse_key_source(std::string_view text);

inline constexpr const char* kWordsPath = "/usr/share/dict/american-english-insane";

struct YcsbOptions : PointOptions {
  static constexpr const char* kBench = "ycsb";
  static constexpr const char* kSummary = "YCSB and other workloads, beside peers";
  YcsbOptions() { repeats = 1; }  // rounds, in each of which every target runs once

  std::vector<TargetKind> targets{TargetKind::embedded};
  Workload workload = Workload::c;
  std::optional<Distribution> distribution;  ///< nothing: the workload's own
  KeySource key_source = KeySource::random;
  std::string key_file;
  std::uint64_t keys = 10'000'000;  ///< from files at most so many; 0: all of the file
  std::uint32_t key_bytes = 16;     ///< of random keys
  std::uint32_t value_bytes = 16;
  bool draw_values = false;  ///< of 0 to value_bytes
  std::uint32_t threads = 1;
  bool peers_on_one_thread = false;  ///< peers take all threads' requests on one
  std::uint32_t in_flight = 32;      ///< on each thread; 1: synchronous calls
  std::uint64_t ops = 0;             ///< of all threads together; 0: the workload's own number
  double seconds = 0;                ///< stop measuring after so long; 0: never
  std::uint32_t scan_items = 3;      ///< workload scan: items of each scan
  Shares shares;                     ///< workloads cloud and mixed
  bool versions = true;              ///< embedded only, and the next two
  std::uint32_t node_bytes = 8192;
  std::uint32_t log_bytes = 512;
  std::uint32_t subscribers = 0;  ///< embedded only: threads that follow the map's mapping feed
  std::uint32_t node_cores = 1;   ///< targets node, one_sided, and device's host: its workers
  std::string data_dir;           ///< target node: of our own's data; empty: it is in memory alone
  Durability durability = Durability::sync;  ///< of a node with data
  std::string node_address;                  ///< target node: one that runs already; empty: our own
  /// How a node of the run's own is asked; none: see transport_of().
  std::optional<NodeTransport> transport;
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;  ///< target device, and the next two
  std::uint32_t balance = 0;                            ///< weight of its balancer; 0: none
  double slowness = 1;                                  ///< of its core: node::WorkerCore
  std::string redis_address;  ///< target redis: one that runs already; empty: our own
  bool redis_tcp = false;     ///< target redis: our own listens at a TCP port

  /// How a node of the run's own is asked if nothing is said: UNIX sockets reach no memory.
  [[nodiscard]] NodeTransport transport_of(TargetKind kind) const {
    const bool alone = kind == TargetKind::one_sided;
    return transport.value_or(alone ? NodeTransport::shm : NodeTransport::unix_socket);
  }
  [[nodiscard]] ValueLength values() const { return {value_bytes, draw_values}; }
  /// How many threads a target runs on.
  [[nodiscard]] std::uint32_t threads_of(TargetKind kind) const {
    return peers_on_one_thread && !is_ours(kind) ? 1 : threads;
  }
  /// How many requests it has in flight on each thread: peers in this process have no interface for
  /// more than one call at a time.
  [[nodiscard]] std::uint32_t in_flight_of(TargetKind kind) const {
    return is_ours(kind) || kind == TargetKind::redis ? in_flight : 1;
  }

  void declare(OptionRows& rows);
  /// What `ycsb`, `tree` and `latency` share.
  void declare_common(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// Makes or reads the keys. Errors: throws std::runtime_error with the reason.
std::shared_ptr<const KeySet> make_keys(const YcsbOptions& options);

/// How many requests of which kind. Errors: throws std::runtime_error if the keys are too few.
RequestPlan plan_of(const YcsbOptions& options, const KeySet& keys);

TargetOptions target_options_of(TargetKind kind, const YcsbOptions& options,
                                const RequestPlan& plan, const KeySet& keys);

/// Whether the answers can be compared byte by byte: nothing runs beside a write.
bool answers_are_exact(const YcsbOptions& options);

}  // namespace espalier::bench
