// SPDX-License-Identifier: Apache-2.0
// A folder in memory with the faults of disks, from a seed. It crashes in the middle of one or
// several writes, of which some units persist, in any order, and one by half. It fails, writes less
// than it should, reports flushes that did not happen, is full, and flips bits. If it has a page
// cache, pages of a failed flush stay there, and no later flush writes them.
//
// The visible state and the durable state differ: a killed process leaves the former, a loss of
// power the latter and any part of the difference.
//
// Thread: any, one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "log/log_file.hpp"

namespace espalier::log {

struct DiskFaults {
  double fails = 0;         // of a write: EIO, and any part of it may have come through
  double shortens = 0;      // of a write: it ends early, perhaps within a unit
  double lies = 0;          // of a write: it reports durability falsely
  bool cached = false;      // without O_DIRECT; then one write at a time
  double folder_fails = 0;  // of a flush of the folder: EIO
  std::uint64_t bytes_max = ~std::uint64_t{0};  // of all files; then ENOSPC
};

class FaultyFolder final : public LogFolder {
 public:
  explicit FaultyFolder(std::uint64_t seed) : random_(seed) {}

  void set(const DiskFaults& faults) {
    const std::scoped_lock lock(mutex_);
    faults_ = faults;
  }
  /// Crashes in the n-th operation from now, counted from 1; all later operations fail.
  void crash_in(std::uint64_t operations) { crash_in_ = operations; }
  /// Crashes now, between two operations.
  void crash() { crashed_ = true; }
  [[nodiscard]] bool crashed() const { return crashed_; }
  /// Whether writes from now on were under way at the crash: any part of them may persist.
  void write_late(bool late) { late_ = late; }
  /// Whether readers of a whole file have a thread read ahead, as of a real disk.
  void read_ahead(bool ahead) { ahead_ = ahead; }
  /// Sets a function to be called at the beginning of each write, without locks. Requires: no
  /// thread writes yet.
  void before_write(std::function<void()> call) { before_write_ = std::move(call); }
  /// In the n-th operation from now memory runs out, once: it throws.
  void memory_ends_in(std::uint64_t operations) { memory_ends_in_ = operations; }
  /// Restarts after a loss of power, or after only the process was killed. All files must be
  /// closed.
  void restart(bool power_lost);
  /// Inverts a bit, in the visible and in the durable state.
  void flip(std::string_view name, std::uint64_t offset, unsigned bit);
  /// The bytes of a file, to inspect and to change.
  [[nodiscard]] std::vector<std::byte>& bytes(std::string_view name);
  /// Creates a file, all of it durable.
  void put(std::string_view name, std::vector<std::byte> bytes);
  /// Number of falsely reported writes, and of units of theirs lost with power.
  [[nodiscard]] std::uint64_t lies() const { return lies_; }
  [[nodiscard]] std::uint64_t lost_by_lies() const { return lost_by_lies_; }
  /// Number of fill() calls.
  [[nodiscard]] std::uint64_t fills() const { return fills_; }
  /// Bytes that were read of all files.
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

  [[nodiscard]] Result<std::unique_ptr<FolderLock>> lock() override;
  [[nodiscard]] Result<std::vector<std::string>> names() override;
  [[nodiscard]] Result<std::unique_ptr<LogFile>> create(std::string_view name) override;
  [[nodiscard]] Result<std::unique_ptr<LogFile>> open(std::string_view name) override;
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to) override;
  [[nodiscard]] Result<void> remove(std::string_view name) override;
  [[nodiscard]] Result<void> sync() override;

 private:
  friend class FaultyFile;
  friend class FaultyLock;

  struct Contents {
    std::vector<std::byte> seen;
    std::vector<std::byte> lasting;
    std::set<std::uint64_t> dirty;      // units in which they differ
    std::set<std::uint64_t> forgotten;  // also differ, and no flush changes that
    std::set<std::uint64_t> lied;       // dirty units reported as durable
  };
  using Names = std::map<std::string, std::shared_ptr<Contents>, std::less<>>;
  using NameChange = std::function<void(Names&)>;

  /// Counts an operation. Returns whether it crashes, or an earlier one did.
  bool crashes();
  void change_names(NameChange change);
  [[nodiscard]] std::uint64_t bytes_used() const;
  Result<std::size_t> write(Contents& file, std::uint64_t offset, std::span<const std::byte> bytes);
  Result<void> fill(Contents& file, std::uint64_t bytes);
  Result<void> extend(Contents& file, std::uint64_t bytes, std::uint64_t leave);
  /// Any of the units persist, not durably; if `forgotten`, no flush changes that.
  void write_any(Contents& file, std::uint64_t offset, std::span<const std::byte> bytes,
                 bool forgotten);
  void write_unit(Contents& file, std::uint64_t offset, std::span<const std::byte> bytes);
  static void flush(Contents& file);

  std::mutex mutex_;
  base::Random random_;
  DiskFaults faults_;
  std::uint64_t crash_in_ = 0;
  std::uint64_t memory_ends_in_ = 0;
  bool crashed_ = false;
  bool late_ = false;
  bool ahead_ = false;
  std::function<void()> before_write_;
  bool locked_ = false;
  std::uint64_t lies_ = 0;
  std::uint64_t lost_by_lies_ = 0;
  std::uint64_t fills_ = 0;
  std::atomic<std::uint64_t> bytes_read_ = 0;
  Names seen_;
  Names lasting_;
  std::deque<NameChange> changes_;  // of names, since the last sync
};

}  // namespace espalier::log
