// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the ordered map: requests, answers, options. Plain data, no behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

/// One item as a walk delivers it. The bytes belong to the map and are valid only until the call
/// that received them returns.
struct Item {
  std::string_view key;
  std::string_view value;
  Version version = 0;  ///< see Found::version
};

/// What a write did.
struct Written {
  Version version = 0;  ///< the write version; 0 if nothing was applied or versions are off
  /// insert: the key was absent; update, erase: it was present; put and batches: always
  bool applied = false;
  bool existed = false;  ///< the key was present before; batches: at least one of them was
};

/// What a map is made of. The defaults suit 16-byte keys and values.
struct MapOptions {
  std::uint32_t node_bytes = 8192;  ///< power of two, 512 to 65536
  std::uint32_t log_bytes = 512;    ///< log block of a leaf, 0 (none) to 2048; multiple of 64
  /// off: faster writes, scans no longer linearizable, no snapshots
  bool versions = true;
  /// old versions that snapshots may hold
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  /// what a crash may lose of it; nothing: what its store promises. With `none` it is empty after
  /// each start, and may do without versions; in a store without a data folder all are so
  std::optional<Durability> durability{};
};

/// How far the log of a durable store is, in numbers of records, which it counts in the order in
/// which it takes them. Those of one run of the store alone compare: after a crash numbers of
/// records that were lost are those of others.
struct DurableState {
  std::uint64_t recorded = 0;  ///< the newest record
  std::uint64_t durable = 0;   ///< all up to this one are on the disk
  /// Of which run of the store these are, another number after each start; 0: an older node, which
  /// does not say.
  std::uint64_t run = 0;
};

/// Numbers about one map, taken without stopping it (each is right, but not all at one instant).
struct MapStats {
  std::uint64_t items = 0;  ///< live items
  std::uint64_t leaves = 0;
  std::uint64_t interior_nodes = 0;
  std::uint32_t height = 0;         ///< levels, a lone leaf being 1
  std::uint64_t node_bytes = 0;     ///< memory of nodes in the tree
  std::uint64_t value_bytes = 0;    ///< memory of out-of-line values
  std::uint64_t retired_bytes = 0;  ///< memory unlinked and not yet free
  std::uint64_t log_merges = 0;
  std::uint64_t splits = 0;           ///< leaf splits
  std::uint64_t redistributions = 0;  ///< splits avoided by giving items to a sibling
  std::uint64_t merges = 0;           ///< node merges
  Version read_version = 0;
  Version write_version = 0;
  std::uint64_t snapshots = 0;
};

/// How a client reads the maps and hash maps of a node, and tables that it reads whole
/// (Table::read_rows).
enum class Access : std::uint8_t {
  rpc = 0,        ///< it asks the node, which answers
  one_sided = 1,  ///< it walks the maps itself, by READs of the node's memory
  /// The same, by READs that carry the key: switches on the way that know the map's tree send them
  /// to the leaf (espalier switch), and where none does the node finds it.
  in_network = 2,
  /// It asks, and each get of a map is one datagram of UDP, with its answer in another, which no
  /// connection orders; what is lost, or too long for that, is asked again as by rpc.
  datagram = 3,
};

/// What a store of maps is made of.
struct StoreOptions {
  /// limit on memory in use; 0: three quarters of the machine's
  std::uint64_t memory_bytes_max = 0;
  /// threads (of any process) that may use the store at a time
  std::uint32_t participants_max = 256;
  /// explicit ones where there are some, else transparent ones
  bool huge_pages = true;
  /// connect: how gets, floors and scans outside snapshots are done. A node offers
  /// its memory where it was started with node.one_sided, by shm: and roce addresses, and those
  /// that carry a key by roce addresses only; who may read one map so may read the whole store.
  /// Datagrams it takes where it was started with node.datagrams, whatever address is connected to.
  Access access = Access::rpc;
  /// connect, with one_sided or in_network: what each thread and each pipeline may remember of
  /// nodes of the maps that it reads, so that a get asks for its leaf alone; taken as it is used.
  /// 0: nothing is remembered, and a get walks down from the root
  std::uint64_t cache_bytes = std::uint64_t{32} << 20;
  /// connect: as whom, which both sides prove; a node that does not know it is not talked to. None:
  /// as ESPALIER_SECRET_FILE says
  ClientSecret secret{};
  /// connect, by unix:PATH, shm:PATH or roce+memif:PATH: the number of the user as whom the node
  /// runs. A node of this process's user or of root is always taken for the one that is meant, and
  /// so is one at a path that only root, this user and the node's can change; any other is refused,
  /// not_permitted (detail 7). None: as ESPALIER_NODE_USER says, a name or number
  std::optional<std::uint32_t> node_user{};
  /// open: whether ordered maps and hash maps that keep versions share one clock: then one
  /// transaction may write several of them (Store::transact). Their versions are numbers of one
  /// sequence, which all their writers take from. A node has node.shared_clock
  bool shared_clock = false;
  /// open: what Expr::matches takes, regular_expressions() of espalier/regex.hpp. None: queries
  /// with it are refused, unsupported; nodes have their own
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

/// One operation for a Pipeline. The bytes that it points to must live until its completion.
///
/// Ranges: `scan` takes [key, high), ascending. `scan_reverse` takes the same set [key, high) and
/// delivers it descending. An empty `key` is below all keys, an empty `high` is above all keys.
/// `scan_floor` takes [floor(key), high], both ends included; without a floor it starts at key.
struct Request {
  Op op = Op::invalid;
  std::uint32_t limit = 0;  ///< scans: at most so many items; 0: no limit
  std::uint64_t tag = 0;    ///< handed back in the completion, not looked at
  std::string_view key{};
  std::string_view high{};   ///< scans
  std::string_view value{};  ///< put, insert, update
};

/// The answer to one Request. `key` and `value` are valid only during Handler::done.
struct Completion {
  std::uint64_t tag = 0;
  Op op = Op::invalid;
  bool ok = false;       ///< false: see `error`
  bool found = false;    ///< get, floor: there is one; writes: Written::existed
  bool applied = false;  ///< writes: Written::applied
  Error error{};
  Version version = 0;       ///< reads: version of the item; writes: the write version
  Version read_version = 0;  ///< reads: the version at which the answer holds
  std::uint64_t items = 0;   ///< scans: items delivered
  std::string_view key{};    ///< floor: the key found
  std::string_view value{};  ///< get, floor: the value found
};

/// Receives answers. Calls come on the thread that runs the Pipeline; they must not use that
/// Pipeline and should be short, for all walks in flight wait meanwhile. They must not throw: that
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
