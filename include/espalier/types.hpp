// SPDX-License-Identifier: Apache-2.0
// Types of the ordered map: requests, completions, options. Plain data, no behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "espalier/client_secret.hpp"
#include "espalier/error.hpp"
#include "espalier/kind.hpp"

namespace espalier {

namespace table {
class RegexCompiler;
}

/// Numbers writes of one map in the order in which they take effect. 0 is before every write.
using Version = std::uint64_t;

/// One item as a walk delivers it. The bytes belong to the map and are valid only until the
/// receiving call returns.
struct Item {
  std::string_view key;
  std::string_view value;
  Version version = 0;  ///< see Found::version
};

/// The result of a write.
struct Written {
  Version version = 0;  ///< the write version; 0 if nothing was applied or versions are off
  /// insert: the key was absent; update, erase: it was present; put and batches: always
  bool applied = false;
  bool existed = false;  ///< the key was present before; batches: at least one of them was
};

/// Options of a new map. The defaults suit 16-byte keys and values.
struct MapOptions {
  std::uint32_t node_bytes = 8192;  ///< power of two, 512 to 65536
  std::uint32_t log_bytes = 512;    ///< log block of a leaf, 0 (none) to 2048; multiple of 64
  /// off: faster writes, scans no longer linearizable, no snapshots
  bool versions = true;
  /// old versions that snapshots may hold
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  /// what a crash may lose of it; empty: the store's default. With `none` the map is empty after
  /// each start, and may do without versions; a store without a data folder only has such maps
  std::optional<Durability> durability{};
  /// Name of the map's group, 1 to 255 bytes; empty: that of StoreOptions::shared_clock, or no
  /// group. Maps and hash maps of one group share a clock, so a transaction may name several of
  /// them (Store::transact), and all their writers draw versions from one sequence. At most 64
  /// named groups in a store. Not for maps without versions, nor over several nodes
  std::string group{};
};

/// Progress of the log of a durable store, as numbers of records in log order. Compare numbers of
/// one run of the store only: after a crash, the numbers of lost records are reused.
struct DurableState {
  std::uint64_t recorded = 0;  ///< the newest record
  std::uint64_t durable = 0;   ///< all records up to this one are on the disk
  /// The run of the store, another number after each start; 0: an older node, which does not report
  /// it.
  std::uint64_t run = 0;
};

/// Statistics of one map, taken without stopping it. Each is right, but they are not one consistent
/// snapshot.
struct MapStats {
  std::uint64_t items = 0;  ///< live items
  std::uint64_t leaves = 0;
  std::uint64_t interior_nodes = 0;
  std::uint32_t height = 0;         ///< levels; 1: a single leaf
  std::uint64_t node_bytes = 0;     ///< memory of nodes in the tree
  std::uint64_t value_bytes = 0;    ///< memory of out-of-line values
  std::uint64_t retired_bytes = 0;  ///< memory unlinked but not yet free
  std::uint64_t log_merges = 0;
  std::uint64_t splits = 0;           ///< leaf splits
  std::uint64_t redistributions = 0;  ///< splits avoided by moving items to a sibling
  std::uint64_t merges = 0;           ///< node merges
  Version read_version = 0;
  Version write_version = 0;
  std::uint64_t snapshots = 0;
};

/// How a client reads the maps and hash maps of a node, and whole tables (Table::read_rows).
enum class Access : std::uint8_t {
  rpc = 0,        ///< requests to the node
  one_sided = 1,  ///< the client walks the maps itself, by READs of the node's memory
  /// One-sided, by READs that carry the key: switches on the path that know the map's tree redirect
  /// them to the leaf (espalier switch); otherwise the node finds it.
  in_network = 2,
  /// RPC, with each get of a map in one unordered UDP datagram, and its answer in another. A get
  /// that is lost, or too long for a datagram, is repeated as by rpc.
  datagram = 3,
};

/// Options of a store.
struct StoreOptions {
  /// limit on memory in use; 0: three quarters of the machine's memory
  std::uint64_t memory_bytes_max = 0;
  /// threads (of any process) that may use the store at a time
  std::uint32_t participants_max = 256;
  /// use explicit huge pages if available, else transparent ones
  bool huge_pages = true;
  /// connect: how gets, floors and scans outside snapshots are done. A node offers its memory if
  /// started with node.one_sided: over shm: and roce addresses; READs that carry a key over roce
  /// addresses only. A client that may read one map so may read the whole store. A node started
  /// with node.datagrams accepts datagrams, whatever address is connected to.
  Access access = Access::rpc;
  /// connect, with one_sided or in_network: size of the cache of nodes of each thread and of each
  /// pipeline, allocated as it is used. With it a get READs only its leaf. 0: no cache; a get walks
  /// down from the root
  std::uint64_t cache_bytes = std::uint64_t{32} << 20;
  /// connect: the client's identity. Authentication is mutual: the client refuses a node that does
  /// not know the secret. Empty: as ESPALIER_SECRET_FILE says
  ClientSecret secret{};
  /// connect, by unix:PATH, shm:PATH or roce+memif:PATH: user id of the node's process. A node of
  /// this process's user or of root is always accepted, and so is one at a path that only root,
  /// this user and the node's user can change; any other is refused with not_permitted (detail 7).
  /// Empty: as ESPALIER_NODE_USER says, a name or number
  std::optional<std::uint32_t> node_user{};
  /// open: whether ordered maps and hash maps that keep versions and name no group
  /// (MapOptions::group) form one group, so that one transaction may write several of them
  /// (Store::transact). All their writers then draw versions from one sequence. For a node:
  /// node.shared_clock
  bool shared_clock = false;
  /// open: the engine for Expr::matches, regular_expressions() of espalier/regex.hpp. Empty:
  /// queries with it are refused with unsupported. Nodes have their own
  std::shared_ptr<table::RegexCompiler> regexes{};
};

enum class Op : std::uint8_t {
  invalid = 0,
  get = 1,
  put = 2,     ///< insert or replace
  insert = 3,  ///< only if absent
  update = 4,  ///< only if present
  erase = 5,
  floor = 6,         ///< the largest key <= key
  scan = 7,          ///< items with key <= k < high, ascending
  scan_reverse = 8,  ///< the same items, descending
  scan_floor = 9,    ///< honeycomb's SCAN(Kl, Ku): from the floor of key up to and including high
};

/// One operation for a Pipeline. The memory it points to must live until its completion.
///
/// Ranges: `scan` takes [key, high), ascending. `scan_reverse` takes the same set [key, high) and
/// delivers it descending. An empty `key` is below all keys, an empty `high` is above all keys.
/// `scan_floor` takes [floor(key), high], both ends included; without a floor it starts at key.
struct Request {
  Op op = Op::invalid;
  std::uint32_t limit = 0;  ///< scans: at most so many items; 0: no limit
  std::uint64_t tag = 0;    ///< returned in the completion
  std::string_view key{};
  std::string_view high{};   ///< scans
  std::string_view value{};  ///< put, insert, update
};

/// The completion of one Request. `key` and `value` are valid only during Handler::done.
struct Completion {
  std::uint64_t tag = 0;
  Op op = Op::invalid;
  bool ok = false;       ///< false: see `error`
  bool found = false;    ///< get, floor: an item was found; writes: Written::existed
  bool applied = false;  ///< writes: Written::applied
  Error error{};
  Version version = 0;       ///< reads: version of the item; writes: the write version
  Version read_version = 0;  ///< reads: the version at which the answer holds
  std::uint64_t items = 0;   ///< scans: items delivered
  std::string_view key{};    ///< floor: the key found
  std::string_view value{};  ///< get, floor: the value found
};

/// Receives completions, on the thread that runs the Pipeline. Calls must not use that Pipeline,
/// and should be short, because all walks in flight wait meanwhile. Must not throw: an exception
/// ends the process.
class Handler {
 public:
  virtual ~Handler() = default;
  /// Called once for each request, in no particular order.
  virtual void done(const Completion& completion) = 0;
  /// Called with the next items of a scan, in key order. Returns false to end the scan early.
  virtual bool items(std::uint64_t tag, std::span<const Item> items);
};

}  // namespace espalier
