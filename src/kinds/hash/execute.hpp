// SPDX-License-Identifier: Apache-2.0
// What the calls of hash maps do, for nodes and for stores of this process alike. A write is begun,
// and answered when what it saw is released: a node goes on with other requests until then, a
// thread of this process waits.
//
// Thread: any, each with its own HashThread.
#pragma once

#include <memory>

#include "catalog/catalog.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"

namespace espalier::hash_calls {

// Errors: those of create_hash_map(); not_found, wrong_kind. Requires: the catalogue of a store.
[[nodiscard]] Result<std::shared_ptr<hash::HashMap>> obtain(catalog::Catalog& catalog,
                                                            const Create& asked);
[[nodiscard]] Result<std::shared_ptr<hash::HashMap>> obtain(catalog::Catalog& catalog,
                                                            const Open& asked);

// Of all: errors as the calls of HashMap; not_found (it was dropped).
[[nodiscard]] Result<Opened> execute(hash::HashMap& of, const Open& asked);
[[nodiscard]] Result<Numbers> execute(hash::HashMap& of, const Stats& asked);

// `staged`: as of HashMap::begin().
template <class Reply>
using Begun = hash::Unreleased<Reply>;

[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, hash::HashThread& thread,
                                       const Put& asked, hash::StagedPair* staged = nullptr);
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, hash::HashThread& thread,
                                       const Insert& asked, hash::StagedPair* staged = nullptr);
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, hash::HashThread& thread,
                                       const Update& asked, hash::StagedPair* staged = nullptr);
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, hash::HashThread& thread,
                                       const Erase& asked);
[[nodiscard]] Begun<ItemWritten> begin(hash::HashMap& of, hash::HashThread& thread,
                                       const CompareAndSet& asked,
                                       hash::StagedPair* staged = nullptr);
[[nodiscard]] Begun<Summed> begin(hash::HashMap& of, hash::HashThread& thread, const Add& asked);

/// Begins a write with what this thread keeps for the maps of the store, and waits until it may be
/// answered. Errors: besides, too_many_participants; std::bad_alloc.
template <class Request>
[[nodiscard]] Result<typename Request::Reply> execute(hash::HashMap& of, const Request& asked) {
  const auto lease = hash::HashThreadLease::take(of.store().threads);
  if (!lease) return std::unexpected(lease.error());
  return of.await(begin(of, **lease, asked));
}

}  // namespace espalier::hash_calls
