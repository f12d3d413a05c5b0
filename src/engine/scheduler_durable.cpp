// SPDX-License-Identifier: Apache-2.0
// The scheduler's answers that wait until what they tell is durable. A request that waits so counts
// as one that waits for a time: for nothing among those in flight, and among its client's own up to
// a bound.
#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/client_table.hpp"
#include "engine/connection.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "store/durable_store.hpp"

namespace espalier::offload {
namespace {

// Of an object that a client has opened, its own records: those of others may be lost, and it is
// there all the same. It may have been dropped since.
std::uint64_t record_of_opened(const catalog::Catalog& catalog, std::uint64_t id) {
  const catalog::EntryPointer entry = catalog.find_any(static_cast<std::uint32_t>(id));
  return entry != nullptr ? std::max(entry->created, entry->object->told_in()) : catalog.recorded();
}

// What it tells of is not told, or only that it was refused before anything was done.
bool promises_nothing(Code code) {
  return code == Code::system || code == Code::busy || code == Code::not_permitted ||
         code == Code::unsupported;
}

}  // namespace

// The newest record of what an answer may tell of; 0: it may be given at once. What a call has
// changed is in a record that is there by now; which objects there are, and are not, in that of the
// last one that was made or dropped.
std::uint64_t Scheduler::record_before_answer(const Request& request,
                                              const wire::ResponseHeader& header) const {
  const catalog::Catalog& catalog = services_.catalog();
  catalog::RedoSink* const sink = catalog.redo();
  if (request.offload == nullptr) return 0;
  const Offload& offload = *request.offload;
  const auto code = static_cast<Code>(header.code);
  if (promises_nothing(code)) return 0;
  std::uint64_t sequence = 0;
  if (offload.opens && code == Code::invalid) {
    sequence = record_of_opened(catalog, header.version);
  } else if (offload.opens || offload.tells_of_objects || offload.object == wire::Names::by_name ||
             code == Code::not_found || code == Code::dropped) {
    sequence = catalog.recorded();
  }
  if (offload.changes && !offload.waits_for_release) {
    sequence = std::max(sequence, sink->handed_over());
  }
  return sequence > sink->mark().released() ? sequence : 0;
}

void Scheduler::keep_answer(Request& request, std::uint64_t sequence,
                            const wire::ResponseHeader& header,
                            std::initializer_list<std::string_view> payload) {
  try {
    std::string bytes;
    for (const std::string_view piece : payload) bytes += piece;
    ESPALIER_ASSERT(undurable_.size() < undurable_.capacity());
    undurable_.push_back({&request, sequence, header, std::move(bytes)});
    ++request.connection->timed_count;
    set_aside(request, Counted::by_none);
  } catch (const std::bad_alloc&) {
    if (header.code == 0 && request.offload->right == Right::read) throw;
    clients_.break_off(*request.connection);  // it waits in vain
    if (request.offload->right == Right::admin) audit_act(request, header, payload);
    release(request);
  }
}

bool Scheduler::answer_durable() {
  const base::DurableMark& mark = services_.catalog().redo()->mark();
  const bool failed = mark.failed();  // before the mark is looked at
  const std::uint64_t durable = mark.released();
  bool moved = false;
  for (std::size_t i = 0; i < undurable_.size();) {
    if (undurable_[i].sequence > durable && !failed) {
      ++i;
      continue;
    }
    const WaitsForRecord waiting = std::move(undurable_[i]);
    if (i + 1 != undurable_.size()) undurable_[i] = std::move(undurable_.back());
    undurable_.pop_back();
    Request& request = *waiting.request;
    --request.connection->timed_count;
    take_back(request);
    moved = true;
    guarded(request, [&] {
      if (waiting.sequence > durable) return fail(request, catalog::kRecordLost);
      answer_now(request, waiting.header, {waiting.payload});
    });
  }
  return moved;
}

void Scheduler::drop_undurable(const Connection& connection) {
  std::erase_if(undurable_, [&](const WaitsForRecord& waiting) {
    if (waiting.request->connection != &connection) return false;
    Request& request = *waiting.request;
    --request.connection->timed_count;
    // It is done, though nobody is told.
    if (request.offload->right == Right::admin) {
      audit_act(request, waiting.header, {waiting.payload});
    }
    release(request);
    return true;
  });
}

bool Scheduler::is_answered(const Request& request) const {
  return std::ranges::find(undurable_, &request, &WaitsForRecord::request) != undurable_.end();
}

std::string Scheduler::why_not_durable() const noexcept {
  try {
    const catalog::RedoSink* const sink = services_.catalog().redo();
    return sink != nullptr ? sink->failure() : std::string();
  } catch (const std::bad_alloc&) {  // then without words
    return {};
  }
}

// --- what offloads call --------------------------------------------------------------------------

bool Call::is_durable() { return tree::must_be_durable(catalog()); }

}  // namespace espalier::offload
