// SPDX-License-Identifier: Apache-2.0
// The folder of a durable node: the store's identity, and the log of its changes
// (docs/design/durability.md).
//
//   DIR/lock    locked while a node uses the folder
//   DIR/store   the store's identity (log/store_file.hpp)
//   DIR/log/    the log, and the checkpoint at which it begins
//
// Thread: one opens and destroys it.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "catalog/unflushed_age.hpp"
#include "engine/checkpoint_run.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/registry.hpp"
#include "log/log.hpp"
#include "log/posix_folder.hpp"
#include "node/config.hpp"

namespace espalier::offload {
struct Services;
}

namespace espalier::node {

/// Progress of recovery.
struct RecoveryProgress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;      ///< of them
  std::uint64_t bytes_max = 0;  ///< of the files to read: slightly more than `bytes` becomes
  std::uint64_t ns = 0;         ///< since recovery began
};

class DataFolder {
 public:
  struct Terms {
    const Config::Data& data;
    std::span<const offload::Kind> own_kinds;
    std::uint64_t segment_bytes = log::WriterOptions{}.segment_bytes;
    /// For a member of a chain: receives each record of the log before it is applied; changes to
    /// the store are then recorded only after record() is called.
    log::ApplyRecord show{};
    /// Called once, by any thread, with the reason why nothing more is acknowledged.
    std::function<void(const std::string&)> failed{};
    /// Called periodically by the opening thread. None: not reported.
    std::function<void(const RecoveryProgress&)> recovering{};
    /// Threads that apply records, ParallelRedo::kThreadsMax at most; 0: by the number of cores.
    std::uint32_t threads = 0;
  };
  /// Applies the folder's contents to an empty store, and begins to record: from then on changes to
  /// the store are durable (unless Terms::show is set). Errors: words for people, of the folder, of
  /// the log, of a record that cannot be applied, of a kind that makes no records. Cost: reads all
  /// of it, and repeats its writes, on several threads.
  static std::expected<std::unique_ptr<DataFolder>, std::string> open(const Terms& terms,
                                                                      offload::Services& services);
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  /// Makes pending changes durable. Requires: the store and its objects are destroyed.
  ~DataFolder();

  /// Begins to record a store, if open() has not. The store's user waits until the records that
  /// were handed over are durable. Errors: why it cannot. Requires: no thread uses it meanwhile.
  std::expected<void, std::string> record(offload::Services& services,
                                          std::span<const offload::Kind> own_kinds);

  [[nodiscard]] log::LogWriter& writer() { return log_->writer(); }
  [[nodiscard]] const log::LogWriter& writer() const { return log_->writer(); }
  [[nodiscard]] log::LogFolder& log_folder() { return *log_folder_; }
  /// The number of the folder's store.
  [[nodiscard]] std::uint64_t store() const { return store_; }
  /// What recovery found, for a line to people.
  [[nodiscard]] const log::Recovered& recovered() const { return log_->recovered(); }
  [[nodiscard]] std::uint64_t applied_records() const { return applied_.records; }
  [[nodiscard]] std::uint64_t applied_bytes() const { return applied_.bytes; }
  /// Bytes of the files from which they were read; 0 if progress was not asked for.
  [[nodiscard]] std::uint64_t expected_bytes() const { return applied_.bytes_max; }
  [[nodiscard]] std::uint64_t applied_ns() const { return applied_ns_; }
  /// The inputs of a checkpoint; the folder outlives it. Requires: as open().
  [[nodiscard]] offload::CheckpointRun::Terms checkpoint_terms(
      offload::Services& services, std::span<const offload::Kind> own_kinds) {
    return {services, own_kinds, *log_folder_, store_, log_->writer()};
  }

 private:
  explicit DataFolder(const std::string& path) : path_(path), folder_(path) {}
  std::expected<void, std::string> begin(const Terms& terms, offload::Services& services);
  std::expected<void, std::string> make_folders();
  std::expected<void, std::string> open_log_folder(bool persistent_memory);
  /// Opens the folder of persistent regions, if the configuration has any.
  std::expected<void, std::string> open_regions(const Terms& terms, offload::Services& services);
  /// Requires that each recovered persistent region has its file; removes files of no region.
  std::expected<void, std::string> check_regions(offload::Services& services);
  /// Has objects continue safely where a loss was accepted.
  std::expected<void, std::string> go_on_after_loss(offload::Services& services,
                                                    std::span<const offload::Kind> own_kinds);
  /// Opens the log, and applies its records.
  std::expected<void, std::string> recover(const Terms& terms, offload::Services& services);
  [[nodiscard]] log::LogError place_of(const offload::ParallelRedo::Refused& refused,
                                       const log::RecoveryTerms& terms, const log::LogError& error);
  [[nodiscard]] std::uint64_t file_bytes();

  const std::string path_;
  log::PosixFolder folder_;
  std::unique_ptr<log::LogFolder> log_folder_;
  bool is_model_ = false;  // of persistent memory, which a tmpfs is
  std::unique_ptr<log::FolderLock> lock_;
  std::unique_ptr<log::Log> log_;
  std::unique_ptr<catalog::UnflushedAge> age_;  // of what the log has not written
  std::uint64_t store_ = 0;                     // the store's number
  RecoveryProgress applied_;
  std::uint64_t applied_ns_ = 0;
};

}  // namespace espalier::node
