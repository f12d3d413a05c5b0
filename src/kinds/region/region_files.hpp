// SPDX-License-Identifier: Apache-2.0
// The files of persistent regions, each named by its region's id, in a folder on persistent memory
// (a file system with DAX), or on a tmpfs as a model of it. A file is mapped, so stores past the
// cache are durable without a system call.
//
// A store that reads another's folder, to check it, does not open this: zeros stand for the files.
//
// Invariants
// 1. A file has its full length and a durable name before its region is in a record.
// 2. A file is removed only when the record of its region's drop is durable: while the store runs,
//    or by keep_only() at a later start.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fork_mark.hpp"
#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"
#include "store/store_parts.hpp"

namespace espalier::catalog {
class RedoSink;
}

namespace espalier::region {

/// A mapped file.
class FileMemory {
 public:
  FileMemory() = default;
  FileMemory(FileMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        mark_(other.mark_) {}
  FileMemory& operator=(FileMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~FileMemory();

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return at_ + offset; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  friend class RegionFiles;
  FileMemory(std::byte* at, std::uint64_t bytes) : at_(at), bytes_(bytes) {}

  std::byte* at_ = nullptr;
  std::uint64_t bytes_ = 0;
  base::ForkMark mark_;  // MADV_DONTFORK: in a child nothing is mapped
};

class RegionFiles final : public store::StorePart {
 public:
  /// Uses this folder, and creates it if it is missing. `is_model`: it is on a tmpfs.
  /// Errors: system. Requires: no other thread uses the store yet.
  Result<void> open(const std::string& path, bool is_model);
  [[nodiscard]] bool is_open() const { return !path_.empty(); }

  // Requires for all of these: is_open().

  [[nodiscard]] std::string path_of(std::uint32_t id) const;
  /// Creates a file of zeros with its space allocated. Replaces a file that a crash left under this
  /// id. Errors: system.
  Result<FileMemory> make(std::uint32_t id, std::uint64_t bytes);
  /// Maps a file that was made; nothing if there is none. Errors: system; corrupt (its length
  /// differs).
  Result<FileMemory> find(std::uint32_t id, std::uint64_t bytes);
  /// Removes a dropped region's file once this sink's records up to `sequence` are durable, which
  /// is checked whenever a file is made or removed. The sink outlives the regions.
  void remove(std::uint32_t id, catalog::RedoSink& sink, std::uint64_t sequence) noexcept;
  /// What becomes of files without a region.
  enum class Leftover : std::uint8_t {
    removed,   ///< their regions were dropped, or crashes left them
    set_aside  ///< records were lost, perhaps those of their regions: "ID.lost" is for people
  };
  /// Keeps the files of these ids alone. Errors: system. Requires: no file is being made; if others
  /// are removed, the drops of all other regions are durable.
  Result<void> keep_only(const std::set<std::uint32_t>& ids, Leftover others = Leftover::removed);

 private:
  struct Removal {
    std::uint32_t id;
    catalog::RedoSink* sink;
    std::uint64_t sequence;
  };
  Result<FileMemory> map(const memory::Descriptor& file, std::uint64_t bytes) const;
  Result<void> sync_folder() const;
  void remove_due() noexcept;

  std::string path_;
  bool is_model_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<Removal> removals_;
};

}  // namespace espalier::region
