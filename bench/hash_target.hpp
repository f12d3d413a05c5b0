// SPDX-License-Identifier: Apache-2.0
// A hash map under test: Espalier's own at each place, or a peer. All get the same requests.
//
//   embedded     in this process, through its rolling queue
//   unix         on a node, through rings in shared memory
//   rings-write  on a node, through rings that are written one-sidedly over the fabric
//   rings-send   on a node, by messages of the fabric
//   device       on a node, through a device
//   one-sided    on a node, whose memory the client reads over shared memory, with all bins
//                cached; one-sided-cold: with directories cached and hardly a bin
//   absl, boost  absl::flat_hash_map, boost::unordered_flat_map, without a lock
//   memcached    over its UNIX socket
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/hash_work.hpp"
#include "espalier/types.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::bench {

enum class HashTargetKind : std::uint8_t {
  embedded,
  unix_rings,
  rings_write,
  rings_send,
  device,
  one_sided,
  one_sided_cold,
  absl,
  boost,
  memcached
};

[[nodiscard]] std::string_view name(HashTargetKind kind);
[[nodiscard]] std::optional<HashTargetKind> parse_hash_target(std::string_view text);
[[nodiscard]] std::vector<HashTargetKind> all_hash_targets();
/// Whether a thread or process of its own answers.
[[nodiscard]] constexpr bool has_server(HashTargetKind kind) {
  return kind != HashTargetKind::embedded && kind != HashTargetKind::absl &&
         kind != HashTargetKind::boost;
}

struct HashTargetOptions {
  std::uint64_t pairs = 0;
  bool versions = true;           ///< Espalier's only
  std::uint64_t cache_bytes = 0;  ///< device only
};

/// Thread: one at a time.
class HashTarget {
 public:
  virtual ~HashTarget() = default;

  /// Runs all requests, `batch` of them in flight at a time. Errors: throws std::runtime_error if
  /// it cannot continue.
  virtual void run(std::span<const Request> requests, std::uint32_t batch,
                   HashAnswers& answers) = 0;
  /// Its settings, for people.
  [[nodiscard]] virtual std::string settings() const = 0;
  /// The address of its node for no-ops; empty: it has none.
  [[nodiscard]] virtual std::string node_address() const { return {}; }
  /// The traffic of gets since the target was made, with one-sided reads.
  [[nodiscard]] virtual std::optional<tree::WalkTraffic> traffic() { return std::nullopt; }
  /// Memory of the pairs, if known.
  [[nodiscard]] virtual std::optional<std::uint64_t> memory_bytes() { return std::nullopt; }
};

/// Makes an empty one. Errors: throws std::runtime_error with the reason, such as a missing
/// installation.
std::unique_ptr<HashTarget> make_hash_target(HashTargetKind kind, const HashTargetOptions& options);
std::unique_ptr<HashTarget> make_own_hash_target(HashTargetKind kind,
                                                 const HashTargetOptions& options);
std::unique_ptr<HashTarget> make_absl_hash_target(const HashTargetOptions& options);
std::unique_ptr<HashTarget> make_boost_hash_target(const HashTargetOptions& options);
std::unique_ptr<HashTarget> make_memcached_target(const HashTargetOptions& options);

}  // namespace espalier::bench
