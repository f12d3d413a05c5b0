// SPDX-License-Identifier: Apache-2.0
// Implements the calls of hash maps, for nodes and for stores of this process alike. A write is
// begun, and answered when the versions that it observed are released: a node processes other
// requests until then, a thread of this process waits.
//
// Thread: any. The other state that a thread needs is cached for the store (hash_threads.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/epoch_pins.hpp"
#include "espalier/error.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/hash_thread_lease.hpp"
#include "kinds/hash/write.hpp"

namespace espalier::catalog {
class Catalog;
}
namespace espalier::hash {
class HashMap;
}
namespace espalier::memory {
class StagedBytes;
}
namespace espalier::tree {
struct StarvedWrite;
}

namespace espalier::hash_calls {

// Errors: those of create_hash_map(); not_found, wrong_kind. Requires: the catalogue of a store.
[[nodiscard]] Result<std::shared_ptr<hash::HashMap>> obtain(catalog::Catalog& catalog,
                                                            const Create& asked);
[[nodiscard]] Result<std::shared_ptr<hash::HashMap>> obtain(catalog::Catalog& catalog,
                                                            const Open& asked);

// Of all: errors as the calls of HashMap; not_found (it was dropped).
[[nodiscard]] Result<Opened> execute(hash::HashMap& of, const Open& asked);
[[nodiscard]] Result<Numbers> execute(hash::HashMap& of, const Stats& asked);
/// The map's location, for remote readers. Errors: besides, unsupported (without versions a remote
/// reader cannot tell what was there when it began).
[[nodiscard]] Result<hash::HashPlace> place_of(const hash::HashMap& map);

// Writes that wait until they may be answered. Errors: besides, too_many_participants;
// std::bad_alloc.
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Put& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Insert& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Update& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Erase& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const CompareAndSet& asked);
[[nodiscard]] Result<Summed> execute(hash::HashMap& of, const Add& asked);

/// A get. The item found stays valid as long as this object lives.
/// Thread: one, which makes no other meanwhile.
class Reading {
 public:
  /// Cost: 3 lines.
  Reading(hash::HashMap& map, std::string_view key);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  /// Errors: not_found (it was dropped), too_many_participants.
  [[nodiscard]] const Result<ItemFound>& found() const { return found_; }
  /// Keeps the item valid for longer, for any thread. Errors: std::bad_alloc.
  [[nodiscard]] base::EpochPin pin() const;

 private:
  hash::HashMap& map_;
  const Result<hash::HashThreadLease> lease_;
  Result<ItemFound> found_;
};

template <class Reply>
using Begun = hash::Unreleased<Reply>;

/// Whether its effects are logged: then writes are begun only if may_begin(), and wait long for
/// their release. Cost: one load.
[[nodiscard]] bool is_recorded(const hash::HashMap& of);
/// Whether another write may begin: the number of unreleased ones is limited.
[[nodiscard]] bool may_begin(hash::HashMap& of);

// Writes of a node: none waits (of a map that is logged: if may_begin()), and one that finds no
// memory fails immediately (out_of_memory).
// Errors: besides, too_many_participants; std::bad_alloc.
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, const Put& asked,
                                       const hash::WriteHelp& help = {});
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, const Insert& asked,
                                       const hash::WriteHelp& help = {});
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, const Update& asked,
                                       const hash::WriteHelp& help = {});
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, const Erase& asked,
                                       const hash::WriteHelp& help = {});
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, const CompareAndSet& asked,
                                       const hash::WriteHelp& help = {});
[[nodiscard]] Begun<Summed> begin(hash::HashMap& of, const Add& asked,
                                  const hash::WriteHelp& help = {});
/// Whether a write that failed for lack of memory is retried (store/starved_write.hpp).
[[nodiscard]] bool may_try_again(const hash::HashMap& of, tree::StarvedWrite& starved);
/// Makes room before its next attempt. Thread: one that may take long.
void make_room(hash::HashMap& of, const tree::StarvedWrite& starved) noexcept;
/// Whether answers that wait for this version may be sent.
[[nodiscard]] bool released(hash::HashMap& of, std::uint64_t version);
/// Whether current waiters wait in vain, because the log has failed.
[[nodiscard]] bool is_lost(const hash::HashMap& of);
/// Waits until they may be sent. False: they never may.
[[nodiscard]] bool wait_for(hash::HashMap& of, std::uint64_t version);

/// Reserves a buffer for a pair that is copied before its write. Errors: as HashMap::stage().
[[nodiscard]] Result<memory::StagedBytes> stage(hash::HashMap& of, std::string_view key,
                                                std::string_view value);

/// Compares a long expected value piece by piece with the key's value, which stays valid meanwhile.
/// Requires: the expected value outlives it.
class LongComparison {
 public:
  /// Compares only the lengths. Errors: as Reading. std::bad_alloc.
  static Result<LongComparison> begin(hash::HashMap& of, std::string_view key,
                                      std::string_view expected);

  [[nodiscard]] bool is_over() const { return differs_ || compared_ == expected_.size(); }
  /// Compares so many more bytes. Returns whether it is over.
  bool step(std::size_t bytes);
  /// Whether the key has another value, or none: may be answered once version() is released.
  [[nodiscard]] bool differs() const { return differs_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// The record that was compared, for the write.
  [[nodiscard]] const hash::RecordStamp& seen() const { return seen_; }

 private:
  hash::RecordStamp seen_;
  std::uint64_t version_ = 0;
  std::string_view expected_;
  std::string_view found_;
  std::size_t compared_ = 0;
  bool differs_ = false;
  base::EpochPin pin_;
};

}  // namespace espalier::hash_calls
