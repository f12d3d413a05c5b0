// SPDX-License-Identifier: Apache-2.0
// The record of a transaction: the records of its objects' writes, in sequence, in one record of
// the log, so that after a crash all of them are there or none (docs/formats/records.md). The
// outcome of its client's number (catalog/client_record.hpp) comes last, if it has one.
//
//   0      16
//   +------+--------+-----+--------+-----+--
//   | head | record | pad | record | pad | ...      each begins at a multiple of 8, pads are zeros
//   +------+--------+-----+--------+-----+--
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::catalog {

inline constexpr std::size_t kRecordAlign = 8;

/// Reserves room for a transaction's record, whose content takes `bytes` bytes, a multiple of 8;
/// writes the head, and zeros after it. Without a sink, nothing. Errors: those of the sink.
[[nodiscard]] inline Result<RedoRoom> reserve_transaction(RedoSink* sink,
                                                          std::size_t bytes) noexcept {
  auto room = RedoRoom::reserve(sink, sizeof(RedoHead) + bytes);
  if (!room || !*room) return room;
  std::ranges::fill(room->bytes(), std::byte{0});
  RedoWriter(room->bytes())
      .part(RedoHead{room->bytes().size(), 0, static_cast<std::uint8_t>(ObjectKind::map),
                     static_cast<std::uint8_t>(RedoType::transaction), 0});
  return room;
}

/// The part after the head.
[[nodiscard]] inline std::span<std::byte> records_in(std::span<std::byte> transaction) {
  return transaction.subspan(sizeof(RedoHead));
}

/// Calls `use(record)` for each record of a transaction's record, from any bytes, after checking
/// all heads. Errors: corrupt (detail: a RedoFault); those of `use`, which end the iteration.
/// Requires: the head was read.
template <class Use>
Result<void> for_each_record(std::string_view transaction, const Use& use) {
  const std::string_view all = transaction.substr(sizeof(RedoHead));
  const auto next = [](std::string_view& left) -> Result<std::string_view> {
    RedoHead head{};
    if (left.size() < sizeof head) return corrupt(RedoFault::too_short);
    std::memcpy(&head, left.data(), sizeof head);
    if (head.bytes < sizeof head || head.bytes > left.size()) return corrupt(RedoFault::bytes);
    const std::string_view record = left.substr(0, head.bytes);
    const bool of_client = head.type == static_cast<std::uint8_t>(RedoType::client);
    if (head.type < kOwnRedoTypes && !of_client) return corrupt(RedoFault::type);
    const std::size_t padded = (record.size() + kRecordAlign - 1) & ~(kRecordAlign - 1);
    if (padded > left.size()) return corrupt(RedoFault::bytes);
    const std::string_view pad = left.substr(record.size(), padded - record.size());
    if (!std::ranges::all_of(pad, [](char byte) { return byte == 0; })) {
      return corrupt(RedoFault::reserved);
    }
    left.remove_prefix(padded);
    return record;
  };
  if (all.empty()) return corrupt(RedoFault::count);
  for (std::string_view left = all; !left.empty();) {
    const auto record = next(left);
    if (!record) return std::unexpected(record.error());
  }
  for (std::string_view left = all; !left.empty();) {
    const auto record = next(left);
    if (auto used = use(*record); !used) return used;
  }
  return {};
}

}  // namespace espalier::catalog
