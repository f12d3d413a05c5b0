// SPDX-License-Identifier: Apache-2.0
// The ordered map as an embedded library: a Store holds Maps; a Map is used by synchronous calls
// from any thread, or through a Pipeline with many operations in flight on one thread.
//
// Every operation is linearizable, scans and batches included (unless a map's versions are off:
// then scans are not). Reads take no locks and never wait for a writer.
// Keys are 1 byte to max_key_bytes() long (460 for nodes of 8 KiB and more), in memcmp order;
// values 0 bytes to 16 MiB.
//
// Where memory runs out, be it that of the store (StoreOptions::memory_bytes_max) or the process's
// own, every call that returns a Result returns out_of_memory: it has changed nothing, holds
// nothing, and may be repeated. All other calls throw std::bad_alloc where the process has none,
// and have changed nothing either; but those that close, drop and destroy never do.
//
// Handles are for the process that made them. In a process that it forks, every call that needs the
// store, be it embedded or a node's, returns `forked` and does nothing, and their destructors do
// nothing; connect() and open() work there as anywhere (docs/fork.md).
//
// Cost is given in cold cache lines for 16-byte keys and values in 8 KiB nodes; "descent" is about
// 5 lines of the leaf, interior nodes being warm.
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

/// Deletes what stands behind a handle, but in a process that was forked since.
struct DeleteBehind {
  void operator()(StoreImpl* impl) const noexcept;
  void operator()(SnapshotImpl* impl) const noexcept;
  void operator()(PipelineImpl* impl) const noexcept;
};
}  // namespace client

/// A value that was read, with the version at which its item came to be. Items that have been
/// merged into a leaf's sorted block share that block's version, so a version may rise without a
/// change of value; it never stays the same when the value changes.
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

/// Several writes that take effect together or not at all. Cost: copies what it is given.
class WriteBatch {
 public:
  WriteBatch& put(std::string_view key, std::string_view value);
  WriteBatch& erase(std::string_view key);

  /// Conditions: checked at the moment of the write. If one fails, nothing is written.
  WriteBatch& only_if_absent(std::string_view key);
  WriteBatch& only_if_present(std::string_view key);
  WriteBatch& only_if_value(std::string_view key, std::string_view value);
  /// Holds if the key's item still has the version that a read returned. May fail spuriously after
  /// a reorganisation of the leaf (see Found) or a restart: read again, and try again. With a map's
  /// versions off all are 0, so it says no more than that the key is present: take only_if_value.
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

    /// It points into this.
    [[nodiscard]] espalier::Condition condition() const { return {kind, version, value}; }
  };
  [[nodiscard]] const std::vector<Write>& writes() const { return writes_; }
  [[nodiscard]] const std::vector<Check>& conditions() const { return conditions_; }

 private:
  std::vector<Write> writes_;
  std::vector<Check> conditions_;
};

/// Receives runs of items in order; returns false to stop. Must not throw: that ends the process.
using ItemSink = std::function<bool(std::span<const Item>)>;

struct ScanOptions {
  std::uint64_t limit = 0;  ///< at most so many items; 0: no limit
  bool reverse = false;     ///< descending
  /// honeycomb's SCAN(Kl, Ku): begins at the floor of low, high included. Ascending only: together
  /// with `reverse` it is refused with invalid_argument, and nothing is delivered.
  bool from_floor = false;
  /// The range is cut into at most so many parts (and at the borders of shards), by the nodes of
  /// the tree above its leaves, and these are walked at the same time, as of one version, and
  /// delivered in order: worthwhile where a walk waits for what is far, and the range ends
  /// somewhere. Up to 256 KiB of each part are kept until its turn comes. 0 and 1: one; at most
  /// kPartsMax. Cost: of each part a descent; before them one round trip where the map lies
  /// elsewhere, and that of Map::snapshot, but of a client that walks by itself one READ. Errors:
  /// besides, snapshot_expired, unsupported (an older node), invalid_argument (too many).
  std::uint32_t parts = 0;
  static constexpr std::uint32_t kPartsMax = 64;
};

/// A consistent view of a map at one version. While it lives, old versions are kept for it, up to
/// MapOptions::snapshot_bytes_max for all snapshots of the map together, and a quarter of the
/// store's memory for those of all maps; beyond that, and where writes find no memory, the oldest
/// snapshots expire and their calls return snapshot_expired. Thread: any.
///
/// Cost of reads: as in Map, and one leaf more for each change of the leaf's node since then.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  [[nodiscard]] Version version() const;
  /// Errors, of all four: key_too_long, snapshot_expired, too_many_participants; scan also
  /// invalid_argument, see ScanOptions.
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
  /// The value of `key`, if it is there. Cost: one descent, 2 to 3 lines for the item.
  /// Errors: key_too_long, too_many_participants.
  [[nodiscard]] Result<std::optional<Found>> get(std::string_view key) const;
  /// As get, into a string that keeps its capacity. Returns whether the key is there. Cost: as get,
  /// without allocating.
  [[nodiscard]] Result<bool> get(std::string_view key, std::string& value) const;

  /// Inserts or replaces. Cost: a descent, 2 lines of log; one in about ten merges the log (a copy
  /// of the node). Errors: key_too_long, value_too_long, out_of_memory, too_many_participants.
  Result<Written> put(std::string_view key, std::string_view value);
  /// Writes only if the key is absent (Written::applied tells). Cost and errors as put.
  Result<Written> insert(std::string_view key, std::string_view value);
  /// Writes only if the key is present. Cost and errors as put.
  Result<Written> update(std::string_view key, std::string_view value);
  /// Removes the key if present. Cost and errors as put; works in a full store (a merge of the log,
  /// and of nodes that have become too empty, takes buffers that were put by for it).
  Result<Written> erase(std::string_view key);

  /// Reads the value (nullopt: absent), calls `change`, and writes what it returns (nullopt: erase)
  /// if nothing came between; else starts again. `change` may run several times, holding no lock.
  /// Cost: a get and a put for each try. Errors as put.
  Result<Written> modify(
      std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);

  /// Writes `desired` (nullopt: erases) if the value is `expected` (nullopt: if the key is absent).
  /// Cost: as a put. Errors: condition_failed, and as put.
  Result<Written> compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                                  std::optional<std::string_view> desired);
  /// Adds to a counter, which is a value of 8 bytes, little-endian; an absent one is 0. Returns the
  /// sum, which wraps round. Cost: a get and a put for each try; on a node one round trip.
  /// Errors: invalid_argument (the value has another length, which is the detail), and as put.
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount);

  /// Writes all of the batch under one version if all its conditions hold, or nothing. Later writes
  /// of a key win over earlier ones, wherever its conditions stand among them.
  ///
  /// Written::applied is true even if all it did was to erase what was not there; Written::existed
  /// tells whether at least one of the keys that it writes was there before. (Conditions on keys
  /// that it does not write do not count.)
  ///
  /// Readers see all of it or nothing, scans included. With the map's versions off only writers do
  /// (writes of single keys, modify, other batches and their conditions); a get or a scan sees each
  /// key whole, but may see one key after the batch and another before it.
  ///
  /// Cost: a descent for each write and condition, and the map's structure lock, for which batches
  /// and changes of structure wait for each other; other writers wait for its leaves only.
  ///
  /// Errors: condition_failed (detail: which condition, counted from 0 in the order in which they
  /// were added; of several that fail, the first), and as put; invalid_argument if it has no writes
  /// or more than 65536 writes or conditions.
  Result<Written> write(const WriteBatch& batch);

  /// Delivers the items of [low, high) (see ScanOptions) as of one version, and returns their
  /// number. An empty low is below all keys, an empty high above all keys. The sink must not write
  /// to this map. Cost: a descent, then 0.7 lines for each item, asked for ahead of time where the
  /// scan ascends; a descent more where the floor lies in another leaf.
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

  /// Pins the newest released version. Cost: a lock of the store's, no line of the map; old
  /// versions stay until it goes. Errors: unsupported (versions off), too_many_participants.
  [[nodiscard]] Result<Snapshot> snapshot() const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const MapOptions& options() const;
  [[nodiscard]] std::uint32_t max_key_bytes() const;
  /// Cost: reads counters, and a lock of the store's; on a node one round trip.
  /// Errors: of a node's map as of its other calls, connection_lost first; not_found (it was
  /// dropped). A map of several nodes tells nothing while one of them does not answer.
  [[nodiscard]] Result<MapStats> stats() const;

  /// Checks the whole structure of this map and of all others of its store, whose memory is one:
  /// order, fences, fill, versions, reachability, predecessors, and buffers in use + free + waiting
  /// = all. Returns what is wrong, one sentence each, at most 20; empty if all is well. Cost: reads
  /// all of the store.
  /// Requires: nobody writes to any map of the store meanwhile, or makes or drops one.
  [[nodiscard]] std::vector<std::string> audit() const;

 private:
  friend class Store;
  friend class Pipeline;
  friend class client::MapImpl;
  explicit Map(client::MapImpl* impl) : impl_(impl) {}
  client::MapImpl* impl_;
};

/// Many operations in flight on one thread: walks wait for memory together instead of one by one.
/// Thread: one at a time.
class Pipeline {
 public:
  /// in_flight: 1 to 256 walks at a time; 24 to 32 is best for most memories. Cost: memory for so
  /// many walks, about 6 KiB each; open it once and keep it.
  static Result<Pipeline> open(const Map& map, std::uint32_t in_flight = 32);
  /// The same of a hash map: one of this process has its requests in a rolling queue, where up to
  /// 40 are brought near at a time, and stay until later ones or poll() move them on. Floors and
  /// scans complete with `unsupported`. Include hash_map.hpp. Cost: 20 KiB; of a node a lane.
  /// Errors: invalid_argument (`in_flight`), and those of the hash map's calls.
  static Result<Pipeline> open(const HashMap& map, std::uint32_t in_flight = 32);
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  /// Runs all requests to completion, in no particular order; requests of one call are concurrent
  /// with each other. Cost: per request as in Map, but with the misses overlapped. (In a forked
  /// process all that is run or submitted completes with `forked`, at once; what was in flight when
  /// it was forked completes in its parent alone.)
  void run(std::span<const Request> requests, Handler& handler);

  /// Adds requests without waiting. `requests` and what they point to must live until completed.
  /// Cost: none for each request.
  void submit(std::span<const Request> requests, Handler& handler);
  /// Works until at least one request has completed or nothing is left; returns how many are left.
  /// Cost: as in run().
  std::size_t poll();
  /// Does what can be done now, waiting for nothing; returns how many are left. For whoever has
  /// more to submit, or other work, before the next request completes. Cost: as in run().
  std::size_t advance();

 private:
  explicit Pipeline(std::unique_ptr<client::PipelineImpl> impl);
  std::unique_ptr<client::PipelineImpl, client::DeleteBehind> impl_;
};

/// Memory with any number of maps and tables in it.
class Store {
 public:
  /// Cost: reserves addresses; memory is taken as it is used.
  /// Errors: system (no memory to reserve), invalid_argument.
  static Result<Store> open(const StoreOptions& options = {});
  /// The same with calls and kinds of the program's own. Include offload.hpp. Errors: besides,
  /// invalid_argument (two of a number, or a number that programs may not have).
  static Result<Store> open(const StoreOptions& options, const Offloads& offloads);
  /// Opens the store at an address: "embedded" is one of its own, as open() makes it; "unix:PATH"
  /// is that of the node which listens there on this machine; "roce://HOST[:PORT]/SERVICE",
  /// "shm:PATH" and "ofi://PROVIDER/HOST[:PORT]" are those of a node by way of a fabric;
  /// "chain://ADDRESS,ADDRESS" that of the node among these which is the head of their chain, which
  /// is looked for again when its connection is lost, for ten seconds (docs/chains.md). The maps
  /// are then the node's, and everything else is the same, but for what can only be done beside the
  /// memory: trim() does nothing, and memory_bytes() and audit() say that they cannot.
  ///
  /// A lost connection fails what is in flight with connection_lost: a read may be repeated, and a
  /// write without an answer may or may not be done; nothing is ever done twice. The next call
  /// connects again, to whatever node listens then, and finds maps by their names. Pipelines and
  /// snapshots end with their connection. Through a fabric a connection is lost only when the node
  /// does not answer for 10 s, or does not know this client any more; before, both sides go on
  /// where they were. While there is such a connection, one thread of the process, which blocks
  /// all signals, answers for those that nobody works with just now.
  ///
  /// Both sides authenticate each other by StoreOptions::secret, or else by that of the file which
  /// ESPALIER_SECRET_FILE names (docs/security.md). Without either, none does.
  ///
  /// Errors: invalid_argument (no such kind of address; that file has no such line), system (nobody
  /// listens there, or not for us; ETIMEDOUT: nobody answers; that file cannot be read),
  /// not_permitted (detail 4: the node wants a secret; 5: it knows another; 6: it knows none;
  /// 7: see StoreOptions::node_user),
  /// too_many_participants, unsupported (another version), corrupt, connection_lost.
  static Result<Store> connect(std::string_view address, const StoreOptions& options = {});
  /// Why connect() takes no such address: a sentence with the address and what was expected. Empty:
  /// it has a form that connect() takes.
  static std::string explain_address(std::string_view address);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  /// Threads must have stopped using its maps; snapshots and pipelines must be gone.
  ~Store();

  /// Makes an empty map; names have 1 to 255 bytes. Cost: up to a mebibyte, for nodes that are put
  /// by for erases. Errors: already_exists (detail: the ObjectKind of what has the name, which may
  /// be a table), invalid_argument, out_of_memory.
  Result<Map> create_map(std::string_view name, const MapOptions& options = {});
  /// Errors: not_found; wrong_kind (it is no map; detail: its ObjectKind).
  [[nodiscard]] Result<Map> open_map(std::string_view name) const;
  /// Removes a map and gives its memory back. Its handles must no longer be used. Cost: reads the
  /// map's nodes. Errors: not_found, wrong_kind.
  Result<void> drop_map(std::string_view name);
  /// The names of all maps, in order; on a node of those that this client may see. Cost: by their
  /// number; on a node one round trip. Errors: those of a call to a node, connection_lost first.
  [[nodiscard]] Result<std::vector<std::string>> map_names() const;

  /// Makes an empty table, of rows in clear. Its name is no map's either. Include table.hpp. Cost:
  /// 64 KiB. Errors: already_exists (detail: the ObjectKind of what has it), invalid_argument,
  /// out_of_memory; of this and the next ones also unsupported (an older node).
  TableResult<Table> create_table(std::string_view name, const Schema& schema);
  /// The same of any rows. Errors: besides, invalid_argument (a key for rows in clear).
  TableResult<Table> create_table(std::string_view name, const Schema& schema,
                                  const TableOptions& options);
  /// Errors: not_found; wrong_kind (it is no table; detail: its ObjectKind).
  [[nodiscard]] TableResult<Table> open_table(std::string_view name) const;
  /// The same with a key. Errors: besides, invalid_argument (its rows are in clear).
  [[nodiscard]] TableResult<Table> open_table(std::string_view name,
                                              const TableOptions& options) const;
  /// Removes a table; queries of it end with `dropped`, and its memory goes back with the last of
  /// them. Errors: not_found, wrong_kind.
  TableResult<void> drop_table(std::string_view name);
  /// By name.
  [[nodiscard]] TableResult<std::vector<TableDescription>> tables() const;

  /// Takes `count` numbers in a row from the counter of this name, which begins at 0 and gives each
  /// number once; returns the first. These live beside the maps, under names of their own, as long
  /// as the store, and can neither be sealed nor dropped: sequencer.hpp has what can. Cost: a lock
  /// that all of them share.
  /// Errors: invalid_argument (a name has 1 to 255 bytes; a count of 0), out_of_memory (there are
  /// 65536 sequencers), exhausted (numbers end at 2^63 - 1).
  Result<std::uint64_t> sequence(std::string_view name, std::uint32_t count = 1);

  /// Makes a sequencer, whose numbers begin at `first`. Its name is no map's or table's either.
  /// Include sequencer.hpp. Errors: already_exists (detail: the ObjectKind of what has the name),
  /// invalid_argument (a name has 1 to 255 bytes; `first` is too large), out_of_memory; of this and
  /// the next ones also unsupported (an older node).
  Result<Sequencer> create_sequencer(std::string_view name, std::uint64_t first = 0);
  /// A handle of the epoch that it has now. Errors: not_found; wrong_kind (it is no sequencer;
  /// detail: its ObjectKind).
  [[nodiscard]] Result<Sequencer> open_sequencer(std::string_view name) const;
  /// Removes a sequencer. Errors: not_found, wrong_kind.
  Result<void> drop_sequencer(std::string_view name);
  /// By name.
  [[nodiscard]] Result<std::vector<SequencerDescription>> sequencers() const;

  /// Makes an empty hash map, with the options' defaults. Its name is no other object's. Include
  /// hash_map.hpp. Cost: about 100 KiB. Errors: already_exists (detail: the ObjectKind of what has
  /// the name), invalid_argument (a name has 1 to 255 bytes; the options), out_of_memory, system
  /// (no seed can be drawn); of this and the next ones also unsupported (an older node).
  Result<HashMap> create_hash_map(std::string_view name);
  Result<HashMap> create_hash_map(std::string_view name, const HashMapOptions& options);
  /// Errors: not_found; wrong_kind (it is no hash map; detail: its ObjectKind).
  [[nodiscard]] Result<HashMap> open_hash_map(std::string_view name) const;
  /// Removes a hash map; calls of its handles say not_found from then on, and its memory goes back
  /// with the last of them. Errors: not_found, wrong_kind.
  Result<void> drop_hash_map(std::string_view name);
  /// By name; on a node those that this client may see. Cost: by their number.
  [[nodiscard]] Result<std::vector<HashMapDescription>> hash_maps() const;

  /// Makes an empty embedding table. Its name is no other object's. Include embedding_table.hpp.
  /// Cost: 32 KiB. Errors: already_exists (detail: the ObjectKind of what has the name),
  /// invalid_argument (name or options), out_of_memory.
  Result<EmbeddingTable> create_embedding_table(std::string_view name,
                                                const EmbeddingOptions& options);
  /// Errors: not_found; wrong_kind (it is no embedding table; detail: its ObjectKind).
  [[nodiscard]] Result<EmbeddingTable> open_embedding_table(std::string_view name) const;
  /// Removes an embedding table; calls of its handles say not_found from then on, and its memory
  /// goes back when the last call that uses it has ended. Errors: not_found, wrong_kind.
  Result<void> drop_embedding_table(std::string_view name);
  /// Gives an embedding table another name, in one step, e.g. a new version the name of the one
  /// that is in use: whoever asks by that name meanwhile is answered by the one or by the other.
  /// Handles follow their name: what is asked next by those of either name goes to the table that
  /// has it now; where that has rows of another dimension, it is refused as outdated.
  /// Errors: not_found (detail 0: no table has `name`; 1: none has `to`, and names were to be
  /// exchanged), already_exists (detail: the ObjectKind of what has the name), wrong_kind,
  /// invalid_argument (`to` is no name, or the same).
  Result<void> rename_embedding_table(std::string_view name, std::string_view to,
                                      Displaced displaced = Displaced::refused);

  /// Makes a ranking model of the bytes of a file (docs/formats/model.md), up to 30 MiB. Its name
  /// is no other object's. Include ranking_model.hpp.
  /// Cost: its weights, in pages of 2 MiB. Errors: already_exists (detail: the ObjectKind of what
  /// has the name), invalid_argument (the name, or in words what is wrong with the file),
  /// unsupported (a store with a log), out_of_memory; not_permitted, too, where a role for some
  /// names is to read tables of others.
  std::expected<RankingModel, TableError> create_ranking_model(std::string_view name,
                                                               std::string_view file);
  /// Errors: not_found; wrong_kind (it is no model; detail: its ObjectKind).
  [[nodiscard]] Result<RankingModel> open_ranking_model(std::string_view name) const;
  /// Removes a model; calls of its handles say not_found from then on. Errors: not_found,
  /// wrong_kind.
  Result<void> drop_ranking_model(std::string_view name);

  /// Makes a region of so many bytes, all zeros. Its name is no other object's. Include region.hpp.
  /// Cost: a file in memory and a descriptor; pages are taken as they are touched, and count whole
  /// from the start. Errors: already_exists (detail: the ObjectKind of what has the name),
  /// invalid_argument (a name has 1 to 255 bytes; no bytes), out_of_memory (the store's limit, or
  /// the process has 512 regions), system; of this and the next ones also unsupported (an older
  /// node).
  Result<Region> create_region(std::string_view name, std::uint64_t bytes);
  /// Errors: not_found; wrong_kind (it is no region; detail: its ObjectKind); of a node,
  /// not_permitted (detail 8: it takes the role of a peer).
  [[nodiscard]] Result<Region> open_region(std::string_view name) const;
  /// Removes a region: when this has returned, nobody can change its bytes any more, or read them.
  /// Its memory goes back with the last of those who use it. Errors: not_found, wrong_kind.
  Result<void> drop_region(std::string_view name);
  /// By name; on a node those that this client may see. Cost: by their number.
  [[nodiscard]] Result<std::vector<RegionDescription>> regions() const;

  /// Reads, conditions and writes of several ordered maps and hash maps at one moment, all of them
  /// or none; returns what it has read. Strictly serialisable, for plain reads and writes beside it
  /// too: who has seen one of its writes sees all. Include transaction.hpp. Cost: of each key what
  /// its write costs, and the structure locks of its ordered maps; on a node one round trip.
  /// Errors: condition_failed (detail: which step, counted from 0 in the order in which they were
  /// added, of several that fail the first; nothing was written), not_found (detail: which of the
  /// maps, counted likewise), unsupported (detail: likewise, of one that keeps no versions, is no
  /// map, or has another clock than the first: StoreOptions::shared_clock), invalid_argument (no
  /// step; more than 64 keys, 256 steps or 1 MiB), key_too_long, value_too_long (of all values that
  /// it reads, too: 1 MiB), exhausted (keys of a hash map that were made for it), out_of_memory,
  /// too_many_participants, wrong_shard, busy; system (it may or may not be done: detail 5, the log
  /// has failed; 12, there is no memory for what a node has answered, or what it had read when it
  /// was done is not known any more); of a node not_permitted, connection_lost (it may or may not
  /// be done).
  /// Whose connection is lost is asked for again by its number, for ten seconds: connection_lost
  /// then.
  Result<Transacted> transact(const Transaction& transaction);
  /// The same under the client's next number, of which nothing is done if it was done before: the
  /// first answer comes again. The number is used up (client.next is one more) by an answer, and by
  /// what refuses it for good; after connection_lost, system, busy, out_of_memory and
  /// too_many_participants it is to be asked for again, or given to another transaction.
  /// Thread: one at a time for each client.
  /// Errors: besides, outdated (the store does not know the client (detail 1), or its number was
  /// acknowledged (2): nothing was done now), already_exists (the number is that of another
  /// transaction, which may be done).
  Result<Transacted> transact(const Transaction& transaction, NumberedClient& client);
  /// A client of numbered transactions, which this store knows until it is forgotten.
  /// Errors: busy, system (no number can be drawn); unsupported (an older node); of a node
  /// not_permitted, connection_lost.
  Result<NumberedClient> make_numbered_client();
  /// From now on nothing is done for the client. Errors: besides, outdated (it is not known), busy
  /// (a transaction of it runs).
  Result<void> forget_numbered_client(const NumberedClient& client);

  /// How far the log of a durable store is: what was answered before this is asked has records at
  /// or below `recorded`, and all records at or below `durable` are on the disk. So a client of a
  /// store of Durability::async, which keeps a number of records after a write, knows later whether
  /// that is safe, but within one run of the node alone: after a crash the numbers of records that
  /// were lost are those of others, and a call after a lost connection reaches that other run
  /// without a word. So whoever may have met one reads anew what it wrote. Shards of a map on other
  /// nodes have logs of their own. Cost: a lock; on a node one round trip. Errors: unsupported (the
  /// store is in memory alone; an older node); of a node connection_lost.
  [[nodiscard]] Result<DurableState> durable_state() const;
  /// The same, once all is on the disk that was answered before. Cost: besides, up to two flushes
  /// of the disk. Errors: besides, system (detail 5: it never will be, for the log has failed).
  Result<DurableState> await_durable();

  /// Asks for a call that a program has defined for its node, or for this store, which concerns no
  /// object; returns its reply. Include offload.hpp. Cost: on a node one round trip.
  /// Errors: those of the call, perhaps with its words; invalid_argument (a request of none of the
  /// row's lengths), unsupported (there is no such call; detail: its number), corrupt (a reply that
  /// is longer than its row says); of a node not_permitted, connection_lost.
  TableResult<std::string> call(const OffloadRow& row, std::string_view request = {});

  /// Makes an object of a kind that a program has defined, of what the kind takes as a form. Its
  /// name is no other object's. Include offload.hpp. Errors: those of the kind; already_exists
  /// (detail: the ObjectKind of what has the name), invalid_argument (a name has 1 to 255 bytes;
  /// the form is too long), unsupported (there is no such kind).
  TableResult<ObjectHandle> create_object(const KindRow& kind, std::string_view name,
                                          std::string_view form = {});
  /// Errors: not_found; wrong_kind (detail: its ObjectKind); unsupported (there is no such kind).
  [[nodiscard]] TableResult<ObjectHandle> open_object(const KindRow& kind,
                                                      std::string_view name) const;
  /// Removes one; calls of its handles say not_found from then on. Errors: not_found, wrong_kind.
  Result<void> drop_object(const KindRow& kind, std::string_view name);
  /// The names of all of a kind, in order; on a node of those that this client may see.
  [[nodiscard]] Result<std::vector<std::string>> object_names(const KindRow& kind) const;

  /// Which pages carry the memory, for people: "explicit 2 MiB pages", "transparent huge pages",
  /// "4 KiB pages (why)".
  [[nodiscard]] const std::string& page_message() const;
  /// Bytes taken from the operating system and not given back.
  /// Errors: unsupported (a store that is elsewhere: its node's numbers are for those who run it).
  [[nodiscard]] Result<std::uint64_t> memory_bytes() const;
  /// Frees what waits and can be freed, has hash maps give up what they have in reserve, and gives
  /// empty memory back to the operating system. Cost: by the memory that is given back; the locks
  /// of all hash maps.
  void trim();

 private:
  friend class client::StoreImpl;
  explicit Store(std::unique_ptr<client::StoreImpl> impl);
  std::unique_ptr<client::StoreImpl, client::DeleteBehind> impl_;
};

}  // namespace espalier
