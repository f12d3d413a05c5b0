// SPDX-License-Identifier: Apache-2.0
// Hash maps: byte-string keys without an order, for who needs none and wants its gets to touch
// three cache lines.
//
//   auto sessions = store.create_hash_map("sessions");
//   sessions->put("user:7", "...");
//   auto found = sessions->get("user:7");     // a Result<std::optional<Found>>
//
// Every operation is linearizable. Reads take no locks and never wait for a writer. Keys have 1 to
// 65535 bytes, values 0 bytes to 16 MiB. What needs an order (scans, floors, counts of ranges) an
// ordered map has, Map of map.hpp; a hash map has no such calls. Pipelines are those of map.hpp,
// Pipeline::open(hash_map), and answer such requests with `unsupported`. Batches and snapshots hash
// maps do not have yet.
//
// Of a node a hash map is used by requests; where the store was connected with Access::one_sided,
// or in_network, gets are READs of the node's memory: two waits, or one where the pair's place is
// remembered (StoreOptions::cache_bytes). What cannot be read so, as a map without versions, is
// asked for.
//
// Errors of all calls: too_many_participants; out_of_memory (the store's or this process's: the
// call has changed nothing); forked (docs/fork.md); not_found (dropped, or another node came,
// by failover or restart, without one of its name and options; else the handle is of that one). On
// a node: connection_lost (a write without an answer may or may not be done), not_permitted.
//
// Cost is given in cold cache lines for pairs of 64 bytes; on a node all calls but modify() are one
// round trip besides.
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

/// What a hash map is made of.
struct HashMapOptions {
  /// parts of the keys that one lock each guards, a power of two from 1 to 512: about so many
  /// threads can write without meeting
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

/// Numbers about one hash map, each right but not all of one instant.
struct HashMapStats {
  std::uint64_t items = 0;
  std::uint64_t memory_bytes = 0;   ///< of all its buffers
  std::uint64_t segments = 0;       ///< of 16 KiB, with the slots of its items
  std::uint64_t record_bytes = 0;   ///< of items in use, up to 1 KiB each
  std::uint64_t long_bytes = 0;     ///< memory of items that are longer
  std::uint64_t retired_bytes = 0;  ///< memory that is replaced, or will be, and not yet free
  std::uint64_t splits = 0;         ///< of segments
  std::uint64_t snapshots = 0;
  Version read_version = 0;
  Version write_version = 0;
};

/// A hash map as it was listed; its options do not tell what durability it was made with.
struct HashMapDescription {
  std::string name;
  HashMapOptions options;
  std::uint64_t items = 0;
  std::uint64_t memory_bytes = 0;
  std::optional<Durability> durability{};  ///< that holds for it; nothing: an older node
};

/// A handle; copies name the same hash map, which stays as long as they even if its Store is gone.
/// Thread: all calls from any number of threads.
class HashMap {
 public:
  static constexpr std::size_t kKeyBytesMax = 65535;
  static constexpr std::size_t kValueBytesMax = std::size_t{16} << 20;

  /// The value of `key`, if it is there, and the version that wrote it. Cost: 3 lines.
  /// Errors: key_too_long (or empty; as of all calls with a key).
  [[nodiscard]] Result<std::optional<Found>> get(std::string_view key) const;
  /// As get, into a string that keeps its capacity. Returns whether the key is there; where not,
  /// `value` is as it was. Cost: as get; of this process without allocating.
  [[nodiscard]] Result<bool> get(std::string_view key, std::string& value) const;

  /// Inserts or replaces. Cost: 5 lines, and its partition's lock.
  /// Errors: key_too_long, value_too_long; exhausted (the keys that share its place in the table
  /// are too many, to which only keys come that were made for it).
  Result<Written> put(std::string_view key, std::string_view value);
  /// Writes only if the key is absent (Written::applied tells). Cost and errors as put.
  Result<Written> insert(std::string_view key, std::string_view value);
  /// Writes only if the key is present. Cost and errors as put.
  Result<Written> update(std::string_view key, std::string_view value);
  /// Removes the key if present. Cost and errors as put; works in a full store.
  Result<Written> erase(std::string_view key);

  /// Reads the value (nullopt: absent), calls `change`, and writes what it returns (nullopt: erase)
  /// if nothing came between; else starts again. `change` may run several times, holding no lock.
  /// Cost: a get and a put for each try; on a node two round trips. Errors as put.
  Result<Written> modify(
      std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);

  /// Writes `desired` (nullopt: erases) if the value is `expected` (nullopt: if the key is absent).
  /// Cost: as a put. Errors: condition_failed, and as put.
  Result<Written> compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::optional<std::string_view> desired);
  /// Adds to a counter, which is a value of 8 bytes, little-endian; an absent one is 0. Returns the
  /// sum, which wraps round. Cost: a get and a put for each try, at the node.
  /// Errors: invalid_argument (the value has another length, which is the detail), and as put.
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount);

  /// Hands every item to `sink`, in no order that means anything, until it returns false; returns
  /// how many were delivered. An item that is there from the begin to the end comes exactly once,
  /// with a value that it had meanwhile; of items that come or go some come, none of them twice.
  /// So it is no snapshot: what two items have was perhaps never there together. Growth of the
  /// map meanwhile changes nothing of that. Cost: 3 lines for each item; on a node a round trip for
  /// each 64 KiB of items, which a helper gathers, and one for each value of more than 64 KiB; a
  /// client keeps one piece at a time. Errors: corrupt (the node's answer is none).
  [[nodiscard]] Result<std::uint64_t> walk(const ItemSink& sink) const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const HashMapOptions& options() const;
  /// Cost: counters of each partition, and two locks.
  [[nodiscard]] Result<HashMapStats> stats() const;
  /// Checks the whole structure: each item found where its hash says, chains, versions, memory in
  /// use + free + waiting = all. Returns what is wrong, one sentence each; empty if all is well.
  /// Cost: reads all of the hash map. Requires: nobody writes to it meanwhile.
  /// Errors: unsupported (it lies on a node, where its store can be checked).
  [[nodiscard]] Result<std::vector<std::string>> audit() const;

 private:
  friend class client::HashMapImpl;
  explicit HashMap(std::shared_ptr<client::HashMapImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<client::HashMapImpl> impl_;
};

}  // namespace espalier
