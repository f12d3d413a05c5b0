// SPDX-License-Identifier: Apache-2.0
// A durable store in this process: its contents lie in a folder. Every acknowledged write is
// present when the folder is opened again after a crash of the process or of the machine. The same
// engine runs inside a node with a data folder (docs/durability.md). Link espalier::node to use it.
//
//   auto store = espalier::open_durable_store({.dir = "/var/lib/app/store"});
//   auto map = store->open_map("users");
//   if (!map) map = store->create_map("users");
//   map->put("alice", "1");                       // returns once it is on the disk
//
// Writes. A writing call returns when its record is on the disk; its thread holds no lock
// meanwhile. Concurrent threads share a flush, and so do the writes of a Pipeline and of a
// WriteBatch: use threads, pipelines or batches for throughput. No reader in any thread sees a
// write that a crash can still lose.
//
// When the log fails or its disk is full, a write in flight returns system (errno EIO); it may or
// may not be present later. New writes fail with the log's error. Reads continue and see what was
// durable. busy: too many writes wait for the disk, or the log is at its bound until a checkpoint
// completes; the call has changed nothing and may be repeated.
//
// Unsupported in a durable store: maps and hash maps without versions, and ranking models.
// Regions come back zeroed.
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

/// Progress of recovery.
struct DataProgress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;  ///< an estimate, an upper bound
};

struct DataOptions {
  /// The folder. If only its last component is missing, it is created, for this user alone. One
  /// process uses it at a time.
  std::string dir;
  /// Bound of the log on the disk, 256 MiB to 1 TiB. At the bound, writes fail with busy.
  std::uint64_t log_bytes_max = std::uint64_t{16} << 30;
  /// A checkpoint is written after so many bytes of log, 64 MiB to 1 TiB; the log before it can
  /// then be deleted.
  std::uint64_t checkpoint_log_bytes = std::uint64_t{1} << 30;
  /// sync, or async. With async a writing call returns immediately, readers see writes that a crash
  /// may lose, and a crash loses only writes of the last async_ms. Numbers of sequences and the
  /// creation and removal of objects are durable in both modes. Applies to this opening alone.
  Durability durability = Durability::sync;
  /// For async, 20 to 600000: writes that are not durable get no older than this; beyond it,
  /// writing calls wait.
  std::uint32_t async_ms = 1000;
  /// Applies to this opening alone: accept damage from this record on, and discard everything from
  /// there on for good. Refused if nothing is damaged.
  std::optional<std::uint64_t> accept_loss_from{};
  /// Threads that apply the log in recovery, at most 16; 0: one for each available core.
  std::uint32_t recovery_threads = 0;
  /// Progress callback, called now and then by the calling thread during recovery. Empty: none.
  std::function<void(const DataProgress&)> recovering{};
  /// Called once, by any thread, with the reason when the log fails. Empty: none.
  /// Requires: it does not release the last handle of the store, because closing the store waits
  /// for the thread that calls it.
  std::function<void(const std::string&)> failed{};
  /// Called by a thread of the store with the reason when a checkpoint was not completed. Empty:
  /// none.
  /// Requires: as `failed`.
  std::function<void(const std::string&)> checkpoint_failed{};
};

/// Opens a folder, or creates one, and the store in it. The folder is closed, with all writes on
/// the disk, once the store and all handles of its hash maps, tables, sequencers and regions are
/// destroyed. Maps need the store, as always. Takes those of the StoreOptions that Store::open
/// takes.
/// Cost: reads the newest checkpoint and replays the log behind it, with several threads; memory as
/// the store has, and up to 36 MiB for the log; four threads.
/// Errors, with words: invalid_argument (an impossible bound); corrupt (the folder is in use by
/// another process, of another version or damaged, or its contents cannot be applied, e.g. for lack
/// of memory); as Store::open; system (detail: errno).
[[nodiscard]] TableResult<Store> open_durable_store(const DataOptions& data,
                                                    const StoreOptions& options = {});

}  // namespace espalier
