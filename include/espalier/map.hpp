// SPDX-License-Identifier: Apache-2.0
// The ordered map as an embedded library. A Store holds Maps. A Map is used by synchronous calls
// from any thread, or through a Pipeline that keeps many operations in flight on one thread.
//
// Every operation is linearizable, scans and batches included (unless a map's versions are off:
// then scans are not). Reads take no locks and never wait for a writer. Keys have 1 to
// max_key_bytes() bytes (460 for nodes of 8 KiB and more), in memcmp order; values 0 bytes to 16
// MiB.
//
// Out of memory: if the store (StoreOptions::memory_bytes_max) or the process runs out of memory,
// every call that returns a Result returns out_of_memory; it has changed nothing, holds nothing,
// and may be repeated. Other calls throw std::bad_alloc if the process has none, and have changed
// nothing either. Calls that close, drop and destroy never throw.
//
// Fork: handles belong to the process that made them. In a child process every call that needs the
// store, embedded or a node's, returns `forked` and does nothing, and destructors of handles do
// nothing; connect() and open() work there as anywhere (docs/fork.md).
//
// Cost is given in cold cache lines for 16-byte keys and values in 8 KiB nodes. A "descent" touches
// about 5 lines of the leaf; interior nodes are warm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/condition.hpp"
#include "espalier/table_error.hpp"
#include "espalier/types.hpp"

namespace espalier {

class EmbeddingTable;
class HashMap;
class ObjectHandle;
class RankingModel;
class Region;
class Schema;
class Sequencer;
class Table;
class Transaction;
struct EmbeddingOptions;
struct HashMapDescription;
struct HashMapOptions;
struct KindRow;
struct NumberedClient;
struct OffloadRow;
struct Offloads;
struct RegionDescription;
struct SequencerDescription;
struct TableDescription;
struct TableOptions;
struct Transacted;

namespace client {
class StoreImpl;
class MapImpl;
class SnapshotImpl;
class PipelineImpl;

/// Deletes the implementation of a handle, except in a child process forked since.
struct DeleteBehind {
  void operator()(StoreImpl* impl) const noexcept;
  void operator()(SnapshotImpl* impl) const noexcept;
  void operator()(PipelineImpl* impl) const noexcept;
};
}  // namespace client

/// A value that was read, with the version at which its item was created. Items merged into a
/// leaf's sorted block share that block's version, so a version may rise without a change of value;
/// it never stays the same when the value changes.
struct Found {
  std::string value;
  Version version = 0;
};

/// An item that was read, owning its bytes.
struct FoundItem {
  std::string key;
  std::string value;
  Version version = 0;
};

/// Several writes that take effect together or not at all.
/// Cost: copies its arguments.
class WriteBatch {
 public:
  WriteBatch& put(std::string_view key, std::string_view value);
  WriteBatch& erase(std::string_view key);

  /// Conditions: checked atomically with the writes. If one fails, nothing is written.
  WriteBatch& only_if_absent(std::string_view key);
  WriteBatch& only_if_present(std::string_view key);
  WriteBatch& only_if_value(std::string_view key, std::string_view value);
  /// Holds if the key's item still has the version that a read returned. May fail spuriously after
  /// a reorganisation of the leaf (see Found) or a restart: read again and retry. With a map's
  /// versions off all versions are 0, so it only checks presence: use only_if_value.
  WriteBatch& only_if_version(std::string_view key, Version version);

  void clear();
  [[nodiscard]] bool empty() const { return writes_.empty() && conditions_.empty(); }

  struct Write {
    std::string key;
    std::string value;
    bool erase = false;
  };
  struct Check {
    std::string key;
    std::string value;
    Version version = 0;
    ConditionKind kind = ConditionKind::absent;

    /// Points into this Check.
    [[nodiscard]] espalier::Condition condition() const { return {kind, version, value}; }
  };
  [[nodiscard]] const std::vector<Write>& writes() const { return writes_; }
  [[nodiscard]] const std::vector<Check>& conditions() const { return conditions_; }

 private:
  std::vector<Write> writes_;
  std::vector<Check> conditions_;
};

/// Receives runs of items in order; returns false to stop. Must not throw: an exception ends the
/// process.
using ItemSink = std::function<bool(std::span<const Item>)>;

struct ScanOptions {
  std::uint64_t limit = 0;  ///< at most so many items; 0: no limit
  bool reverse = false;     ///< descending
  /// honeycomb's SCAN(Kl, Ku): begins at the floor of low, high included. Ascending only: with
  /// `reverse` the scan fails with invalid_argument and delivers nothing.
  bool from_floor = false;
  /// Parallel scan: the range is cut into at most so many parts, at the borders of shards and of
  /// nodes above the leaves. The parts are walked concurrently, as of one version, and delivered in
  /// order. Worthwhile where memory is remote and the range is bounded. Up to 256 KiB of each part
  /// are buffered until its turn. 0 and 1: one part; at most kPartsMax.
  /// Cost: a descent for each part; before them one round trip on a node, and that of
  /// Map::snapshot, or one READ for a one-sided client.
  /// Errors: besides, snapshot_expired, unsupported (an older node), invalid_argument (too many).
  std::uint32_t parts = 0;
  static constexpr std::uint32_t kPartsMax = 64;
};

/// A consistent view of a map at one version. While it lives, the map keeps old versions for it, up
/// to MapOptions::snapshot_bytes_max for all snapshots of the map together, and a quarter of the
/// store's memory for those of all maps. Beyond that, and when writes find no memory, the oldest
/// snapshots expire and their calls return snapshot_expired. Thread: any.
///
/// Cost of reads: as in Map, and one leaf more for each version of the leaf's node since then.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  [[nodiscard]] Version version() const;
  /// Errors of all four: key_too_long, snapshot_expired, too_many_participants; of scan also
  /// invalid_argument (see ScanOptions).
  [[nodiscard]] Result<std::optional<Found>> get(std::string_view key) const;
  [[nodiscard]] Result<std::optional<FoundItem>> floor(std::string_view key) const;
  [[nodiscard]] Result<std::uint64_t> scan(std::string_view low, std::string_view high,
                                           const ItemSink& sink, ScanOptions options = {}) const;
  [[nodiscard]] Result<std::uint64_t> count(std::string_view low, std::string_view high) const;

 private:
  friend class Map;
  explicit Snapshot(std::unique_ptr<client::SnapshotImpl> impl);
  std::unique_ptr<client::SnapshotImpl, client::DeleteBehind> impl_;
};

/// An ordered map. A cheap handle: copies name the same map, which lives as long as its Store.
/// Thread: all calls from any number of threads.
class Map {
 public:
  /// The value of `key`, if it is present.
  /// Cost: one descent, 2 to 3 lines for the item.
  /// Errors: key_too_long, too_many_participants.
  [[nodiscard]] Result<std::optional<Found>> get(std::string_view key) const;
  /// As get, into a string that keeps its capacity. Returns whether the key is present.
  /// Cost: as get, without allocating.
  [[nodiscard]] Result<bool> get(std::string_view key, std::string& value) const;

  /// Inserts or replaces.
  /// Cost: a descent, 2 lines of log; one in about ten merges the log (a copy of the node).
  /// Errors: key_too_long, value_too_long, out_of_memory, too_many_participants.
  Result<Written> put(std::string_view key, std::string_view value);
  /// Writes only if the key is absent (see Written::applied). Cost and errors as put.
  Result<Written> insert(std::string_view key, std::string_view value);
  /// Writes only if the key is present. Cost and errors as put.
  Result<Written> update(std::string_view key, std::string_view value);
  /// Removes the key if present. Cost and errors as put. Works in a full store: merging the log,
  /// and merging nodes below the fill threshold, takes reserved buffers.
  Result<Written> erase(std::string_view key);

  /// Reads the value (nullopt: absent), calls `change`, and writes what it returns (nullopt: erase)
  /// if the item has not changed meanwhile; otherwise retries. `change` may run several times,
  /// without locks.
  /// Cost: a get and a put for each try. Errors as put.
  Result<Written> modify(
      std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);

  /// Writes `desired` (nullopt: erases) if the value is `expected` (nullopt: if the key is absent).
  /// Cost: as a put. Errors: condition_failed, and as put.
  Result<Written> compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::optional<std::string_view> desired);
  /// Adds to a counter, a value of 8 bytes, little-endian; an absent one counts as 0. Returns the
  /// sum, which wraps around.
  /// Cost: a get and a put for each try; on a node one round trip.
  /// Errors: invalid_argument (the value has another length; detail: the length), and as put.
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount);

  /// Writes the whole batch under one version if all its conditions hold, or nothing. Later writes
  /// of a key override earlier ones; conditions are checked before any write.
  ///
  /// Written::applied is true even if the batch only erased absent keys. Written::existed says
  /// whether at least one of the written keys was present before; keys that only have conditions do
  /// not count.
  ///
  /// Readers see all of it or nothing, scans included. With the map's versions off only writers do
  /// (writes of single keys, modify, other batches and their conditions): a get or a scan sees each
  /// key whole, but may see one key after the batch and another before it.
  ///
  /// Cost: a descent for each write and condition, and the map's structure lock, which serialises
  /// batches and changes of structure; other writers wait only for its leaves.
  ///
  /// Errors: condition_failed (detail: index of the first condition that failed, in the order in
  /// which they were added), and as put; invalid_argument if it has no writes or more than 65536
  /// writes or conditions.
  Result<Written> write(const WriteBatch& batch);

  /// Delivers the items of [low, high) (see ScanOptions) as of one version, and returns their
  /// number. An empty low is below all keys, an empty high above all keys. The sink must not write
  /// to this map.
  /// Cost: a descent, then 0.7 lines for each item, prefetched if the scan ascends; one more
  /// descent if the floor lies in another leaf.
  /// Errors: key_too_long, too_many_participants, invalid_argument (see ScanOptions).
  [[nodiscard]] Result<std::uint64_t> scan(std::string_view low, std::string_view high,
                                           const ItemSink& sink, ScanOptions options = {}) const;

  /// The item with the largest key not above `key`. Cost: as get.
  [[nodiscard]] Result<std::optional<FoundItem>> floor(std::string_view key) const;

  /// Exact number of items in [low, high). Cost: as a scan.
  [[nodiscard]] Result<std::uint64_t> count(std::string_view low, std::string_view high) const;
  /// Estimated number of items in [low, high). Cost: two descents, whatever the range.
  [[nodiscard]] Result<std::uint64_t> count_estimate(std::string_view low,
                                                     std::string_view high) const;

  /// Pins the newest released version; old versions stay while the snapshot lives.
  /// Cost: a lock of the store, no line of the map.
  /// Errors: unsupported (versions off), too_many_participants.
  [[nodiscard]] Result<Snapshot> snapshot() const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const MapOptions& options() const;
  [[nodiscard]] std::uint32_t max_key_bytes() const;
  /// Cost: reads counters, and takes a lock of the store; on a node one round trip.
  /// Errors: on a node as of its other calls, connection_lost first; not_found (it was dropped).
  /// Fails for a map over several nodes while one of them does not answer.
  [[nodiscard]] Result<MapStats> stats() const;

  /// Checks the whole structure of this map and of all others of its store, which share memory:
  /// order, fences, fill, versions, reachability, predecessors, and buffers in use + free + retired
  /// = all. Returns violations, one sentence each, at most 20; empty if all is well.
  /// Cost: reads all of the store.
  /// Requires: no thread writes to, creates or drops a map of the store meanwhile.
  [[nodiscard]] std::vector<std::string> audit() const;

 private:
  friend class Store;
  friend class Pipeline;
  friend class client::MapImpl;
  explicit Map(client::MapImpl* impl) : impl_(impl) {}
  client::MapImpl* impl_;
};

/// Many operations in flight on one thread: their cache misses overlap.
/// Thread: one at a time.
class Pipeline {
 public:
  /// in_flight: 1 to 256 concurrent walks; 24 to 32 is best for most memories.
  /// Cost: about 6 KiB for each walk; open it once and keep it.
  static Result<Pipeline> open(const Map& map, std::uint32_t in_flight = 32);
  /// The same for a hash map. In this process requests wait in a rolling queue, where up to 40 are
  /// prefetched at a time; later requests or poll() complete them. Floors and scans complete with
  /// `unsupported`. Include hash_map.hpp.
  /// Cost: 20 KiB; on a node an interleaved lane.
  /// Errors: invalid_argument (`in_flight`), and those of the hash map's calls.
  static Result<Pipeline> open(const HashMap& map, std::uint32_t in_flight = 32);
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  /// Runs all requests to completion, in no particular order; requests of one call are concurrent
  /// with each other. In a forked process all requests complete immediately with `forked`; requests
  /// in flight at the fork complete only in the parent.
  /// Cost: per request as in Map, but with the misses overlapped.
  void run(std::span<const Request> requests, Handler& handler);

  /// Adds requests without waiting. `requests` and the memory they point to must live until
  /// completion.
  void submit(std::span<const Request> requests, Handler& handler);
  /// Works until at least one request has completed or nothing is left; returns how many are left.
  /// Cost: as in run().
  std::size_t poll();
  /// Does what can be done now without waiting; returns how many are left. For callers with more
  /// requests to submit, or other work, before the next completion. Cost: as in run().
  std::size_t advance();

 private:
  explicit Pipeline(std::unique_ptr<client::PipelineImpl> impl);
  std::unique_ptr<client::PipelineImpl, client::DeleteBehind> impl_;
};

/// Memory with any number of maps, tables and other objects in it.
class Store {
 public:
  /// Cost: reserves addresses; memory is taken as it is used.
  /// Errors: system (no memory to reserve), invalid_argument.
  static Result<Store> open(const StoreOptions& options = {});
  /// The same with the program's own calls and kinds. Include offload.hpp.
  /// Errors: besides, invalid_argument (a number given twice, or reserved).
  static Result<Store> open(const StoreOptions& options, const Offloads& offloads);
  /// Opens the store at an address:
  ///   embedded                              a store of this process, as open() makes it
  ///   unix:PATH                             the node that listens there on this machine
  ///   roce://HOST[:PORT]/SERVICE            a node over a fabric
  ///   shm:PATH, ofi://PROVIDER/HOST[:PORT]  likewise
  ///   chain://ADDRESS,ADDRESS               the head of the chain of these nodes (docs/chains.md);
  ///                                         after connection loss it is looked up for 10 s
  /// The maps are then the node's. Calls behave the same, except those that need local memory:
  /// trim() does nothing, and memory_bytes() and audit() are not supported.
  ///
  /// Connection loss: requests in flight fail with connection_lost. A read may be repeated; a write
  /// without an answer may or may not be done; nothing is ever done twice. The next call
  /// reconnects, to the node that listens then, and finds maps by their names. Pipelines and
  /// snapshots end with their connection. Over a fabric a connection is lost only when the node
  /// does not answer for 10 s, or no longer knows this client; until then both sides resume where
  /// they were. While the process has such a connection, a keepalive thread, which blocks all
  /// signals, serves the connections that no other thread works on.
  ///
  /// Authentication is mutual, by StoreOptions::secret, or else by the secret in the file named by
  /// ESPALIER_SECRET_FILE (docs/security.md). Without a secret there is none.
  ///
  /// Errors: invalid_argument (no such form of address; the secret file is malformed), system (no
  /// listener, or not for this user; ETIMEDOUT: no answer; the secret file cannot be read),
  /// not_permitted (detail 4: the node requires a secret; 5: it knows another; 6: it knows none; 7:
  /// see StoreOptions::node_user), too_many_participants, unsupported (another version), corrupt,
  /// connection_lost.
  static Result<Store> connect(std::string_view address, const StoreOptions& options = {});
  /// Why connect() rejects this address: a sentence with the address and the expected form. Empty:
  /// the form is valid.
  static std::string explain_address(std::string_view address);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  /// Requires: no thread uses its maps any more; snapshots and pipelines are destroyed.
  ~Store();

  /// Creates an empty map; names have 1 to 255 bytes.
  /// Cost: up to a mebibyte, for nodes reserved for erases.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name, which may be a
  /// table), invalid_argument, too_many_participants (of groups), out_of_memory.
  Result<Map> create_map(std::string_view name, const MapOptions& options = {});
  /// Errors: not_found; wrong_kind (not a map; detail: its ObjectKind).
  [[nodiscard]] Result<Map> open_map(std::string_view name) const;
  /// Removes a map and gives its memory back. Its handles must no longer be used. Cost: reads the
  /// map's nodes. Errors: not_found, wrong_kind.
  Result<void> drop_map(std::string_view name);
  /// The names of all maps, in order; on a node those that this client may see.
  /// Cost: linear in their number; on a node one round trip.
  /// Errors: those of a call to a node, connection_lost first.
  [[nodiscard]] Result<std::vector<std::string>> map_names() const;

  /// Creates an empty unencrypted table. All objects share one name space. Include table.hpp.
  /// Cost: 64 KiB.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name),
  /// invalid_argument, out_of_memory; of this and the next ones also unsupported (an older node).
  TableResult<Table> create_table(std::string_view name, const Schema& schema);
  /// The same with options. Errors: besides, invalid_argument (a key for an unencrypted table).
  TableResult<Table> create_table(std::string_view name, const Schema& schema,
                                  const TableOptions& options);
  /// Errors: not_found; wrong_kind (not a table; detail: its ObjectKind).
  [[nodiscard]] TableResult<Table> open_table(std::string_view name) const;
  /// The same with a key. Errors: besides, invalid_argument (the table is not encrypted).
  [[nodiscard]] TableResult<Table> open_table(std::string_view name,
                                              const TableOptions& options) const;
  /// Removes a table. Its queries end with `dropped`; its memory is freed with the last of them.
  /// Errors: not_found, wrong_kind.
  TableResult<void> drop_table(std::string_view name);
  /// All tables, by name.
  [[nodiscard]] TableResult<std::vector<TableDescription>> tables() const;

  /// Takes `count` consecutive numbers from the counter of this name, which begins at 0 and issues
  /// each number once; returns the first. These counters have a name space of their own, live as
  /// long as the store, and can be neither sealed nor dropped: sequencer.hpp has sequencers that
  /// can.
  /// Cost: a lock that all of them share.
  /// Errors: invalid_argument (a name has 1 to 255 bytes; a count of 0), out_of_memory (there are
  /// 65536 counters), exhausted (numbers end at 2^63 - 1).
  Result<std::uint64_t> sequence(std::string_view name, std::uint32_t count = 1);

  /// Creates a sequencer, whose numbers begin at `first`. Include sequencer.hpp.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name), invalid_argument
  /// (a name has 1 to 255 bytes; `first` is too large), out_of_memory; of this and the next ones
  /// also unsupported (an older node).
  Result<Sequencer> create_sequencer(std::string_view name, std::uint64_t first = 0);
  /// A handle of its current epoch. Errors: not_found; wrong_kind (not a sequencer; detail: its
  /// ObjectKind).
  [[nodiscard]] Result<Sequencer> open_sequencer(std::string_view name) const;
  /// Removes a sequencer. Errors: not_found, wrong_kind.
  Result<void> drop_sequencer(std::string_view name);
  /// All sequencers, by name.
  [[nodiscard]] Result<std::vector<SequencerDescription>> sequencers() const;

  /// Creates an empty hash map, by default with default options. Include hash_map.hpp.
  /// Cost: about 100 KiB.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name), invalid_argument
  /// (a name has 1 to 255 bytes; the options), too_many_participants (of groups), out_of_memory,
  /// system (no random seed); of this and
  /// the next ones also unsupported (an older node).
  Result<HashMap> create_hash_map(std::string_view name);
  Result<HashMap> create_hash_map(std::string_view name, const HashMapOptions& options);
  /// Errors: not_found; wrong_kind (not a hash map; detail: its ObjectKind).
  [[nodiscard]] Result<HashMap> open_hash_map(std::string_view name) const;
  /// Removes a hash map. Calls of its handles then return not_found; its memory is freed with the
  /// last handle. Errors: not_found, wrong_kind.
  Result<void> drop_hash_map(std::string_view name);
  /// All hash maps, by name; on a node those that this client may see. Cost: linear in their
  /// number.
  [[nodiscard]] Result<std::vector<HashMapDescription>> hash_maps() const;

  /// Creates an empty embedding table. Include embedding_table.hpp.
  /// Cost: 32 KiB.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name), invalid_argument
  /// (name or options), out_of_memory.
  Result<EmbeddingTable> create_embedding_table(std::string_view name,
                                                const EmbeddingOptions& options);
  /// Errors: not_found; wrong_kind (not an embedding table; detail: its ObjectKind).
  [[nodiscard]] Result<EmbeddingTable> open_embedding_table(std::string_view name) const;
  /// Removes an embedding table. Calls of its handles then return not_found; its memory is freed
  /// when the last call that uses it has ended. Errors: not_found, wrong_kind.
  Result<void> drop_embedding_table(std::string_view name);
  /// Renames an embedding table atomically, e.g. to replace the table in use by a new version. A
  /// concurrent request by name reaches the one or the other. Handles follow their name: the next
  /// call of a handle goes to the table that has its name now; if that has rows of another
  /// dimension, the call fails with `outdated`.
  /// Errors: not_found (detail 0: no table has `name`; 1: none has `to`, and names were to be
  /// exchanged), already_exists (detail: the ObjectKind of the object named `to`), wrong_kind,
  /// invalid_argument (`to` is not a valid name, or the same).
  Result<void> rename_embedding_table(std::string_view name, std::string_view to,
                                      Displaced displaced = Displaced::refused);

  /// Creates a ranking model from the bytes of a file (docs/formats/model.md), up to 30 MiB.
  /// Include ranking_model.hpp.
  /// Cost: its weights, in pages of 2 MiB.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name), invalid_argument
  /// (the name, or in words the mistake in the file), unsupported (a store with a log),
  /// out_of_memory; not_permitted also if a role limited to some names would read tables of other
  /// names.
  std::expected<RankingModel, TableError> create_ranking_model(std::string_view name,
                                                               std::string_view file);
  /// Errors: not_found; wrong_kind (not a model; detail: its ObjectKind).
  [[nodiscard]] Result<RankingModel> open_ranking_model(std::string_view name) const;
  /// Removes a model. Calls of its handles then return not_found.
  /// Errors: not_found, wrong_kind.
  Result<void> drop_ranking_model(std::string_view name);

  /// Creates a region of so many bytes, all zeros. Include region.hpp.
  /// Cost: a memory file and a descriptor. Pages are allocated when touched, but the whole size
  /// counts against the limit from the start.
  /// Errors: already_exists (detail: the ObjectKind of the object with this name), invalid_argument
  /// (a name has 1 to 255 bytes; no bytes), out_of_memory (the store's limit, or the process has
  /// 512 regions), system; of this and the next ones also unsupported (an older node).
  Result<Region> create_region(std::string_view name, std::uint64_t bytes);
  /// Errors: not_found; wrong_kind (not a region; detail: its ObjectKind); on a node also
  /// not_permitted (detail 8: it takes the role peer).
  [[nodiscard]] Result<Region> open_region(std::string_view name) const;
  /// Removes a region. When this has returned, no client can read or change its bytes any more. Its
  /// memory is freed with its last user. Errors: not_found, wrong_kind.
  Result<void> drop_region(std::string_view name);
  /// All regions, by name; on a node those that this client may see. Cost: linear in their number.
  [[nodiscard]] Result<std::vector<RegionDescription>> regions() const;

  /// Runs reads, conditions and writes of several ordered maps and hash maps atomically, all of
  /// them or none; returns what it read. Strictly serialisable, also against plain reads and
  /// writes: a reader that sees one of its writes sees all. After a lost connection the transaction
  /// is retried by its number for ten seconds; then it fails with connection_lost. Include
  /// transaction.hpp.
  /// Cost: for each key the cost of its write, and the structure locks of its ordered maps; on a
  /// node one round trip.
  /// Errors: condition_failed (detail: index of the first step that failed, in the order in which
  /// they were added; nothing was written), not_found (detail: index of the map), unsupported
  /// (detail: index of the map; it keeps no versions, is not a map, or is not of the first one's
  /// group: MapOptions::group), invalid_argument (no step; more than 64 keys, 256 steps or
  /// 1 MiB), key_too_long, value_too_long (also if the values it reads exceed 1 MiB together),
  /// exhausted (crafted keys of a hash map), out_of_memory, too_many_participants, wrong_shard,
  /// busy; system (it may or may not be done: detail 5, the log has failed; 12, no memory for the
  /// node's answer, or the answer of a transaction done before is no longer kept); on a node also
  /// not_permitted, connection_lost (it may or may not be done).
  Result<Transacted> transact(const Transaction& transaction);
  /// The same under the client's next number: if the number was done before, nothing is done and
  /// the first answer is returned again. An answer or a permanent refusal uses the number up
  /// (client.next increases by one). After connection_lost, system, busy, out_of_memory and
  /// too_many_participants, retry the number or use it for another transaction.
  /// Thread: one at a time for each client.
  /// Errors: besides, outdated (detail 1: the store does not know the client; 2: its number was
  /// acknowledged; nothing was done now), already_exists (the number belongs to another
  /// transaction, which may be done).
  Result<Transacted> transact(const Transaction& transaction, NumberedClient& client);
  /// Registers a client of numbered transactions, which this store knows until it is forgotten.
  /// Errors: busy, system (no random number); unsupported (an older node); on a node also
  /// not_permitted, connection_lost.
  Result<NumberedClient> make_numbered_client();
  /// Forgets a client: its later transactions are refused. Errors: besides, outdated (it is not
  /// known), busy (a transaction of it runs).
  Result<void> forget_numbered_client(const NumberedClient& client);

  /// How far the log of a durable store is. Writes acknowledged before this call have records at or
  /// below `recorded`; records at or below `durable` are on the disk. A client of an async store
  /// keeps `recorded` after a write and later checks whether `durable` has reached it. Compare only
  /// within one run: after a crash, numbers of lost records are reused, and a call after a lost
  /// connection may reach the next run without notice. A client that may have crossed a restart
  /// reads its writes back. Shards of a map on other nodes have their own logs.
  /// Cost: a lock; on a node one round trip.
  /// Errors: unsupported (the store is not durable; an older node); on a node also connection_lost.
  [[nodiscard]] Result<DurableState> durable_state() const;
  /// The same, after waiting until all writes acknowledged before are on the disk.
  /// Cost: besides, up to two flushes of the disk.
  /// Errors: besides, system (detail 5: the log has failed).
  Result<DurableState> await_durable();

  /// Calls an offload that a program has defined for its node, or for this store, and that has no
  /// target object; returns its reply. Include offload.hpp.
  /// Cost: on a node one round trip.
  /// Errors: those of the call, perhaps with its words; invalid_argument (a request length outside
  /// the row's limits), unsupported (no such call; detail: its number), corrupt (a reply longer
  /// than the row's limit); on a node also not_permitted, connection_lost.
  TableResult<std::string> call(const OffloadRow& row, std::string_view request = {});

  /// Creates an object of a program's kind from `form`, bytes that the kind defines. Include
  /// offload.hpp.
  /// Errors: those of the kind; already_exists (detail: the ObjectKind of the object with this
  /// name), invalid_argument (a name has 1 to 255 bytes; the form is too long), unsupported (no
  /// such kind).
  TableResult<ObjectHandle> create_object(const KindRow& kind, std::string_view name,
                                          std::string_view form = {});
  /// Errors: not_found; wrong_kind (detail: its ObjectKind); unsupported (no such kind).
  [[nodiscard]] TableResult<ObjectHandle> open_object(const KindRow& kind,
                                                      std::string_view name) const;
  /// Removes one. Calls of its handles then return not_found. Errors: not_found, wrong_kind.
  Result<void> drop_object(const KindRow& kind, std::string_view name);
  /// The names of all objects of a kind, in order; on a node those that this client may see.
  [[nodiscard]] Result<std::vector<std::string>> object_names(const KindRow& kind) const;

  /// The kind of pages in use, for people: "explicit 2 MiB pages", "transparent huge pages", "4 KiB
  /// pages (why)".
  [[nodiscard]] const std::string& page_message() const;
  /// Bytes taken from the operating system and not given back.
  /// Errors: unsupported (a store on a node: such statistics are for its operators).
  [[nodiscard]] Result<std::uint64_t> memory_bytes() const;
  /// Frees all retired memory that can be freed, has hash maps release their reserves, and returns
  /// empty memory to the operating system.
  /// Cost: linear in the memory returned; the locks of all hash maps.
  void trim();

 private:
  friend class client::StoreImpl;
  explicit Store(std::unique_ptr<client::StoreImpl> impl);
  std::unique_ptr<client::StoreImpl, client::DeleteBehind> impl_;
};

}  // namespace espalier
