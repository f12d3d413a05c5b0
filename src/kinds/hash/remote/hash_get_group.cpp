// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_get_group.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <exception>
#include <new>
#include <span>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/prefetch.hpp"

namespace espalier::place {
namespace {

using hash::BucketWord;
using hash::PlaceWord;
using hash::RecordHeader;
using hash::Slot;

/// READs of one get: bin, the bucket behind it, record, its header once more.
constexpr std::size_t kReadsOfGet = 4;
constexpr std::size_t kReadsOfHeader = 2;  // of a map whose group has its clock
constexpr std::uint32_t kLastSlotAt =
    offsetof(hash::Bucket, slots) + (hash::kSlotsPerBucket - 1) * sizeof(Slot);
constexpr std::uint32_t kLinesOfSegment = hash::kBinsPerSegment + hash::kOverflowPerSegment;

Slot slot_in_bucket(const std::byte* bucket, std::uint32_t at) {
  return Slot{base::load_plain<std::uint64_t>(bucket + at)};
}

std::uint64_t place_of_line(PlaceWord segment, std::uint32_t line) {
  return segment.offset() + (std::uint64_t{1} + line) * hash::kLineBytes;
}

bool is_of_segment(PlaceWord segment, const std::byte* bucket) {
  const auto generation = base::load_plain<BucketWord>(bucket).generation();
  return (generation & PlaceWord::kGenerationMask) == segment.generation();
}

}  // namespace

HashGetGroup::HashGetGroup(HashGetShared& shared, std::uint32_t most)
    : shared_(shared),
      gets_(std::clamp(most, 1u, kMost)),
      brought_(std::make_unique_for_overwrite<Brought[]>(gets_.size())) {
  ESPALIER_ASSERT(shared.reads.cache != nullptr && shared.reads.port->reads_in_order());
  begun_.reserve(gets_.size());
  reads_.wanted.reserve(kReadsOfHeader + kReadsOfGet * gets_.size());
  reads_.ready = &ready_;
  reads_.walk = std::noop_coroutine();
}

bool HashGetGroup::turn(std::deque<QueuedHashGet>& queue, std::vector<QueuedHashGet>& others) {
  bool moved = false;
  if (begun_.empty() && !queue.empty()) {
    begin(queue, others);
    moved = true;
  }
  if (!begun_.empty() && !reads_.waiting) {
    end(others);
    moved = true;
  }
  return moved;
}

template <class Stays>
void HashGetGroup::sift(std::vector<QueuedHashGet>& others, const Stays& stays) {
  std::erase_if(begun_, [&](std::uint32_t i) {
    if (stays(gets_[i])) return false;
    others.push_back(gets_[i].of);
    return true;
  });
}

// --- beginning -----------------------------------------------------------------------------------

void HashGetGroup::begin(std::deque<QueuedHashGet>& queue, std::vector<QueuedHashGet>& others) {
  ESPALIER_DEBUG_ASSERT(others.empty());
  take(queue);
  LeaseGuard& lease = *shared_.lease;
  // Who must wait for a lease, or be told that there is none, is a lane's matter.
  const bool held =
      !lease.ended() && !shared_.reads.port->failed() && lease.believed(shared_.now_ns());
  sift(others, [&](Get& get) { return held && find_bin(get); });
  sift(others, [&](Get& get) { return find_slot(get); });
  sift(others, [&](Get& get) { return get.line == 0 || find_slot_behind(get); });
  if (begun_.empty()) return;
  try {
    tick_ = lease.begin();
  } catch (const std::bad_alloc&) {
    return sift(others, [](const Get&) { return false; });
  }
  term_ = lease.term();
  want_all();
  reads_.walks = begun_.size();
  shared_.reads.port->send(reads_);
  shared_.reads.port->poll();
}

void HashGetGroup::take(std::deque<QueuedHashGet>& queue) {
  const std::size_t count = std::min(queue.size(), gets_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    gets_[i].of = queue.front();
    queue.pop_front();
    base::prefetch_line(gets_[i].of.request->key.data());
    begun_.push_back(i);
  }
}

bool HashGetGroup::find_bin(Get& get) const {
  const Request& request = *get.of.request;
  // What is no get of a key is refused where all is.
  const bool short_key =
      !request.key.empty() && request.key.size() <= hash::kRecordLengthMax - sizeof(RecordHeader);
  if (request.op != Op::get || !short_key) return false;
  const hash::KeyHash hash = shared_.reads.target->hash(request.key);
  const auto& known = shared_.reads.directories->of(hash.partition());
  if (known.place.none()) return false;
  get.segment = PlaceWord{known.entries[hash.prefix(known.place.depth())]};
  get.tag = hash.tag();
  get.bin = place_of_line(get.segment, hash.bin());
  get.line = 0;
  const std::uint64_t lines = std::uint64_t{kLinesOfSegment} * hash::kLineBytes;
  const bool known_place =
      !get.segment.none() && shared_.reads.target->holds(place_of_line(get.segment, 0), lines);
  if (!known_place) return false;
  shared_.reads.cache->prefetch(get.bin);
  return true;
}

bool HashGetGroup::find_slot(Get& get) const {
  get.kept = shared_.reads.cache->find(get.bin);
  if (get.kept == nullptr) return false;
  const std::uint32_t found = hash::matching_slots(get.kept, get.tag);
  if (found != 0) return take_slot(get, get.kept, found);
  const Slot last = slot_in_bucket(get.kept, kLastSlotAt);
  if (!last.is_overflow() || last.line() >= kLinesOfSegment) return false;
  get.line = last.line();
  shared_.reads.cache->prefetch(place_of_line(get.segment, get.line));
  return true;
}

bool HashGetGroup::find_slot_behind(Get& get) const {
  const std::byte* const kept = shared_.reads.cache->find(place_of_line(get.segment, get.line));
  const std::uint32_t found = kept == nullptr ? 0 : hash::matching_slots(kept, get.tag);
  return found != 0 && take_slot(get, kept, found);
}

bool HashGetGroup::take_slot(Get& get, const std::byte* kept, std::uint32_t found) const {
  const auto number = hash::first_match(found);
  get.slot_at = static_cast<std::uint32_t>(offsetof(hash::Bucket, slots) + number * sizeof(Slot));
  get.named = slot_in_bucket(kept, get.slot_at);
  if (shared_.reads.records != nullptr) shared_.reads.records->prefetch(get.named);
  return !get.named.is_link() &&
         shared_.reads.target->holds(get.named.offset(), sizeof(hash::VersionLink));
}

// The header before all else, and what confirms a record behind all of it.
void HashGetGroup::want_all() {
  ReadPort& port = *shared_.reads.port;
  reads_.failed = false;
  header_.want(port, reads_, *shared_.reads.target);
  for (const std::uint32_t i : begun_) {
    const std::size_t wanted = reads_.wanted.size();
    want(gets_[i], brought_[i]);
    port.prefetch(reads_, wanted);  // while the next ones are looked at
  }
}

void HashGetGroup::want(Get& get, Brought& brought) {
  ReadPort& port = *shared_.reads.port;
  const std::uint64_t record = get.named.offset();
  port.want(reads_, get.bin, brought.bin, sizeof brought.bin);
  if (get.line != 0) {
    port.want(reads_, place_of_line(get.segment, get.line), brought.more, sizeof brought.more);
  }
  get.remembered = take_kept(get, brought);
  if (!get.remembered) {
    const std::uint64_t most =
        std::min<std::uint64_t>(shared_.reads.record_bytes, sizeof brought.record);
    get.record_bytes =
        static_cast<std::uint32_t>(std::min(most, shared_.reads.target->region_bytes - record));
    port.want(reads_, record, brought.record, get.record_bytes);
  }
  port.want(reads_, record, brought.proof, sizeof brought.proof);
}

bool HashGetGroup::take_kept(Get& get, Brought& brought) const {
  if (shared_.reads.records == nullptr) return false;
  const std::span<const std::byte> kept = shared_.reads.records->find(get.named);
  if (kept.empty()) return false;
  std::memcpy(brought.record, kept.data(), kept.size());
  get.record_bytes = static_cast<std::uint32_t>(kept.size());
  return true;
}

// --- ending --------------------------------------------------------------------------------------

void HashGetGroup::end(std::vector<QueuedHashGet>& others) {
  static_cast<void>(ready_.pop());
  LeaseGuard& lease = *shared_.lease;
  // One look at the clock serves all: it comes after the last READ of all of them.
  const bool same = term_ == lease.term() || hash::planted(hash::Bug::other_term_believed);
  const bool good = same && lease.believed(shared_.now_ns()) && !reads_.failed &&
                    header_.is_of(*shared_.reads.target);
  std::exception_ptr thrown;
  for (const std::uint32_t i : begun_) {
    const Get& get = gets_[i];
    Completion answer;
    if (!good || !look(get, brought_[i], answer)) {
      if (get.remembered) shared_.reads.records->forget(get.named.offset());
      others.push_back(get.of);
      continue;
    }
    learn(get, brought_[i]);
    try {
      get.of.handler->done(answer);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  begun_.clear();
  lease.end(tick_);
  if (thrown) std::rethrow_exception(thrown);
}

bool HashGetGroup::look(const Get& get, const Brought& brought, Completion& answer) const {
  const std::byte* bucket = brought.bin;
  if (!is_of_segment(get.segment, bucket)) return false;
  if (hash::revisit(get.segment, bucket).look == hash::Look::changed) return false;
  if (get.line != 0) {
    const Slot last = slot_in_bucket(bucket, kLastSlotAt);
    if (!last.is_overflow() || last.line() != get.line) return false;
    bucket = brought.more;
    if (!is_of_segment(get.segment, bucket)) return false;
  }
  const bool there = slot_in_bucket(bucket, get.slot_at) == get.named;
  if (!there && !hash::planted(hash::Bug::hint_believed)) return false;
  const hash::RecordView record(nullptr, brought.record, get.named);
  const std::string_view key = get.of.request->key;
  const std::size_t pair_at = sizeof(RecordHeader) + key.size();
  if (pair_at > get.record_bytes || !record.confirmed() || !record.has_beside(key)) return false;
  const std::string_view value = record.value_beside(key.size());
  if (pair_at + value.size() > get.record_bytes) return false;
  const std::uint64_t version = record.version();
  const bool released = version <= header_.read_version();
  if (!released && !hash::planted(hash::Bug::answer_unreleased)) return false;
  const bool whole = std::memcmp(brought.record, brought.proof, sizeof brought.proof) == 0 ||
                     (get.remembered && hash::planted(hash::Bug::kept_record_believed));
  if (!whole && !hash::planted(hash::Bug::generation_not_confirmed)) return false;
  answer.tag = get.of.request->tag;
  answer.op = Op::get;
  answer.ok = true;
  answer.found = true;
  answer.read_version = header_.read_version();
  answer.version = version;
  answer.value = value;
  shared_.reads.note_record(pair_at + value.size());
  ++shared_.counts.answers;
  ++shared_.counts.found;
  ++shared_.counts.grouped;
  shared_.counts.kept += get.remembered ? 1 : 0;
  return true;
}

// Where others of the bin have changed; and what was not remembered yet.
void HashGetGroup::learn(const Get& get, const Brought& brought) const {
  constexpr std::size_t kSlotsAt = offsetof(hash::Bucket, slots);
  const bool same =
      std::memcmp(get.kept + kSlotsAt, brought.bin + kSlotsAt, hash::kLineBytes - kSlotsAt) == 0;
  if (!same) shared_.reads.cache->keep(get.bin, brought.bin);
  if (get.remembered || shared_.reads.records == nullptr) return;
  shared_.reads.records->keep(get.named.offset(), {brought.record, get.record_bytes});
}

}  // namespace espalier::place
