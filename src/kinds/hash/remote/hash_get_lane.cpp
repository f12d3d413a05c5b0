// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_get_lane.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace espalier::place {

using hash::Look;
using hash::Looked;

HashGetLane::HashGetLane(HashGetShared& shared, std::uint32_t places)
    : shared_(shared), gets_(places) {
  reads_.ready = &ready_;
  reads_.walk = std::noop_coroutine();
  free_.reserve(places);
  for (std::uint32_t i = places; i != 0; --i) free_.push_back(i - 1);
}

RemoteView HashGetLane::view_of(Get& get) {
  return {shared_.reads, get.brought,      reads_,      round_,
          *get.hash,     get.request->key, get.version, get.twice};
}

void HashGetLane::take(const Request& request, Handler& handler) {
  ESPALIER_ASSERT(has_room());
  Get& get = gets_[free_.back()];
  get.tick = shared_.lease->begin();
  free_.pop_back();
  get.state = State::fresh;
  get.request = &request;
  get.handler = &handler;
  get.hash = shared_.reads.target->hash(request.key);
  get.attempts = 0;
  ++shared_.busy;
}

std::uint64_t HashGetLane::now_ns() {
  if (now_ns_ == 0) now_ns_ = shared_.now_ns();
  return now_ns_;
}

bool HashGetLane::turn() {
  if (reads_.waiting) return false;
  now_ns_ = 0;
  bool moved = false;
  if (sent_) {
    static_cast<void>(ready_.pop());
    sent_ = false;
    moved = true;
    arrive();
  }
  if (!believed_.empty()) {
    static_cast<void>(believed_.pop());
    wants_belief_ = false;
  }
  for (Get& get : gets_) {
    if (get.state == State::answered) answer(get);
  }
  if (begin_fresh()) moved = true;
  if (reads_.wanted.empty()) {
    refuse_stuck();
    return moved;
  }
  reads_.walks = static_cast<std::size_t>(std::ranges::count_if(gets_, [](const Get& get) {
    return get.state == State::begun || get.state == State::looking;
  }));
  ++round_;
  shared_.reads.port->send(reads_);
  sent_ = true;
  return true;
}

// --- beginning -----------------------------------------------------------------------------------

// First the lease, then the read version, then all else (DESIGN §2.1 rule 2).
bool HashGetLane::begin_fresh() {
  LeaseGuard& lease = *shared_.lease;
  ReadPort& port = *shared_.reads.port;
  const auto fresh = [](const Get& get) { return get.state == State::fresh; };
  if (std::ranges::none_of(gets_, fresh)) return false;
  const auto refuse_all = [&](Code code) {
    for (Get& get : gets_) {
      if (fresh(get)) refuse(get, code);
    }
    return true;
  };
  // READs of other gets are still in flight to their buffers.
  if (lease.ended() || port.failed()) return refuse_all(Code::connection_lost);
  if (!lease.believed(now_ns())) {
    want_belief();
    return false;
  }
  if (!want_header()) return refuse_all(Code::out_of_memory);
  for (Get& get : gets_) {
    if (!fresh(get)) continue;
    get.state = State::begun;
    get.term = lease.term();
    get.twice = false;
    get.no_memory = false;
    get.brought.clear();
    view_of(get).prefetch();
  }
  if (!port.reads_in_order()) return true;
  for (Get& get : gets_) {
    if (get.state != State::begun) continue;
    const std::size_t wanted = reads_.wanted.size();
    ask_ahead(get);
    port.prefetch(reads_, wanted);  // while the next ones are processed
  }
  return true;
}

bool HashGetLane::want_header() noexcept {
  try {
    header_.want(*shared_.reads.port, reads_, *shared_.reads.target);
  } catch (const std::bad_alloc&) {
    return false;
  }
  reads_header_ = true;
  return true;
}

// Without memory for it a renewal comes a little later.
void HashGetLane::want_belief() noexcept {
  if (wants_belief_) return;
  try {
    shared_.lease->wait(std::noop_coroutine(), believed_, true);
    wants_belief_ = true;
  } catch (const std::bad_alloc&) {  // each turn checks whether it is valid
  }
}

// --- completions ---------------------------------------------------------------------------------

// Processes all that has arrived before it passes an exception of a handler on: all of it belongs
// to these READs.
void HashGetLane::arrive() {
  const bool lost = reads_.failed || shared_.reads.port->failed();
  reads_.failed = false;
  const bool dropped =
      std::exchange(reads_header_, false) && !lost && !header_.is_of(*shared_.reads.target);
  std::exception_ptr thrown;
  for (Get& get : gets_) {
    if (get.state != State::begun && get.state != State::looking) continue;
    try {
      arrive_one(get, lost, dropped);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

void HashGetLane::arrive_one(Get& get, bool lost, bool dropped) {
  if (lost) return refuse(get, Code::connection_lost);
  if (get.state == State::begun) {
    if (dropped) return refuse(get, Code::not_found);
    get.version = header_.read_version();
    get.state = State::looking;
    // If READs are not ordered, it begins only now.
    if (get.brought.pieces().empty()) {
      ask_ahead(get);
      if (get.brought.any_awaited() || get.no_memory) return;
    }
  }
  if (get.no_memory) return refuse(get, Code::out_of_memory);
  get.brought.arrive();
  const std::size_t wanted = reads_.wanted.size();
  look(get);
  shared_.reads.port->prefetch(reads_, wanted);
}

void HashGetLane::ask_ahead(Get& get) noexcept {
  try {
    RemoteView view = view_of(get);
    view.ask_ahead();
    get.twice = view.twice();
  } catch (const std::bad_alloc&) {
    get.no_memory = true;
  }
}

// Only requests may run out of memory here: exceptions of a handler go to the owner.
void HashGetLane::look(Get& get) {
  Outcome outcome;
  try {
    outcome = look_again(get);
  } catch (const std::bad_alloc&) {
    get.no_memory = true;
    return;
  }
  if (outcome.waits) return;
  if (outcome.too_much) return refuse(get, Code::contended);
  if (hash::begins_again(outcome.looked.look)) return begin_again(get, outcome.looked.look);
  answer_with(get, outcome.looked);
}

HashGetLane::Outcome HashGetLane::look_again(Get& get) {
  const Outcome waits{.waits = true};
  const Outcome changed{.looked = {.look = Look::changed}};
  RemoteView view = view_of(get);
  hash::BinPlace place = hash::locate(view, *get.hash);
  view.enter(place);
  const Looked looked = hash::look_in(view, place, *get.hash, get.request->key, get.version, false);
  get.twice = view.twice();
  if (view.awaits()) return waits;
  if (view.wants_too_much()) return {.too_much = true};
  const bool misled = view.is_misled() || place.look == Look::changed;
  // A wrong cached directory may be the reason.
  if (misled) shared_.reads.directories->forget(get.hash->partition());
  if (misled) return changed;
  if (hash::begins_again(looked.look)) return {.looked = looked};
  const bool confirmed = view.is_confirmed();
  if (view.awaits()) return waits;
  if (!confirmed) return changed;
  view.learn(looked);
  return {.looked = looked};
}

void HashGetLane::begin_again(Get& get, Look why) {
  ++shared_.counts.restarts;
  ++(why == Look::too_late ? shared_.counts.too_late : shared_.counts.changed);
  if (++get.attempts == kAttemptsMax) return refuse(get, Code::contended);
  const std::uint32_t before = get.tick;
  try {
    get.tick = shared_.lease->begin();
  } catch (const std::bad_alloc&) {
    return refuse(get, Code::out_of_memory);
  }
  shared_.lease->end(before);
  get.state = State::fresh;
}

// --- answers -------------------------------------------------------------------------------------

void HashGetLane::answer_with(Get& get, const Looked& looked) {
  get.looked = looked;
  get.state = State::answered;
  answer(get);
}

// The bytes are valid if the lease is the same, and the node has answered recently.
void HashGetLane::answer(Get& get) {
  LeaseGuard& lease = *shared_.lease;
  const bool same = get.term == lease.term() || hash::planted(hash::Bug::other_term_believed);
  if (!same) return begin_again(get, Look::changed);
  if (!lease.believed(now_ns())) return want_belief();
  Completion completion;
  completion.ok = true;
  completion.read_version = get.version;
  completion.found = get.looked.look == Look::found;
  if (completion.found) {
    const RemoteView view = view_of(get);
    const hash::RecordView record = view.record(get.looked.record);
    const hash::Pair pair = view.pair(record);
    ESPALIER_ASSERT(!view.awaits() && !view.is_misled());
    completion.version = record.version();
    completion.value = pair.value;
    const std::size_t bytes = sizeof(hash::RecordHeader) + pair.key.size() + pair.value.size();
    if (bytes <= hash::kRecordLengthMax) shared_.reads.note_record(bytes);
    const std::uint64_t offset = get.looked.record.offset();
    const bool kept = get.brought.find(BroughtBytes::Part::record, offset)->kept;
    shared_.counts.kept += kept ? 1 : 0;
    ++shared_.counts.found;
  }
  ++shared_.counts.answers;
  complete(get, completion);
}

// Gets without a READ in flight would wait for ever.
void HashGetLane::refuse_stuck() {
  for (Get& get : gets_) {
    const bool waits = get.state == State::begun || get.state == State::looking;
    if (waits) refuse(get, get.no_memory ? Code::out_of_memory : Code::connection_lost);
  }
}

void HashGetLane::refuse(Get& get, Code code) {
  Completion refused;
  refused.error = {code, 0, 0};
  complete(get, refused);
}

// Calls the handler once; its exceptions go to the caller of poll().
void HashGetLane::complete(Get& get, Completion& completion) {
  completion.tag = get.request->tag;
  completion.op = Op::get;
  Handler& handler = *get.handler;
  shared_.lease->end(get.tick);
  try {
    handler.done(completion);
  } catch (...) {
    free_place(get);
    throw;
  }
  free_place(get);
}

void HashGetLane::free_place(Get& get) {
  get.brought.clear();
  get.state = State::free;
  free_.push_back(static_cast<std::uint32_t>(&get - gets_.data()));
  --shared_.busy;
}

}  // namespace espalier::place
