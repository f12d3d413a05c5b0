// SPDX-License-Identifier: Apache-2.0
// How a thread of this process waits until what it tells is durable: what a node's scheduler does
// with answers (docs/design/durability.md), for callers that have no scheduler. Kinds whose calls
// answer what is released already say so by kAnswersReleased (channel/reached.hpp).
//
// Thread: any, which holds nothing meanwhile: no lock, no epoch, no room in the sink.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/error.hpp"

namespace espalier::catalog {

/// Waits until this record is durable, and readers see what it did. Threads that wait at a time
/// share a flush. Cost: a load where it is; else up to two flushes of the disk.
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

/// The same of all records that were handed over by now: whatever a call has changed or seen.
[[nodiscard]] inline Result<void> await_records(const Catalog& catalog) {
  RedoSink* const sink = catalog.redo();
  return sink == nullptr ? Result<void>() : await_record(sink, sink->handed_over());
}

/// The same of which objects there are, and are not: of what was made and dropped by now.
[[nodiscard]] inline Result<void> await_objects(const Catalog& catalog) {
  return await_record(catalog.redo(), catalog.recorded());
}

}  // namespace espalier::catalog
