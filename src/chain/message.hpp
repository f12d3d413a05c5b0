// SPDX-License-Identifier: Apache-2.0
// What members of a chain say to each other: heartbeats, and records on their way to the tail, each
// with an answer. They travel as calls on peer links (docs/formats/chains.md draws them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::chain {

enum class MessageKind : std::uint32_t {
  invalid = 0,
  beat = 1,  ///< is the other one there, and in this epoch?
  beat_answer = 2,
  append = 3,  ///< records, from a member to the next one
  append_answer = 4,
};

///   0      4      8      12       16      24      32       40      48     56             64
///   +------+------+------+--------+-------+-------+--------+-------+------+--------------+
///   | kind | from | to   | 0      | chain | epoch | number | first | last | acknowledged |
///   +------+------+------+--------+-------+-------+--------+-------+------+--------------+
struct Message {
  MessageKind kind = MessageKind::invalid;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t reserved = 0;
  std::uint64_t chain = 0;
  std::uint64_t epoch = 0;  ///< the sender's
  /// Of a beat, when it was sent, by the sender's clock, in ns; of its answer, the same. Of an
  /// append its last sequence, of its answer the same.
  std::uint64_t number = 0;
  /// Of an append: the sequence of its first record; of a beat to who joins: that of the first
  /// record that the tail can send; of other beats of a head: up to which record all must have
  /// acknowledged before it serves; else 0.
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< of an append: of its last record; else the last that `from` holds
  /// Up to here all members from `from` to the tail have every record on their disks.
  std::uint64_t acknowledged = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

static_assert(sizeof(Message) == 64);
static_assert(offsetof(Message, chain) == 16);
static_assert(offsetof(Message, number) == 32);
static_assert(offsetof(Message, acknowledged) == 56);
static_assert(std::has_unique_object_representations_v<Message>);

}  // namespace espalier::chain
