// SPDX-License-Identifier: Apache-2.0
// Messages between members of a chain: heartbeats, and records on their way to the tail, each with
// an answer. They travel as calls on peer links (docs/formats/chains.md draws them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::chain {

enum class MessageKind : std::uint32_t {
  invalid = 0,
  beat = 1,  ///< heartbeat: alive, and in this epoch?
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
  /// For a beat and its answer, when the beat was sent, by its sender's clock, in ns. For an append
  /// and its answer, the append's last sequence.
  std::uint64_t number = 0;
  /// For an append: the sequence of its first record. For a beat to a joining node: the first
  /// record that the tail can send. For other beats of a head: the record that all must have
  /// acknowledged before it serves. Else 0.
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< for an append: its last record; else the last that `from` holds
  /// All members from `from` to the tail have every record up to here on their disks.
  std::uint64_t acknowledged = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

static_assert(sizeof(Message) == 64);
static_assert(offsetof(Message, chain) == 16);
static_assert(offsetof(Message, number) == 32);
static_assert(offsetof(Message, acknowledged) == 56);
static_assert(std::has_unique_object_representations_v<Message>);

}  // namespace espalier::chain
