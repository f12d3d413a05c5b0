// SPDX-License-Identifier: Apache-2.0
// The folder of a durable node: which store it is of, and the log of what was done to it
// (docs/design/durability.md).
//
//   DIR/lock    is locked while a node uses the folder
//   DIR/store   which store this is (log/store_file.hpp)
//   DIR/log/    the log, and the checkpoint that it goes on from
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

/// How far the start of a store has come.
struct RecoveryProgress {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;      ///< of them
  std::uint64_t bytes_max = 0;  ///< of the files that are read: a little more than that
};

class DataFolder {
 public:
  struct Terms {
    const Config::Data& data;
    std::span<const offload::Kind> own_kinds;
    std::uint64_t segment_bytes = log::WriterOptions{}.segment_bytes;
    /// Of a member of a chain: is shown each record of the log, before it is applied; and what is
    /// done to the store is recorded only once record() is called.
    log::ApplyRecord show{};
    /// Is told, once and by any thread, why nothing is acknowledged any more.
    std::function<void(const std::string&)> failed{};
    /// Is told now and then, by the opening thread. None: no one is.
    std::function<void(const RecoveryProgress&)> recovering{};
    /// That apply records, ParallelRedo::kThreadsMax at most; 0: as many as there are cores for.
    std::uint32_t threads = 0;
  };
  /// Applies what the folder has to an empty store, and begins to take its records: from then on
  /// what is done to the store is durable (but for Terms::show). Errors: words for people, of the
  /// folder, of the log, of a record that cannot be applied, of a kind that makes no
  /// records. Cost: reads all of it, and what its writes did, by some threads.
  static std::expected<std::unique_ptr<DataFolder>, std::string> open(const Terms& terms,
                                                                      offload::Services& services);
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  /// Makes durable what was done. Requires: the store and its objects are gone.
  ~DataFolder();

  /// Begins to take the records of a store, if open() has not. Whoever is to use it waits until
  /// what was handed over is durable. Errors: why it cannot. Requires: nobody uses it meanwhile.
  std::expected<void, std::string> record(offload::Services& services,
                                          std::span<const offload::Kind> own_kinds);

  [[nodiscard]] log::LogWriter& writer() { return log_->writer(); }
  [[nodiscard]] const log::LogWriter& writer() const { return log_->writer(); }
  [[nodiscard]] log::LogFolder& log_folder() { return *log_folder_; }
  /// The number of the store whose folder this is.
  [[nodiscard]] std::uint64_t store() const { return store_; }
  /// What was found, for a line to people.
  [[nodiscard]] const log::Recovered& recovered() const { return log_->recovered(); }
  [[nodiscard]] std::uint64_t applied_records() const { return applied_.records; }
  [[nodiscard]] std::uint64_t applied_bytes() const { return applied_.bytes; }
  [[nodiscard]] std::uint64_t applied_ns() const { return applied_ns_; }
  /// What a checkpoint is made of, and where; it outlives that. Requires: as open().
  [[nodiscard]] offload::CheckpointRun::Terms checkpoint_terms(
      offload::Services& services, std::span<const offload::Kind> own_kinds) {
    return {services, own_kinds, *log_folder_, store_, log_->writer()};
  }

 private:
  explicit DataFolder(const std::string& path) : path_(path), folder_(path) {}
  std::expected<void, std::string> begin(const Terms& terms, offload::Services& services);
  std::expected<void, std::string> make_folders();
  std::expected<void, std::string> open_log_folder(bool persistent_memory);
  /// Has regions that keep their bytes lie in the folder, if they are to.
  std::expected<void, std::string> open_regions(const Terms& terms, offload::Services& services);
  /// All of these that were recovered must be there; files of others go.
  static std::expected<void, std::string> check_regions(offload::Services& services);
  /// Has objects go on safely where a loss was accepted.
  std::expected<void, std::string> go_on_after_loss(offload::Services& services,
                                                    std::span<const offload::Kind> own_kinds);
  /// Opens the log, and applies what is there.
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
  std::uint64_t store_ = 0;                     // its number
  RecoveryProgress applied_;
  std::uint64_t applied_ns_ = 0;
};

}  // namespace espalier::node
