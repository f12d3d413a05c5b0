// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/sequencer.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "catalog/samples.hpp"
#include "kinds/sequencer/redo_record.hpp"

namespace espalier::sequencer {

using wire::kSequencerEnd;
using wire::kSequencerSeal;

namespace {

std::atomic<std::uint32_t> live_sequencers{0};

}  // namespace

Sequencer::Sequencer(std::uint32_t id, std::string name, std::uint64_t first)
    : id_(id),
      name_(std::move(name)),
      own_word_(wire::sequencer_word(1, first)),
      first_(first),
      next_(first) {
  ++live_sequencers;
}

Sequencer::~Sequencer() { --live_sequencers; }

std::uint32_t Sequencer::live() { return live_sequencers.load(); }

std::atomic_ref<std::uint64_t> Sequencer::word() const {
  return page_ != nullptr ? page_->word() : std::atomic_ref(own_word_);
}

Result<void> Sequencer::check_epoch(std::uint32_t epoch) const {
  if (dropped_) return fail(Code::not_found, id_);
  if (epoch != wire::kAnyEpoch && epoch != epoch_) return fail(Code::sealed, epoch_);
  return {};
}

// A concurrent add takes its numbers before the seal, or finds it. A single exchange, whatever
// clients do to the word: a compare-and-swap loop could be delayed arbitrarily by a client.
void Sequencer::end_epoch() const {
  const std::uint64_t seal = wire::sequencer_word(epoch_, 0) | kSequencerSeal;
  const std::uint64_t seen = word().exchange(seal, std::memory_order_acq_rel);
  const bool ours = wire::sequencer_epoch(seen) == epoch_;
  if (ours) next_ = std::max(next_, wire::sequencer_counter(seen));
  sealed_ = true;
  mark_ = 0;  // all that was taken is below the next number, whatever was reserved
}

// Looks whether clients did more to the word than add.
void Sequencer::examine() const {
  const std::uint64_t seen = word().load(std::memory_order_acquire);
  const bool ours = wire::sequencer_epoch(seen) == epoch_;
  if (sealed_) {
    if (!ours || !wire::sequencer_sealed(seen)) {
      overwritten_ = true;
      word().store(wire::sequencer_word(epoch_, 0) | kSequencerSeal, std::memory_order_release);
    }
    return;
  }
  const bool backwards = wire::sequencer_counter(seen) < next_ && !planted(Bug::word_believed);
  if (!ours || wire::sequencer_sealed(seen) || backwards) {
    overwritten_ = true;
    return end_epoch();
  }
  next_ = std::max(next_, wire::sequencer_counter(seen));
}

Result<catalog::RedoRoom> Sequencer::record_room() const {
  return catalog::RedoRoom::reserve(redo(), sizeof(SequencerRecord));
}

// Records the current state, whichever thread changed it.
void Sequencer::record(catalog::RedoRoom& room, RedoType type) {
  if (!room) return;
  write_facts(room.bytes(), id_, type, facts_now());
  told_in_ = room.hand_over();
}

Result<Range> Sequencer::take(std::uint32_t epoch, std::uint32_t count, std::uint32_t requests) {
  if (count == 0) return fail(Code::invalid_argument);
  auto room = record_room();
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  if (const auto good = check_epoch(epoch); !good) return std::unexpected(good.error());
  if (sealed_) return fail(Code::sealed, epoch_);
  requests_ += requests;
  const std::uint64_t now = wire::sequencer_counter(word().load(std::memory_order_acquire));
  // Adding would carry into the epoch; fewer may still be had.
  if (count > kSequencerEnd - now) {
    examine();
    if (!sealed_) return fail(Code::exhausted);
    record(*room, RedoType::sealed);
    return fail(Code::sealed, epoch_);
  }
  ++adds_;
  const std::uint64_t before = word().fetch_add(count, std::memory_order_acq_rel);
  const auto range = check_answer(before, epoch_, count);
  const bool backwards = range && range->first < next_ && !planted(Bug::word_believed);
  if (!range || backwards) {
    overwritten_ = true;
    end_epoch();
    record(*room, RedoType::sealed);
    return fail(Code::sealed, epoch_);
  }
  next_ = std::max(next_, range->end());
  record(*room, RedoType::taken);
  return *range;
}

// A sealed sequencer is recorded again: the thread that found the seal may have written no record.
Result<wire::SequencerFacts> Sequencer::seal(std::uint32_t epoch) {
  auto room = record_room();
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  if (const auto good = check_epoch(epoch); !good) return std::unexpected(good.error());
  examine();
  if (!sealed_) end_epoch();
  record(*room, RedoType::sealed);
  return facts_now();
}

Result<wire::SequencerFacts> Sequencer::advance(std::uint32_t epoch, std::uint64_t at_least) {
  auto room = record_room();
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  if (const auto good = check_epoch(epoch); !good) return std::unexpected(good.error());
  if (at_least > kSequencerEnd) return fail(Code::invalid_argument);
  examine();
  if (!sealed_) end_epoch();
  const std::uint64_t next = std::max(next_, at_least);
  const bool unknown = overwritten_ && at_least < std::max(next_, std::uint64_t{1});
  if (unknown || epoch_ == wire::kSequencerEpochMax || next == kSequencerEnd) {
    record(*room, RedoType::sealed);
    return unknown ? fail(Code::invalid_argument, 1) : fail(Code::exhausted);
  }
  begin_epoch(next);
  record(*room, RedoType::advanced);
  return facts_now();
}

void Sequencer::begin_epoch(std::uint64_t first, std::uint32_t epochs) {
  epoch_ += epochs;
  first_ = next_ = first;
  mark_ = 0;
  sealed_ = overwritten_ = false;
  own_word_ = wire::sequencer_word(epoch_, first);
  if (page_ != nullptr && planted(Bug::page_used_again)) {
    page_->word().store(own_word_, std::memory_order_release);
  } else {
    page_.reset();  // it stays, sealed, for the clients with access
  }
}

// Writes no record: until one of this epoch is written, no client has a number of it, and the
// existing records lead to it again.
void Sequencer::begin_above_mark() {
  if (mark_ == 0) return;
  next_ = std::max(next_, mark_);
  if (epoch_ == wire::kSequencerEpochMax || next_ == kSequencerEnd) return end_epoch();
  begin_epoch(next_);
}

void Sequencer::record_to(catalog::RedoSink* sink) {
  if (sink != nullptr && !planted(Bug::mark_forgotten)) {
    const std::lock_guard lock(mutex_);
    begin_above_mark();
  }
  Object::record_to(sink);
}

// Only the clients know which numbers the lost records issued, so it stays sealed until a caller
// names a number. Their epochs are skipped, too, unless there were more of them than this.
Result<void> Sequencer::go_on_after_loss() {
  auto room = record_room();
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  examine();
  if (!sealed_) end_epoch();
  begin_epoch(next_, std::min(kEpochsLeftOut, wire::kSequencerEpochMax - epoch_));
  end_epoch();
  overwritten_ = true;
  record(*room, RedoType::sealed);
  return {};
}

// Ahead of the numbers taken at the time of the request, so that a client that has taken numbers
// above the mark and asks again may use them.
void Sequencer::reserve(catalog::RedoRoom& room) {
  if (mark_ >= std::min(next_ + kReservedAhead / 2, kSequencerEnd)) return;
  mark_ = std::min(next_ + kReservedAhead, kSequencerEnd);
  wire::SequencerFacts facts = facts_now();
  facts.next = mark_;
  write_facts(room.bytes(), id_, RedoType::reserved, facts);
  told_in_ = room.hand_over();
}

Result<Sequencer::Window> Sequencer::window() {
  auto room = record_room();
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  if (const auto good = check_epoch(wire::kAnyEpoch); !good) return std::unexpected(good.error());
  examine();
  if (sealed_) return fail(Code::sealed, epoch_);
  if (page_ == nullptr) {
    auto page = WordPage::create(own_word_);
    if (!page) return std::unexpected(page.error());
    page_ = std::move(*page);
  }
  if (!*room) return Window{page_, epoch_, kSequencerEnd};  // nothing is kept, so none come again
  reserve(*room);
  return Window{page_, epoch_, mark_};
}

wire::SequencerFacts Sequencer::facts_now() const {
  wire::SequencerFacts facts{};
  facts.first = first_;
  facts.next = next_;
  facts.requests = requests_;
  facts.adds = adds_;
  facts.epoch = epoch_;
  facts.flags =
      (sealed_ ? wire::kSequencerIsSealed : 0) | (overwritten_ ? wire::kSequencerOverwritten : 0);
  return facts;
}

wire::SequencerFacts Sequencer::facts() const {
  const std::lock_guard lock(mutex_);
  examine();
  return facts_now();
}

Result<wire::SequencerFacts> Sequencer::known_facts(std::uint64_t* mark) const {
  const std::lock_guard lock(mutex_);
  if (const auto good = check_epoch(wire::kAnyEpoch); !good) return std::unexpected(good.error());
  examine();
  if (mark != nullptr) *mark = mark_;
  return facts_now();
}

// Clients that add to its word find it sealed, ask the node, and get not_found.
void Sequencer::set_dropped() {
  const std::lock_guard lock(mutex_);
  dropped_ = true;
  end_epoch();
}

std::string Sequencer::description() const {
  const wire::SequencerFacts now = facts();
  return std::string(base::bytes_of(now));
}

catalog::ObjectNumbers Sequencer::numbers() const {
  const std::lock_guard lock(mutex_);
  examine();
  return {next_ - first_, sizeof(Sequencer) + (page_ != nullptr ? WordPage::kBytes : 0)};
}

std::uint64_t Sequencer::told_in() const {
  const std::lock_guard lock(mutex_);
  return told_in_;
}

void Sequencer::add_samples(catalog::SampleList& to) const {
  const wire::SequencerFacts now = facts();
  to.gauge({"first", "", "The first number of its epoch."}, now.first);
  to.gauge({"next", "", "All numbers that it gave are below."}, now.next);
  to.gauge({"epoch", "", "Its epoch."}, now.epoch);
  to.gauge({"sealed", "", "1: its epoch has ended."}, (now.flags & wire::kSequencerIsSealed) != 0);
  to.gauge({"overwritten", "", "1: sealed until a number is named (seq advance --first)."},
           (now.flags & wire::kSequencerOverwritten) != 0);
  to.counter({"requests", "", "Requests for its numbers that the node answered."}, now.requests);
  to.counter({"adds", "", "Adds to its word that the node made for them."}, now.adds);
}

Result<std::shared_ptr<Sequencer>> create_sequencer(catalog::Catalog& catalog,
                                                    std::string_view name, std::uint64_t first) {
  if (first > kSequencerEnd) return fail(Code::invalid_argument);
  if (Sequencer::live() >= Sequencer::kMost) return fail(Code::out_of_memory, Sequencer::kMost);
  return catalog.create<Sequencer>(
      name, base::bytes_of(first), [&](std::uint32_t id, std::string own_name) {
        return Result<std::shared_ptr<Sequencer>>(
            std::make_shared<Sequencer>(id, std::move(own_name), first));
      });
}

}  // namespace espalier::sequencer
