// SPDX-License-Identifier: Apache-2.0
// Errors as values: what the world may do to a call, never what a programmer did wrong.
//
// A code exists only if a caller can act on it. Programmer's mistakes are assertions
// (base/assert.hpp); exceptions are for start-up and configuration only.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace espalier {

/// What went wrong, as far as a caller can act on it.
enum class Code : std::uint16_t {
  invalid = 0,           ///< never a real error: an Error that nobody filled
  invalid_argument = 1,  ///< an argument is outside what the call documents; nothing was done
  key_too_long = 2,      ///< the key is empty or longer than this map's node size allows
  value_too_long = 3,    ///< the value is longer than 16 MiB
  out_of_memory = 4,     ///< the memory limit is reached; nothing was changed, reads go on
  condition_failed = 5,  ///< a condition of a write batch did not hold; nothing was changed
  snapshot_expired = 6,  ///< the snapshot held more memory than it may, or writes needed that
  /// the name is taken; detail, where it is a name of a store: the ObjectKind of what has it
  already_exists = 7,
  not_found = 8,  ///< there is no map or table (or file) of this name
  /// there is no more place; the detail's high 8 bits tell of what (epoch slots, connections, those
  /// of one principal, snapshots and others), message() in words; the rest is how many there are
  too_many_participants = 9,
  system = 10,  ///< the operating system refused; detail is errno
  /// bytes that should be a structure of ours are not; detail tells which rule
  corrupt = 11,
  unsupported = 12,  ///< this build or machine cannot do it
  /// the node is gone or said that it stops; a write without an answer may or may not be done.
  /// detail, low 16 bits: of a map over several nodes, 1 + the number of the shard whose node it
  /// was; high 16 bits: bytes of a packet that does not get through, with its IP header
  connection_lost = 13,
  /// a one-sided read lost its hold on the memory, or met changes too often; ask again. detail: 1
  /// if items were delivered already
  contended = 14,
  dropped = 15,  ///< the table was dropped meanwhile: what was read of it so far is not all
  /// the node or the store has as much of this kind to do as it takes, or no room for the record of
  /// a write (nothing was done then); ask again later
  busy = 16,
  /// the name is that of another kind of object; detail: its ObjectKind (espalier/kind.hpp)
  wrong_kind = 17,
  /// the epoch of a sequencer takes no more numbers; detail: the sequencer's epoch now. If that is
  /// another one, follow it; else begin one
  sealed = 18,
  exhausted = 19,  ///< a sequencer has fewer numbers left than were asked for, or no more epochs
  /// the node has not the shard of this key any more, or never had: nothing was done
  wrong_shard = 20,
  /// the keys of a batch lie in several shards of a map, whose nodes cannot write it as one:
  /// nothing was done
  crosses_shards = 21,
  /// the node does not let this client do it; nothing was done. detail: 1 it takes the role read, 2
  /// write, 3 admin; 0: the client's role is for objects of other names; 4: it has not said who it
  /// is; 5: the node does not know this name and secret; 6: the node has not proven that it does;
  /// 7: another user's process listens at a path where anybody could have been first
  not_permitted = 22,
  /// the store, or what was made of it, is that of the process that forked this one; nothing was
  /// done. Connect, or open a store, in this process (docs/fork.md)
  forked = 23,
  /// what the request was made by is not what the object has now, e.g. the groups by which ids were
  /// renumbered; nothing was done. Ask for it anew. detail: the number of what it has now, or 0
  outdated = 24,
};

/// An 8-byte error: a code, and a detail whose meaning the code gives (errno, a limit, an index).
struct [[nodiscard]] Error {
  Code code = Code::invalid;
  std::uint16_t reserved = 0;
  std::uint32_t detail = 0;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::uint32_t detail = 0) {
  return std::unexpected<Error>(Error{code, 0, detail});
}

/// The name of a code as it stands in this header, e.g. "out_of_memory".
std::string_view name(Code code);

/// One sentence for people: what was wrong and what to do about it.
std::string message(const Error& error);

}  // namespace espalier
