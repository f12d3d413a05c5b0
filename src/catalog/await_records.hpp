// SPDX-License-Identifier: Apache-2.0
// Blocks a thread of this process until what it is about to answer is durable. A node's scheduler
// does the same with its answers (docs/design/durability.md); this is for callers without a
// scheduler. Kinds whose calls answer only released state say so by kAnswersReleased
// (channel/reached.hpp).
//
// Thread: any that holds no lock, no epoch and no room in the sink.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"

namespace espalier::catalog {

/// Blocks until this record is durable and readers see its effect. Threads that wait at the same
/// time share a flush. Cost: a load if it is durable; else up to two flushes of the disk.
/// Errors: system (kRecordLost): it never will be, for the log has failed.
[[nodiscard]] inline Result<void> await_record(RedoSink* sink, std::uint64_t sequence) {
  constexpr std::chrono::seconds kAgain{1};
  if (sink == nullptr || sequence == 0) return {};
  base::DurableMark& mark = sink->mark();
  while (!mark.await(sequence, kAgain)) {
    if (mark.failed() && mark.released() < sequence) return std::unexpected(kRecordLost);
  }
  return {};
}

/// The same for all records handed over by now: all that a call has changed or seen.
[[nodiscard]] inline Result<void> await_records(const Catalog& catalog) {
  RedoSink* const sink = catalog.redo();
  return sink == nullptr ? Result<void>() : await_record(sink, sink->handed_over());
}

/// The same for the set of objects: all creations, drops and renames by now.
[[nodiscard]] inline Result<void> await_objects(const Catalog& catalog) {
  return await_record(catalog.redo(), catalog.recorded());
}

}  // namespace espalier::catalog
