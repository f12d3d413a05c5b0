// SPDX-License-Identifier: Apache-2.0
// Records of numbered clients (store/numbered_clients.hpp): that a client is known or forgotten,
// and the outcome of one of its numbers. The outcome is part of the transaction's record, or a
// record of its own if the transaction wrote nothing (docs/formats/records.md).
//
//   0      16       24       32             40        48        56      60             64
//   +------+--------+--------+--------------+---------+---------+-------+----+----------+-------+--
//   | head | client | number | acknowledged | request | version | bytes | of | reserved | bytes | 0
//   +------+--------+--------+--------------+---------+---------+-------+----+----------+-------+--
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::catalog {

/// What a record says of a client. The numbers are never reused.
enum class ClientFact : std::uint8_t {
  invalid = 0,
  known = 1,       ///< bytes: the name of its principal; version: 1: its program keeps its id
  forgotten = 2,   ///< its numbers are refused from now on
  done = 3,        ///< bytes: the answer
  done_alone = 4,  ///< the answer was too long to be kept
  condition = 5,   ///< a condition failed: version: its step
};

struct ClientRecord {
  RedoHead head;
  std::uint64_t client;        // not 0
  std::uint64_t number;        // of the request; 0: none
  std::uint64_t acknowledged;  // all numbers up to this one; below `number`
  std::uint64_t request;       // checksum of the request
  std::uint64_t version;       // of its writes; 0: none
  std::uint32_t bytes;         // that follow, padded with zeros
  std::uint8_t fact;           // ClientFact
  std::uint8_t reserved[3];
};
static_assert(sizeof(ClientRecord) == 64 && offsetof(ClientRecord, client) == 16);
static_assert(offsetof(ClientRecord, number) == 24 && offsetof(ClientRecord, acknowledged) == 32);
static_assert(offsetof(ClientRecord, request) == 40 && offsetof(ClientRecord, version) == 48);
static_assert(offsetof(ClientRecord, bytes) == 56 && offsetof(ClientRecord, fact) == 60);
static_assert(std::has_unique_object_representations_v<ClientRecord>);

/// Longest answer that is kept, and longest name of a principal.
inline constexpr std::size_t kClientBytesMax = 4096;
/// Unacknowledged numbers that a client may have.
inline constexpr std::uint64_t kClientNumbersMax = 256;

/// The size of a record with so many bytes, a multiple of 8.
[[nodiscard]] constexpr std::size_t client_record_bytes(std::size_t bytes) {
  return (sizeof(ClientRecord) + bytes + 7) & ~std::size_t{7};
}

/// Writes a record; fills in its head and `bytes`. Requires: `to` has room for it, is all zeros,
/// and is a multiple of 8 long.
inline void write_client_record(std::span<std::byte> to, ClientRecord record,
                                std::string_view bytes) {
  record.head =
      redo_head(ObjectKind::map, 0, static_cast<std::uint8_t>(RedoType::client), to.size());
  record.bytes = static_cast<std::uint32_t>(bytes.size());
  RedoWriter writer(to);
  writer.part(record);
  writer.text(bytes);
}

/// Sets the version of a record.
inline void stamp_client_record(std::span<std::byte> record, std::uint64_t version) {
  ESPALIER_ASSERT(record.size() >= sizeof(ClientRecord));
  std::memcpy(record.data() + offsetof(ClientRecord, version), &version, sizeof version);
}

/// A decoded record; points into its bytes.
struct ClientRedo {
  ClientRecord fields{};
  ClientFact fact = ClientFact::invalid;
  std::string_view bytes{};
};

/// Decodes a record from any bytes. Errors: corrupt (detail: a RedoFault).
[[nodiscard]] inline Result<ClientRedo> read_client_record(std::string_view record) {
  const auto head = read_redo_head(record, ObjectKind::map);
  if (!head) return std::unexpected(head.error());
  if (head->type != static_cast<std::uint8_t>(RedoType::client)) return corrupt(RedoFault::type);
  if (head->object != 0) return corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<ClientRecord>();
  const std::string_view bytes = reader.text(fields.bytes);
  if (!reader.good()) return corrupt(RedoFault::too_short);
  const auto is_zero = [](auto byte) { return byte == 0; };
  if (!std::ranges::all_of(reader.rest(), is_zero) ||
      !std::ranges::all_of(fields.reserved, is_zero)) {
    return corrupt(RedoFault::reserved);
  }
  const auto fact = static_cast<ClientFact>(fields.fact);
  const bool of_number = fact >= ClientFact::done;
  if (fact == ClientFact::invalid || fact > ClientFact::condition) return corrupt(RedoFault::value);
  if (fields.client == 0 || bytes.size() > kClientBytesMax) return corrupt(RedoFault::value);
  const bool good_number = fields.number > fields.acknowledged &&
                           fields.number - fields.acknowledged <= kClientNumbersMax;
  if (of_number ? !good_number : fields.number != 0 || fields.request != 0) {
    return corrupt(RedoFault::place);
  }
  if (!bytes.empty() && fact != ClientFact::known && fact != ClientFact::done) {
    return corrupt(RedoFault::count);
  }
  return ClientRedo{fields, fact, bytes};
}

}  // namespace espalier::catalog
