// SPDX-License-Identifier: Apache-2.0
// Regions that keep their bytes: each is a file, named by the region's id, in a folder on persistent
// memory (a file system with DAX), or on a tmpfs, as a model of it. It is mapped as it is, so what
// is stored there past the cache is durable with no call of the kernel.
//
// A store whose folder is only looked at has none of this open: there such regions are zeros.
//
// Invariants
// 1. A file is whole and durable, with its name, before its region is in a record.
// 2. A file goes once the record that its region was dropped is durable, or at a later start.
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

/// Bytes of a file, as memory of this process.
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
  base::ForkMark mark_;  // a copy of it, where nothing is mapped, unmaps nothing
};

class RegionFiles final : public store::StorePart {
 public:
  /// Regions that are made from now on lie in this folder, which is made if only it is missing.
  /// `is_model`: it is a tmpfs. Errors: system. Requires: nobody uses the store yet.
  Result<void> open(const std::string& path, bool is_model);
  [[nodiscard]] bool is_open() const { return !path_.empty(); }

  // Of these, requires: is_open().

  /// A new file of zeros, in space that is its own. One that a crash has left under that id goes.
  /// Errors: system.
  Result<FileMemory> make(std::uint32_t id, std::uint64_t bytes);
  /// One that was made. Errors: system (ENOENT); corrupt (it has not so many bytes).
  Result<FileMemory> find(std::uint32_t id, std::uint64_t bytes);
  /// The file of a region that was dropped goes when records up to this one are durable, which is
  /// looked at when another is made or goes. Null: none are made.
  void remove(std::uint32_t id, catalog::RedoSink* sink, std::uint64_t sequence) noexcept;
  /// Those of other regions than these go: what a crash has left. Errors: system.
  Result<void> keep_only(const std::set<std::uint32_t>& ids);

 private:
  struct Leaving {
    std::uint32_t id;
    catalog::RedoSink* sink;
    std::uint64_t sequence;
  };
  [[nodiscard]] std::string path_of(std::uint32_t id) const;
  Result<FileMemory> map(const memory::Descriptor& file, std::uint64_t bytes) const;
  Result<void> sync_folder() const;
  void remove_due() noexcept;

  std::string path_;
  bool is_model_ = false;
  std::mutex mutex_;  // guards what follows
  std::vector<Leaving> leaving_;
};

}  // namespace espalier::region
