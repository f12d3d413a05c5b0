// SPDX-License-Identifier: Apache-2.0
// The records of a member that the next one may still want: those that its log has written and the
// tail has not acknowledged. They stay in the log's room, whose bound holds for them, too; those
// that recovery has read are copies, of which the oldest go first.
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
  /// So many bytes of what recovery has read are kept.
  static constexpr std::size_t kRecoveredBytesMax = std::size_t{64} << 20;

  RecordBuffer() = default;
  RecordBuffer(const RecordBuffer&) = delete;
  RecordBuffer& operator=(const RecordBuffer&) = delete;
  ~RecordBuffer();

  /// Recovery has read this one; sequence 0: of a checkpoint, and nothing is kept of it. Throws
  /// std::bad_alloc.
  void add_recovered(std::uint64_t sequence, std::span<const std::byte> record);
  /// The log is open, and goes on behind this sequence; `wake` is called when it has written some.
  void open(log::LogWriter& writer, std::uint64_t written, std::function<void()> wake);
  /// Lets go of all, and of what is written from now on. Requires: the writer is there.
  void close() noexcept;

  void keep(log::QueuedRecord& record) noexcept override;
  void kept() noexcept override;

  /// The newest record that is on the disk.
  [[nodiscard]] std::uint64_t written() const;
  /// The oldest that is here; one above written(): there is none.
  [[nodiscard]] std::uint64_t first() const;
  /// Lets go of those up to here.
  void release_to(std::uint64_t sequence) noexcept;
  /// Packs records from `first` on, up to `last`, behind what `into` has: as many as have about so
  /// many bytes, and one at least. Returns the sequence of the last one; first - 1: that is not
  /// here. Throws std::bad_alloc, and `into` is as before.
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
  KeptRecords kept_;  // behind those
  // Of them, with which the next pack() most likely begins; null: it looks for it.
  mutable log::QueuedRecord* next_ = nullptr;
};

/// Adds a record to a message, as pack() does.
void pack_record(std::span<const std::byte> record, std::string& into);
/// The records of a message that has so many of them. Errors: nothing (its bytes are others).
/// Throws std::bad_alloc.
[[nodiscard]] std::optional<std::vector<std::string_view>> unpack_records(std::string_view bytes,
                                                                          std::uint64_t count);

}  // namespace espalier::chain
