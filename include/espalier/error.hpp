// SPDX-License-Identifier: Apache-2.0
// Errors as values: conditions of the environment that a correct program must handle.
//
// A code exists only if a caller can act on it. Programming errors are assertions
// (base/assert.hpp); exceptions are for start-up and configuration only.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace espalier {

/// What went wrong, as far as a caller can act on it.
enum class Code : std::uint16_t {
  invalid = 0,           ///< never a real error: an Error left unset
  invalid_argument = 1,  ///< an argument is outside what the call documents; nothing was done
  key_too_long = 2,      ///< the key is empty or longer than this map's node size allows
  value_too_long = 3,    ///< the value is longer than 16 MiB
  out_of_memory = 4,     ///< the memory limit is reached; nothing was changed, reads go on
  condition_failed = 5,  ///< a condition of a write batch did not hold; nothing was changed
  snapshot_expired = 6,  ///< the snapshot held too much memory, or writes needed its memory
  /// the name is taken; detail, where it is a name of a store: the ObjectKind of the object that
  /// has it
  already_exists = 7,
  not_found = 8,  ///< no object (or file) has this name
  /// a limit is reached; the detail's high 8 bits say which (epoch slots, connections, those of one
  /// principal, snapshots and others), message() in words; the other bits are the limit
  too_many_participants = 9,
  system = 10,  ///< the operating system refused; detail is errno
  /// bytes that should be a structure of ours are not; detail: the rule that they break
  corrupt = 11,
  unsupported = 12,  ///< this build or machine cannot do it
  /// the node is gone or shutting down; a write without an answer may or may not be done. detail,
  /// low 16 bits: of a map over several nodes, 1 + the number of the shard whose node it was; high
  /// 16 bits: size of a packet that does not get through, with its IP header
  connection_lost = 13,
  /// a one-sided read lost its lease, or met changes too often; retry. detail: 1 if items were
  /// delivered already
  contended = 14,
  dropped = 15,  ///< the table was dropped meanwhile: rows read so far are incomplete
  /// the node or the store has reached its limit of concurrent work of this kind, or has no room
  /// for the record of a write (nothing was done then); retry later
  busy = 16,
  /// the name belongs to another kind of object; detail: its ObjectKind (espalier/kind.hpp)
  wrong_kind = 17,
  /// the epoch of a sequencer is sealed; detail: the sequencer's current epoch. If it differs from
  /// the handle's, follow it; else begin a new one
  sealed = 18,
  exhausted = 19,  ///< fewer numbers left than requested, or no more epochs
  /// the node does not own the shard of this key (any more): nothing was done
  wrong_shard = 20,
  /// the keys of a batch lie in several shards of a map, whose nodes cannot write it atomically:
  /// nothing was done
  crosses_shards = 21,
  /// the node denies it to this client; nothing was done. detail: 1 it takes the role read, 2
  /// write, 3 admin; 0: the client's role is for objects of other names; 4: the client did not
  /// authenticate; 5: the node does not know this name and secret; 6: the node did not authenticate
  /// itself; 7: a process of another user listens at a path that any user could have claimed first
  not_permitted = 22,
  /// the store, or what was made from it, belongs to the process that forked this one; nothing was
  /// done. Connect, or open a store, in this process (docs/fork.md)
  forked = 23,
  /// the request refers to an outdated version of the object, e.g. to the grouping by which ids
  /// were renumbered; nothing was done. Fetch the current one and retry. detail: its number, or 0
  outdated = 24,
};

/// An 8-byte error: a code, and a detail whose meaning depends on the code (errno, a limit, an
/// index).
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

/// The name of a code as in this header, e.g. "out_of_memory".
std::string_view name(Code code);

/// One sentence for people: what was wrong and what to do about it.
std::string message(const Error& error);

}  // namespace espalier
