// SPDX-License-Identifier: Apache-2.0
// Redo records of numbers taken from sequencers and counters, and of epochs
// (docs/formats/records.md).
//
//   taken, sealed, advanced,  0      16      24     32      36      40
//   reserved                  +------+-------+------+-------+-------+
//                             | head | first | next | epoch | flags |
//                             +------+-------+------+-------+-------+
//   counted                   0      16     24           28         32
//                             +------+------+------------+----------+------
//                             | head | next | name bytes | reserved | name
//                             +------+------+------------+----------+------
//
// A record states the state from then on, not the request: all numbers below `next` are issued. So
// it may be applied repeatedly, and in any order with others of the same epoch. Reserved numbers
// may be issued: recovery from such a record begins a new epoch above them.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"
#include "wire/sequencer.hpp"

namespace espalier::sequencer {

/// Types of records of sequencers, and one of counters.
enum class RedoType : std::uint8_t {
  invalid = 0,
  taken = catalog::kOwnRedoTypes,
  sealed = 17,
  advanced = 18,
  counted = 19,
  reserved = 20,  // clients that add to the word may use numbers below `next`
};

/// The durable part of wire::SequencerFacts.
struct SequencerRecord {
  catalog::RedoHead head;
  std::uint64_t first;
  std::uint64_t next;
  std::uint32_t epoch;
  std::uint32_t flags;
};
static_assert(sizeof(SequencerRecord) == 40 && offsetof(SequencerRecord, first) == 16);
static_assert(offsetof(SequencerRecord, next) == 24 && offsetof(SequencerRecord, epoch) == 32);
static_assert(offsetof(SequencerRecord, flags) == 36);
static_assert(std::has_unique_object_representations_v<SequencerRecord>);

struct CounterRecord {
  catalog::RedoHead head;
  std::uint64_t next;
  std::uint32_t name_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(CounterRecord) == 32 && offsetof(CounterRecord, next) == 16);
static_assert(offsetof(CounterRecord, name_bytes) == 24 && offsetof(CounterRecord, reserved) == 28);
static_assert(std::has_unique_object_representations_v<CounterRecord>);

/// A counter's next number is at most this one.
inline constexpr std::uint64_t kCounterEnd = ~std::uint64_t{0} >> 1;

/// Writes the record of a counter. Requires: exactly the bytes of CounterRecord and the name.
inline void write_counted(std::span<std::byte> to, std::string_view name, std::uint64_t next) {
  CounterRecord record{};
  record.head = catalog::redo_head(ObjectKind::sequencer, 0,
                                   static_cast<std::uint8_t>(RedoType::counted), to.size());
  record.next = next;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  catalog::RedoWriter writer(to);
  writer.part(record);
  writer.text(name);
}

/// Writes the record of a sequencer's state. Requires: exactly the bytes of SequencerRecord.
inline void write_facts(std::span<std::byte> to, std::uint32_t sequencer, RedoType type,
                        const wire::SequencerFacts& facts) {
  SequencerRecord record{};
  record.head = catalog::redo_head(ObjectKind::sequencer, sequencer,
                                   static_cast<std::uint8_t>(type), sizeof record);
  record.first = facts.first;
  record.next = facts.next;
  record.epoch = facts.epoch;
  record.flags = facts.flags;
  catalog::RedoWriter(to).part(record);
}

/// A counter's record, parsed. Points into the record.
struct Counted {
  std::string_view name;
  std::uint64_t next = 0;
};

/// Parses a record of a sequencer, of any bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<SequencerRecord> read_sequencer_redo(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::sequencer);
  if (!head) return std::unexpected(head.error());
  const auto type = static_cast<RedoType>(head->type);
  const bool known_type = type >= RedoType::taken && type <= RedoType::reserved;
  if (!known_type || type == RedoType::counted) return catalog::corrupt(RedoFault::type);
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<SequencerRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (!reader.complete()) return catalog::corrupt(RedoFault::bytes);
  const std::uint32_t known = wire::kSequencerIsSealed | wire::kSequencerOverwritten;
  if (fields.first > fields.next || fields.next > wire::kSequencerEnd || fields.epoch == 0 ||
      fields.epoch > wire::kSequencerEpochMax || (fields.flags & ~known) != 0 ||
      fields.flags == wire::kSequencerOverwritten) {  // an overwritten sequencer is sealed, too
    return catalog::corrupt(RedoFault::value);
  }
  return fields;
}

/// Parses a record of a counter, of any bytes. Errors: likewise.
[[nodiscard]] inline Result<Counted> read_counted(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::sequencer);
  if (!head) return std::unexpected(head.error());
  if (head->type != static_cast<std::uint8_t>(RedoType::counted)) {
    return catalog::corrupt(RedoFault::type);
  }
  if (head->object != 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<CounterRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  const Counted counted{reader.text(fields.name_bytes), fields.next};
  if (!reader.complete()) return catalog::corrupt(RedoFault::name);
  if (counted.next > kCounterEnd) return catalog::corrupt(RedoFault::value);
  return counted;
}

}  // namespace espalier::sequencer
