// SPDX-License-Identifier: Apache-2.0
// A store in this process whose contents lie in a folder: what a call has acknowledged is there
// again when the folder is opened the next time, after a crash of the process or of the machine. It
// is what a node with a data folder keeps, without the node (docs/durability.md). A library of its
// own, espalier::node, has it.
//
//   auto store = espalier::open_durable_store({.dir = "/var/lib/app/store"});
//   auto map = store->open_map("users");
//   if (!map) map = store->create_map("users");
//   map->put("alice", "1");                       // comes back once it is on the disk
//
// Writes. A call that writes comes back when its record is on the disk; meanwhile its thread holds
// nothing. Threads that write at a time share a flush, and so do the writes of a Pipeline and of a
// WriteBatch: many threads, pipelines and batches are what makes it fast. No reader, in whatever
// thread, sees what a crash can still lose.
//
// Where the log takes nothing any more, for its disk has failed or is full, a write that was on its
// way returns system (errno EIO), and may be there later, or not; new ones are refused with the
// log's error. Reads go on, and see what was durable. busy: too much waits for the disk, or the log
// is at its bound until a checkpoint is done; the call has changed nothing, and may be repeated.
//
// Refused with unsupported: maps and hash maps without versions, and embedding tables. Regions come
// back with zeros.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "espalier/kind.hpp"
#include "espalier/map.hpp"
#include "espalier/table_error.hpp"
#include "espalier/types.hpp"

namespace espalier {

/// How far the opening of a folder has come.
struct DataProgress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;  ///< about; more than there are
};

struct DataOptions {
  /// The folder; made, for this user alone, if only that is missing. One process uses it at a time.
  std::string dir;
  /// Of its log on the disk, 256 MiB to 1 TiB; at it, writes are refused with busy.
  std::uint64_t log_bytes_max = std::uint64_t{16} << 30;
  /// A checkpoint is written after so many bytes of log, 64 MiB to 1 TiB; then those can go.
  std::uint64_t checkpoint_log_bytes = std::uint64_t{1} << 30;
  /// sync, or async: then a call that writes comes back at once, readers see what a crash may lose,
  /// and what is lost was written within async_ms. Numbers, and that objects were made and dropped,
  /// are on the disk all the same. Of this opening alone.
  Durability durability = Durability::sync;
  /// 20 to 600000: of async, so old may become what is not on the disk; then calls that write wait.
  std::uint32_t async_ms = 1000;
  /// Of this opening alone: damage from this record on is passed, and all from there on is lost for
  /// good. Refused where nothing is damaged.
  std::optional<std::uint64_t> accept_loss_from{};
  /// Threads that apply what is read, 16 at most; 0: as many as there are cores for.
  std::uint32_t recovery_threads = 0;
  /// Is told now and then while the folder is opened, by the calling thread. None: no one is.
  std::function<void(const DataProgress&)> recovering{};
  /// Is told, once and by any thread, why the log takes nothing any more. None: no one is.
  /// Requires: it does not let go of the last handle of the store, whose end waits for the thread
  /// that calls it.
  std::function<void(const std::string&)> failed{};
  /// Is told, by a thread of the store's, why a checkpoint was not finished. None: no one is.
  /// Requires: as `failed`.
  std::function<void(const std::string&)> checkpoint_failed{};
};

/// Opens a folder, or makes one, and the store in it. The folder is closed, and what was written is
/// on the disk, once the store and all handles of its hash maps, tables, sequencers and regions are
/// gone; maps need the store, as ever. Of StoreOptions it takes those of open().
/// Cost: reads the newest checkpoint and the log behind it, and does what its records say, with
/// some threads; memory as the store has, up to 36 MiB for its log; four threads of its own.
/// Errors, with words: invalid_argument (a bound that cannot be); corrupt (the folder is another
/// process's, another version's, damaged, or what it has cannot be applied, as with too little
/// memory); as Store::open; system (detail: errno).
[[nodiscard]] TableResult<Store> open_durable_store(const DataOptions& data,
                                                    const StoreOptions& options = {});

}  // namespace espalier
