// SPDX-License-Identifier: Apache-2.0
// The records that the next member may still need: written by the log, and not acknowledged by the
// tail. They stay in the log's buffer, and count towards its bound. Those that recovery has read
// are copies, of which the oldest are dropped first.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/chain.hpp"
#include "log/log_writer.hpp"

namespace espalier::chain {

class RecordBuffer final : public log::RecordKeeper {
 public:
  /// Most bytes of recovered records.
  static constexpr std::size_t kRecoveredBytesMax = std::size_t{64} << 20;

  RecordBuffer() = default;
  RecordBuffer(const RecordBuffer&) = delete;
  RecordBuffer& operator=(const RecordBuffer&) = delete;
  ~RecordBuffer();

  /// Recovery has read this record; sequence 0: of a checkpoint, which is not kept. Throws
  /// std::bad_alloc.
  void add_recovered(std::uint64_t sequence, std::span<const std::byte> record);
  /// The log is open, and continues after this sequence; `wake` is called when it has written
  /// records.
  void open(log::LogWriter& writer, std::uint64_t written, std::function<void()> wake);
  /// Releases all records, and those written later. Requires: the writer exists.
  void close() noexcept;

  void keep(log::QueuedRecord& record) noexcept override;
  void kept() noexcept override;

  /// The newest record that is on the disk.
  [[nodiscard]] std::uint64_t written() const;
  /// The oldest record here; one above written(): none.
  [[nodiscard]] std::uint64_t first() const;
  /// Releases records up to here.
  void release_to(std::uint64_t sequence) noexcept;
  /// Packs records from `first` up to `last` behind the contents of `into`: about `bytes` bytes,
  /// and one at least. Returns the sequence of the last one; first - 1: that record is not here.
  /// Throws std::bad_alloc, and `into` is unchanged.
  std::uint64_t pack(std::uint64_t first, std::uint64_t last, std::size_t bytes,
                     std::string& into) const;

 private:
  struct Recovered {
    std::uint64_t sequence;
    std::string bytes;
  };
  using KeptRecords = base::Chain<log::QueuedRecord, &log::QueuedRecord::next>;
  [[nodiscard]] std::uint64_t first_locked() const;

  mutable std::mutex mutex_;  // guards all below
  log::LogWriter* writer_ = nullptr;
  std::function<void()> wake_;
  bool closed_ = false;
  std::uint64_t written_ = 0;
  std::deque<Recovered> recovered_;
  std::size_t recovered_bytes_ = 0;
  KeptRecords kept_;  // behind the recovered ones
  // The kept record with which the next pack() likely begins; null: it searches.
  mutable log::QueuedRecord* next_ = nullptr;
};

/// Appends a record to a message, as pack() does.
void pack_record(std::span<const std::byte> record, std::string& into);
/// The records of a message with so many of them. Errors: nothing (the bytes do not parse). Throws
/// std::bad_alloc.
[[nodiscard]] std::optional<std::vector<std::string_view>> unpack_records(std::string_view bytes,
                                                                          std::uint64_t count);

}  // namespace espalier::chain
