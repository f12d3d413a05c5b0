// SPDX-License-Identifier: Apache-2.0
// What the calls of hash maps do, for nodes and for stores of this process alike. A write is begun,
// and answered when what it saw is released: a node goes on with other requests until then, a
// thread of this process waits.
//
// Thread: any. What a thread needs besides it keeps for the store (hash_threads.hpp).
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
/// Where readers elsewhere find it. Errors: besides, unsupported (without versions a reader
/// elsewhere cannot tell what was there when it began).
[[nodiscard]] Result<hash::HashPlace> place_of(const hash::HashMap& map);

// Writes that wait until they may be answered. Errors: besides, too_many_participants;
// std::bad_alloc.
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Put& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Insert& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Update& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const Erase& asked);
[[nodiscard]] Result<ItemWritten> execute(hash::HashMap& of, const CompareAndSet& asked);
[[nodiscard]] Result<Summed> execute(hash::HashMap& of, const Add& asked);

/// A get. What it has found stays where it is as long as this does.
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
  /// Keeps it there longer, for any thread. Errors: std::bad_alloc.
  [[nodiscard]] base::EpochPin pin() const;

 private:
  hash::HashMap& map_;
  const Result<hash::HashThreadLease> lease_;
  Result<ItemFound> found_;
};

template <class Reply>
using Begun = hash::Unreleased<Reply>;

/// Whether its effects are recorded: then writes are begun when they may be, and wait for their
/// release for long. Cost: one load.
[[nodiscard]] bool is_recorded(const hash::HashMap& of);
/// Whether one may be begun: not too many wait for their release.
[[nodiscard]] bool may_begin(hash::HashMap& of);

// Writes of a node: none waits (of a map that is recorded: where it may be begun), and one that
// finds no memory is refused at once (out_of_memory).
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
/// Whether a write that has found no memory tries again (store/starved_write.hpp).
[[nodiscard]] bool may_try_again(const hash::HashMap& of, tree::StarvedWrite& starved);
/// Before its next attempt, by a thread that may take long.
void make_room(hash::HashMap& of, const tree::StarvedWrite& starved) noexcept;
/// Whether answers that wait for this version may be given.
[[nodiscard]] bool released(hash::HashMap& of, std::uint64_t version);
/// Whether those that wait now wait in vain, for the log has failed.
[[nodiscard]] bool is_lost(const hash::HashMap& of);
/// Waits until they may. False: they never may.
[[nodiscard]] bool wait_for(hash::HashMap& of, std::uint64_t version);

/// Room for a pair that is copied before its write. Errors: as HashMap::stage().
[[nodiscard]] Result<memory::StagedBytes> stage(hash::HashMap& of, std::string_view key,
                                                std::string_view value);

/// A long value that is expected, compared piece by piece with what the key has, which stays there
/// meanwhile. Requires: what is expected outlives it.
class LongComparison {
 public:
  /// Compares lengths alone. Errors: as Reading. std::bad_alloc.
  static Result<LongComparison> begin(hash::HashMap& of, std::string_view key,
                                      std::string_view expected);

  [[nodiscard]] bool is_over() const { return differs_ || compared_ == expected_.size(); }
  /// Compares so many bytes more. Returns whether it is over.
  bool step(std::size_t bytes);
  /// Whether the key has another value, or none: once the version is released, that may be told.
  [[nodiscard]] bool differs() const { return differs_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// What was compared, for the write.
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
