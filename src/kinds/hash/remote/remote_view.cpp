// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/remote_view.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/bytes.hpp"

namespace espalier::place {
namespace {

using hash::BucketWord;
using hash::KeyHash;
using hash::PlaceWord;
using hash::RecordHeader;
using hash::Slot;

/// Bytes that have not arrived read as this: no bin, no record.
alignas(hash::kLineBytes) constexpr std::byte kNothing[hash::kLineBytes] = {};
/// Limit on records that one get looks at: so many snapshots may involve one key.
constexpr std::uint32_t kRecordsLookedAtMax = 256;
/// Limit on the pieces of one attempt.
constexpr std::size_t kPiecesMax = 4 * kRecordsLookedAtMax;
/// Limit on the bytes that one attempt reads beside its value: those of other keys that look like
/// its own, and of former records.
constexpr std::uint64_t kOtherBytesMax = std::uint64_t{1} << 20;
/// The header of a longer pair is read first, because it tells the key's hash.
constexpr std::uint64_t kPairUnasked = std::uint64_t{64} << 10;
constexpr std::uint32_t kLastBucket = hash::kBinsPerSegment + hash::kOverflowPerSegment - 1;
constexpr std::uint32_t kFirstWords = 2 * sizeof(std::uint64_t);  // of a line of a partition
static_assert(sizeof(RecordHeader) == kFirstWords);

template <class T>
T at(const BroughtBytes::Piece& piece) {
  return base::load_plain<T>(piece.at);
}

}  // namespace

// --- requests ------------------------------------------------------------------------------------

RemoteView::Piece* RemoteView::want(Part part, std::uint64_t offset, std::uint64_t bytes) const {
  if (!reads_.target->holds(offset, bytes) || brought_.pieces().size() == kPiecesMax) {
    misled_ = true;
    return nullptr;
  }
  if (brought_.bytes() + bytes > reads_.value_bytes_max + kOtherBytesMax) {
    too_much_ = true;
    return nullptr;
  }
  Piece& piece = brought_.add(part, offset, static_cast<std::uint32_t>(bytes), round_);
  reads_.port->want(lane_, offset, piece.at, bytes);
  awaits_ = true;
  return &piece;
}

// Of a cached record only the header is read, which validates the copy.
bool RemoteView::take_kept(Slot slot) const {
  if (reads_.records == nullptr) return false;
  const std::span<const std::byte> kept = reads_.records->find(slot);
  if (kept.empty() || brought_.pieces().size() == kPiecesMax) return false;
  constexpr std::uint32_t kBeforeAll = 0;  // all that is read is read behind it
  Piece& piece = brought_.add(Part::record, slot.offset(), static_cast<std::uint32_t>(kept.size()),
                              kBeforeAll);
  std::memcpy(piece.at, kept.data(), kept.size());
  piece.kept = true;
  want(Part::record_proof, slot.offset(), sizeof(RecordHeader));
  return true;
}

// With its header again, if that comes behind it.
void RemoteView::want_record(Slot slot, std::uint64_t bytes, bool ahead) const {
  if (take_kept(slot)) return;
  const std::uint64_t offset = slot.offset();
  const std::uint64_t end = reads_.target->region_bytes;
  if (offset < end) bytes = std::min(bytes, end - offset);
  if (bytes < sizeof(hash::VersionLink)) {
    misled_ = true;
    return;
  }
  Piece* const piece = want(Part::record, offset, bytes);
  if (piece == nullptr) return;
  piece->ahead = ahead;
  if (reads_in_order()) want(Part::record_proof, offset, sizeof(RecordHeader));
}

void RemoteView::want_last(std::uint64_t bin) const {
  if (bin != 0) want(Part::last_word, bin, sizeof(BucketWord));
  if (!hash::planted(hash::Bug::line_before_buckets)) want_line();
}

void RemoteView::want_line() const { want(Part::last_line, line_offset(), kFirstWords); }

void RemoteView::prefetch() const {
  const auto& known = reads_.directories->of(hash_.partition());
  if (known.place.none() || reads_.cache == nullptr) return;
  const PlaceWord segment{known.entries[hash_.prefix(known.place.depth())]};
  reads_.cache->prefetch(bucket_offset(segment, hash_.bin()));
}

void RemoteView::ask_ahead() {
  if (hash::planted(hash::Bug::line_before_buckets)) want_line();
  const auto& known = reads_.directories->of(hash_.partition());
  if (known.place.none()) {
    static_cast<void>(directory(hash_.partition()));
    return;
  }
  const PlaceWord segment{known.entries[hash_.prefix(known.place.depth())]};
  std::uint32_t line = hash_.bin();
  Slot named;
  bool whole = false;  // all of its buckets are cached
  for (std::uint32_t steps = 0; steps < 2 * hash::kSlotsPerBucket; ++steps) {
    const std::uint64_t offset = bucket_offset(segment, line);
    if (want(Part::bucket, offset, hash::kLineBytes) == nullptr || reads_.cache == nullptr) return;
    const std::byte* const kept = reads_.cache->find(offset);
    if (kept == nullptr) break;
    const std::uint32_t found = hash::matching_slots(kept, hash_.tag());
    const auto slot_at = [kept](std::uint32_t i) {
      return Slot{
          base::load_plain<std::uint64_t>(kept + offsetof(hash::Bucket, slots) + i * sizeof(Slot))};
    };
    if (found != 0) {
      named = slot_at(hash::first_match(found));
      break;
    }
    const Slot last = slot_at(hash::kSlotsPerBucket - 1);
    whole = !last.is_overflow();
    if (whole || last.line() > kLastBucket) break;
    line = last.line();
  }
  // A link that was read before the bin that names it need not have been whole.
  const bool good = !named.empty() && (reads_in_order() || !named.is_link());
  if (good) return want_record(named, reads_.record_bytes, true);
  if (whole && reads_in_order() && !hash::planted(hash::Bug::buckets_read_once)) {
    twice_ = true;
    const std::size_t buckets = brought_.pieces().size();
    for (std::size_t i = 0; i < buckets; ++i) {
      const Piece piece = brought_.pieces()[i];
      if (piece.part == Part::bucket) want(Part::bucket_again, piece.offset, piece.bytes);
    }
    want_last(bucket_offset(segment, hash_.bin()));
  }
}

// --- lookups -------------------------------------------------------------------------------------

bool RemoteView::is_behind(const Piece& piece, const Piece* before) const {
  if (before == nullptr) return true;
  return reads_in_order() ? piece.number > before->number : piece.round > before->round;
}

const RemoteView::Piece* RemoteView::last_piece(Part part, std::uint64_t offset) const {
  const Piece* const piece = brought_.find(part, offset);
  return piece != nullptr && is_behind(*piece, brought_.last_of_body()) ? piece : nullptr;
}

PlaceWord RemoteView::directory(std::uint32_t partition) const {
  if (stopped()) return {};
  const auto& known = reads_.directories->of(partition);
  if (!known.place.none()) return known.place;
  const Piece* const line = brought_.find(Part::line, line_offset());
  if (line == nullptr) {
    want(Part::line, line_offset(), kFirstWords);
    return {};
  }
  const auto word = at<PlaceWord>(*line);
  if (word.depth() > hash::kDepthMax) misled_ = true;
  return stopped() ? PlaceWord{} : word;
}

bool RemoteView::is_directory(const Piece& proof, PlaceWord place) const {
  const auto header = at<hash::DirectoryHeader>(proof);
  return header.map_id == reads_.target->id && header.superseded == wire::kLive &&
         (header.generation & PlaceWord::kGenerationMask) == place.generation() &&
         header.depth == place.depth() && header.partition == hash_.partition();
}

// Reads the whole directory if it can be cached, else the one word.
PlaceWord RemoteView::segment(PlaceWord directory, std::uint32_t index) const {
  if (stopped()) return {};
  const std::uint32_t partition = hash_.partition();
  const auto& known = reads_.directories->of(partition);
  if (known.place == directory) return PlaceWord{known.entries[index]};
  const std::uint64_t count = std::uint64_t{1} << directory.depth();
  const bool whole = reads_.directories->may_keep(count);
  const std::uint64_t begin = directory.offset() + sizeof(hash::DirectoryHeader);
  const std::uint64_t offset = whole ? begin : begin + std::uint64_t{index} * sizeof(PlaceWord);
  const Piece* const entries = brought_.find(Part::entries, offset);
  if (entries == nullptr) {
    want(Part::entries, offset, (whole ? count : 1) * sizeof(PlaceWord));
    if (reads_in_order()) {
      want(Part::directory_proof, directory.offset(), sizeof(hash::DirectoryHeader));
    }
    return {};
  }
  const Piece* const proof = brought_.find(Part::directory_proof, directory.offset());
  if (proof == nullptr || !is_behind(*proof, entries)) {
    want(Part::directory_proof, directory.offset(), sizeof(hash::DirectoryHeader));
    return {};
  }
  if (!is_directory(*proof, directory)) {
    misled_ = true;
    return {};
  }
  if (!whole) return at<PlaceWord>(*entries);
  reads_.directories->keep(partition, directory, entries->at);
  return PlaceWord{known.entries[index]};
}

const std::byte* RemoteView::bucket(PlaceWord segment, std::uint32_t line) const {
  if (stopped()) return kNothing;
  if (segment.none() || line > kLastBucket) {
    misled_ = true;
    return kNothing;
  }
  const std::uint64_t offset = bucket_offset(segment, line);
  const bool again = searching_ && twice_;
  const Part part = again ? Part::bucket_again : Part::bucket;
  const Piece* const piece = brought_.find(part, offset);
  if (piece == nullptr || (again && !is_behind(*piece, link_))) {
    // Once ahead, once behind what names it: more often the buckets form a cycle.
    if (brought_.times_asked(part, offset) == 2) misled_ = true;
    if (!misled_) want(part, offset, hash::kLineBytes);
    return kNothing;
  }
  if (again && !hash::planted(hash::Bug::links_not_awaited)) link_ = piece;
  const std::uint32_t generation = at<BucketWord>(*piece).generation();
  if ((generation & PlaceWord::kGenerationMask) != segment.generation()) {
    misled_ = true;
    return kNothing;
  }
  return piece->at;
}

void RemoteView::enter(hash::BinPlace& place) {
  if (stopped() || place.look != hash::Look::found) return;
  searching_ = true;
  bin_ = bucket_offset(place.segment, hash_.bin());
  link_ = brought_.find(Part::bucket, bin_);
  if (twice_) place.bin = bucket(place.segment, hash_.bin());
}

// Before the first miss is reported, everything that it rests on is read again: the buckets behind
// the header by which the bin was located, each behind the one that links to it, and the header
// behind them. If READs are not ordered, "behind" means in a later round.
BucketWord RemoteView::bucket_word_now(const std::byte*) const {
  if (stopped()) return {};
  if (!twice_ && !hash::planted(hash::Bug::buckets_read_once)) {
    twice_ = true;
    const std::size_t come = brought_.come();
    for (std::size_t i = 0; i < come; ++i) {
      const Piece piece = brought_.pieces()[i];
      const bool again = piece.part == Part::bucket && (reads_in_order() || piece.offset == bin_) &&
                         !brought_.is_asked(Part::bucket_again, piece.offset);
      if (again) want(Part::bucket_again, piece.offset, piece.bytes);
    }
    if (reads_in_order()) want_last(bin_);
    return {};
  }
  const Piece* const word = last_piece(Part::last_word, bin_);
  if (word == nullptr) {
    want_last(bin_);
    return {};
  }
  return at<BucketWord>(*word);
}

std::uint64_t RemoteView::purged(std::uint32_t) const {
  if (stopped()) return 0;
  const bool any = hash::planted(hash::Bug::line_before_buckets);
  const Piece* const line = any ? brought_.find(Part::last_line, line_offset())
                                : last_piece(Part::last_line, line_offset());
  if (line == nullptr) {
    want_line();
    return 0;
  }
  return base::load_plain<std::uint64_t>(line->at + offsetof(hash::PartitionLine, purged));
}

// --- records -------------------------------------------------------------------------------------

hash::RecordView RemoteView::record(Slot slot) const {
  const hash::RecordView nothing(nullptr, kNothing, slot);
  if (stopped()) return nothing;
  if (slot.empty() || ++records_ > kRecordsLookedAtMax) {
    misled_ = true;
    return nothing;
  }
  const Piece* const piece = brought_.find(Part::record, slot.offset());
  const bool early = piece != nullptr && piece->ahead && !reads_in_order() &&
                     at<RecordHeader>(*piece).version > version_;
  if (piece == nullptr || early) {
    want_record(slot, reads_.record_bytes, false);
    return nothing;
  }
  return {nullptr, piece->at, slot};
}

// Long pairs of other keys are not read to be compared. Nor are values that are not wanted here.
bool RemoteView::may_have_key(const hash::LongRecord& record) const {
  if (record.key_bytes != key_.size()) return false;
  const std::uint64_t bytes = std::uint64_t{record.key_bytes} + record.value_bytes;
  if (bytes > kPairUnasked && !is_own_pair(wire::Ref{record.pair})) return false;
  if (record.value_bytes > reads_.value_bytes_max) too_much_ = true;
  return !too_much_;
}

bool RemoteView::is_own_pair(wire::Ref ref) const {
  const Piece* const head = brought_.find(Part::pair_head, ref.offset());
  if (head == nullptr) {
    want(Part::pair_head, ref.offset(), sizeof(hash::LongPairHeader));
    return false;
  }
  const auto own = at<hash::LongPairHeader>(*head);
  if ((own.generation & wire::kGenerationMask) != ref.generation() &&
      !hash::planted(hash::Bug::generation_not_confirmed)) {
    misled_ = true;
    return false;
  }
  return own.hash == hash_.bits();
}

hash::Pair RemoteView::pair(const hash::RecordView& record) const {
  if (stopped()) return {};
  const Piece* const piece = brought_.find(Part::record, record.slot().offset());
  const RecordHeader head = record.header();
  if (head.key_bytes != 0) {
    const std::uint64_t bytes =
        sizeof(RecordHeader) + std::uint64_t{head.key_bytes} + head.value_bytes;
    if (bytes > hash::kRecordLengthMax) {
      misled_ = true;
      return {};
    }
    if (bytes > piece->bytes) {
      reads_.note_record(bytes);
      want_record(record.slot(), bytes, false);
      return {};
    }
    const auto* const key = reinterpret_cast<const char*>(piece->at) + sizeof(RecordHeader);
    return {{key, head.key_bytes}, {key + head.key_bytes, head.value_bytes}};
  }
  const auto whole = at<hash::LongRecord>(*piece);
  if (head.value_bytes != hash::kLongRecord || whole.key_bytes == 0 ||
      whole.value_bytes > hash::kValueBytesMax) {
    misled_ = true;
    return {};
  }
  if (!may_have_key(whole)) return {};
  const wire::Ref ref{whole.pair};
  const std::uint64_t offset = ref.offset();
  const Piece* const own = brought_.find(Part::pair, offset);
  const std::uint64_t bytes =
      sizeof(hash::LongPairHeader) + std::uint64_t{whole.key_bytes} + whole.value_bytes;
  if (own == nullptr || own->bytes != bytes) {
    if (want(Part::pair, offset, bytes) != nullptr && reads_in_order()) {
      want(Part::pair_proof, offset, sizeof(wire::BufferHeader));
      want(Part::record_proof, record.slot().offset(), sizeof(RecordHeader));
    }
    return {};
  }
  const std::uint32_t generation = at<wire::BufferHeader>(*own).generation & wire::kGenerationMask;
  if (generation != ref.generation() && !hash::planted(hash::Bug::generation_not_confirmed)) {
    misled_ = true;
    return {};
  }
  const auto* const key = reinterpret_cast<const char*>(own->at) + sizeof(hash::LongPairHeader);
  return {{key, whole.key_bytes}, {key + whole.key_bytes, whole.value_bytes}};
}

// --- validation ----------------------------------------------------------------------------------

bool RemoteView::has_proof(const Piece& piece) const {
  const Part part = piece.part == Part::record ? Part::record_proof : Part::pair_proof;
  const Piece* const proof = brought_.find(part, piece.offset);
  if (proof == nullptr || !is_behind(*proof, &piece)) {
    const bool record = part == Part::record_proof;
    want(part, piece.offset, record ? sizeof(RecordHeader) : sizeof(wire::BufferHeader));
    return false;
  }
  if (hash::planted(hash::Bug::generation_not_confirmed)) return true;
  if (piece.part == Part::record) {
    const bool same = std::memcmp(piece.at, proof->at, sizeof(RecordHeader)) == 0;
    if (same || !piece.kept) return same;
    reads_.records->forget(piece.offset);
    return hash::planted(hash::Bug::kept_record_believed);
  }
  const auto before = at<wire::BufferHeader>(piece);
  const auto now = at<wire::BufferHeader>(*proof);
  return now.map_id == reads_.target->id && now.superseded == wire::kLive &&
         before.superseded == wire::kLive && now.generation == before.generation;
}

bool RemoteView::is_confirmed() {
  const std::size_t come = brought_.come();
  bool good = true;
  for (std::size_t i = 0; i < come && !misled_; ++i) {
    const Piece piece = brought_.pieces()[i];
    const bool counts = (piece.part == Part::record || piece.part == Part::pair) &&
                        brought_.find(piece.part, piece.offset)->number == piece.number;
    if (counts && !has_proof(piece)) good = false;
  }
  return good;
}

// Of records only the one of the answer, which was whole before its version was released. Another
// one may have been read while it was written, and then matches its header only in part.
void RemoteView::learn(const hash::Looked& looked) const {
  for (std::size_t i = 0; i < brought_.come(); ++i) {
    const Piece& piece = brought_.pieces()[i];
    const bool bucket = piece.part == Part::bucket || piece.part == Part::bucket_again;
    if (bucket && reads_.cache != nullptr) reads_.cache->keep(piece.offset, piece.at);
    const bool any = piece.part == Part::record && hash::planted(hash::Bug::any_record_kept);
    if (any) keep_record(piece.offset);
  }
  if (looked.look == hash::Look::found) keep_record(looked.record.offset());
}

void RemoteView::keep_record(std::uint64_t offset) const {
  const Piece* const piece = brought_.find(Part::record, offset);
  if (reads_.records == nullptr || piece->kept) return;
  reads_.records->keep(offset, {piece->at, piece->bytes});
}

}  // namespace espalier::place
