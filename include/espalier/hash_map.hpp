// SPDX-License-Identifier: Apache-2.0
// Hash maps: byte-string keys without an order. A get touches three cache lines.
//
//   auto sessions = store.create_hash_map("sessions");
//   sessions->put("user:7", "...");
//   auto found = sessions->get("user:7");     // a Result<std::optional<Found>>
//
// Every operation is linearizable. Reads take no locks and never wait for a writer. Keys have 1 to
// 65535 bytes, values 0 bytes to 16 MiB. For scans, floors and counts of ranges use an ordered map
// (Map of map.hpp). Pipelines are those of map.hpp, Pipeline::open(hash_map); they complete ordered
// requests with `unsupported`. Hash maps have no batches and no snapshots yet.
//
// A hash map on a node is used by requests. If the store was connected with Access::one_sided or
// in_network, gets are READs of the node's memory: two round trips, or one where the pair's place
// is cached (StoreOptions::cache_bytes). A map that cannot be read so, e.g. one without versions,
// is read by requests.
//
// Errors of all calls: too_many_participants; out_of_memory (of the store or of this process: the
// call has changed nothing); forked (docs/fork.md); not_found (the map was dropped, or a new node
// took over, by failover or restart, without a hash map of its name and options; otherwise the
// handle follows to that one). On a node: connection_lost (a write without an answer may or may not
// be done), not_permitted.
//
// Cost is given in cold cache lines for pairs of 64 bytes; on a node every call but modify() takes
// one round trip besides.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/map.hpp"

namespace espalier {

namespace client {
class HashMapImpl;
}  // namespace client

/// Options of a new hash map.
struct HashMapOptions {
  /// partitions of the keys, with one lock each, a power of two from 1 to 512: about so many
  /// threads can write without contention
  std::uint32_t partitions = 64;
  /// off: writes are faster and take less memory, and all versions are 0
  bool versions = true;
  /// old versions that snapshots may hold
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  /// as MapOptions::durability
  std::optional<Durability> durability{};
  /// as MapOptions::group
  std::string group{};

  friend bool operator==(const HashMapOptions&, const HashMapOptions&) = default;
};

/// Statistics of one hash map. Each is right, but they are not one consistent snapshot.
struct HashMapStats {
  std::uint64_t items = 0;
  std::uint64_t memory_bytes = 0;   ///< of all its buffers
  std::uint64_t segments = 0;       ///< of 16 KiB, with the slots of its items
  std::uint64_t record_bytes = 0;   ///< of items in use, up to 1 KiB each
  std::uint64_t long_bytes = 0;     ///< memory of items that are longer
  std::uint64_t retired_bytes = 0;  ///< memory replaced or unlinked and not yet free
  std::uint64_t splits = 0;         ///< of segments
  std::uint64_t snapshots = 0;
  Version read_version = 0;
  Version write_version = 0;
};

/// A hash map as listed. Its options do not include the durability it was made with.
struct HashMapDescription {
  std::string name;
  HashMapOptions options;
  std::uint64_t items = 0;
  std::uint64_t memory_bytes = 0;
  std::optional<Durability> durability{};  ///< in effect; empty: an older node
};

/// A handle. Copies name the same hash map, which lives as long as any of them, even after its
/// Store is destroyed.
/// Thread: all calls from any number of threads.
class HashMap {
 public:
  static constexpr std::size_t kKeyBytesMax = 65535;
  static constexpr std::size_t kValueBytesMax = std::size_t{16} << 20;

  /// The value of `key`, if it is present, and the version that wrote it.
  /// Cost: 3 lines.
  /// Errors: key_too_long (or empty; for all calls with a key).
  [[nodiscard]] Result<std::optional<Found>> get(std::string_view key) const;
  /// As get, into a string that keeps its capacity. Returns whether the key is present; if not,
  /// `value` is unchanged.
  /// Cost: as get; in this process without allocating.
  [[nodiscard]] Result<bool> get(std::string_view key, std::string& value) const;

  /// Inserts or replaces.
  /// Cost: 5 lines, and its partition's lock.
  /// Errors: key_too_long, value_too_long; exhausted (too many keys share its place in the table;
  /// only keys crafted for it do).
  Result<Written> put(std::string_view key, std::string_view value);
  /// Writes only if the key is absent (see Written::applied). Cost and errors as put.
  Result<Written> insert(std::string_view key, std::string_view value);
  /// Writes only if the key is present. Cost and errors as put.
  Result<Written> update(std::string_view key, std::string_view value);
  /// Removes the key if present. Cost and errors as put; works in a full store.
  Result<Written> erase(std::string_view key);

  /// Reads the value (nullopt: absent), calls `change`, and writes what it returns (nullopt: erase)
  /// if the pair has not changed meanwhile; otherwise retries. `change` may run several times,
  /// without locks.
  /// Cost: a get and a put for each try; on a node two round trips. Errors as put.
  Result<Written> modify(
      std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);

  /// Writes `desired` (nullopt: erases) if the value is `expected` (nullopt: if the key is absent).
  /// Cost: as a put. Errors: condition_failed, and as put.
  Result<Written> compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::optional<std::string_view> desired);
  /// Adds to a counter, a value of 8 bytes, little-endian; an absent one counts as 0. Returns the
  /// sum, which wraps around.
  /// Cost: a get and a put for each try, at the node.
  /// Errors: invalid_argument (the value has another length; detail: the length), and as put.
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount);

  /// Delivers every item to `sink`, in unspecified order, until it returns false; returns the
  /// number delivered. An item present from begin to end is delivered exactly once, with a value
  /// that it had meanwhile; of items inserted or erased meanwhile some are delivered, none twice.
  /// It is no snapshot: two delivered values may never have existed together. Growth of the map
  /// meanwhile does not weaken this.
  /// Cost: 3 lines for each item; on a node a round trip for each 64 KiB of items, which a helper
  /// thread gathers, and one for each value of more than 64 KiB; the client keeps one chunk at a
  /// time.
  /// Errors: corrupt (the node's answer is malformed).
  [[nodiscard]] Result<std::uint64_t> walk(const ItemSink& sink) const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const HashMapOptions& options() const;
  /// Cost: counters of each partition, and two locks.
  [[nodiscard]] Result<HashMapStats> stats() const;
  /// Checks the whole structure: each item found where its hash says, chains, versions, memory in
  /// use + free + retired = all. Returns violations, one sentence each; empty if all is well.
  /// Cost: reads all of the hash map.
  /// Requires: no thread writes to it meanwhile.
  /// Errors: unsupported (it lies on a node; check its store there).
  [[nodiscard]] Result<std::vector<std::string>> audit() const;

 private:
  friend class client::HashMapImpl;
  explicit HashMap(std::shared_ptr<client::HashMapImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::HashMapImpl> impl_;
};

}  // namespace espalier
