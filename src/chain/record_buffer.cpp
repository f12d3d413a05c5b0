// SPDX-License-Identifier: Apache-2.0
#include "chain/record_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace espalier::chain {

RecordBuffer::~RecordBuffer() { ESPALIER_ASSERT(kept_.empty()); }

void RecordBuffer::add_recovered(std::uint64_t sequence, std::span<const std::byte> record) {
  if (sequence == 0) return;
  const std::lock_guard lock(mutex_);
  recovered_.push_back(
      {sequence, std::string(reinterpret_cast<const char*>(record.data()), record.size())});
  recovered_bytes_ += record.size();
  while (recovered_bytes_ > kRecoveredBytesMax) {
    recovered_bytes_ -= recovered_.front().bytes.size();
    recovered_.pop_front();
  }
}

void RecordBuffer::open(log::LogWriter& writer, std::uint64_t written, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  writer_ = &writer;
  written_ = written;
  wake_ = std::move(wake);
  writer.have_kept_by(*this);
}

void RecordBuffer::close() noexcept {
  release_to(~std::uint64_t{0});
  const std::lock_guard lock(mutex_);
  closed_ = true;
  wake_ = nullptr;
}

void RecordBuffer::keep(log::QueuedRecord& record) noexcept {
  const std::lock_guard lock(mutex_);
  written_ = record.sequence;
  closed_ ? writer_->room().release(&record) : kept_.push(&record);
}

void RecordBuffer::kept() noexcept {
  const std::lock_guard lock(mutex_);
  if (wake_) wake_();
}

std::uint64_t RecordBuffer::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

std::uint64_t RecordBuffer::first_locked() const {
  if (!recovered_.empty()) return recovered_.front().sequence;
  return kept_.empty() ? written_ + 1 : kept_.front().sequence;
}

std::uint64_t RecordBuffer::first() const {
  const std::lock_guard lock(mutex_);
  return first_locked();
}

void RecordBuffer::release_to(std::uint64_t sequence) noexcept {
  const std::lock_guard lock(mutex_);
  while (!recovered_.empty() && recovered_.front().sequence <= sequence) {
    recovered_bytes_ -= recovered_.front().bytes.size();
    recovered_.pop_front();
  }
  while (!kept_.empty() && kept_.front().sequence <= sequence) {
    if (&kept_.front() == next_) next_ = nullptr;
    writer_->room().release(kept_.pop());
  }
}

std::uint64_t RecordBuffer::pack(std::uint64_t first, std::uint64_t last, std::size_t bytes,
                                 std::string& into) const {
  const std::lock_guard lock(mutex_);
  const std::size_t before = into.size();
  std::uint64_t packed = first - 1;
  if (first < first_locked()) return packed;
  const auto add = [&](std::span<const std::byte> record) {
    if (packed + 1 != first && into.size() - before + record.size() > bytes) return false;
    pack_record(record, into);
    ++packed;
    return packed < last;
  };
  try {
    bool goes_on = first <= last;
    for (const Recovered& each : recovered_) {
      if (each.sequence < first) continue;
      if (!goes_on) return packed;
      goes_on = add(std::as_bytes(std::span(each.bytes)));
    }
    if (!goes_on || kept_.empty()) return packed;
    log::QueuedRecord* record = &kept_.front();
    if (next_ != nullptr && next_->sequence == packed + 1) record = next_;
    while (record != nullptr && record->sequence <= packed) record = record->next;
    while (goes_on && record != nullptr) {
      goes_on = add(record->payload());
      record = record->next;
    }
    next_ = record;
    if (record != nullptr && record->sequence != packed + 1) next_ = nullptr;
    return packed;
  } catch (...) {
    into.resize(before);
    throw;
  }
}

void pack_record(std::span<const std::byte> record, std::string& into) {
  const std::uint64_t size = record.size();
  into.append(reinterpret_cast<const char*>(&size), sizeof size);
  into.append(reinterpret_cast<const char*>(record.data()), record.size());
}

std::optional<std::vector<std::string_view>> unpack_records(std::string_view bytes,
                                                            std::uint64_t count) {
  std::vector<std::string_view> records;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    if (records.size() == count || bytes.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return std::nullopt;
    records.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (records.size() != count) return std::nullopt;
  return records;
}

}  // namespace espalier::chain
