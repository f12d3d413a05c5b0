// SPDX-License-Identifier: Apache-2.0
// The view of a hash map for reading.hpp over bytes that READs bring: what one get looks at is
// there, or it is requested, and the look is repeated when it has arrived.
//
//   cold   map header, bin | record, its header once more            two waits
//   warm   map header, bin, record, its header once more             one wait
//   miss   ..., bin | bin, its header, the partition's line          the same, or one if foreseen
//
// (if READs are ordered; otherwise each of the parts that must come after another is a wait of its
// own).
//
// Correctness: why the bytes are valid
// 1. The lease was valid when the get began, then the read version v was read, then all else.
// 2. A bin's header identifies its segment (its generation) and tells whether the bin was moved
//    (its depth), so it does not matter what led there.
// 3. A bin that was read after v names a record whose version is at most v: the record was whole
//    before v was released. Its header was read again after its last byte, and was the same: so it
//    is the same record, and still whole. A long pair likewise, by its buffer's header.
//    A cached record, a copy of an earlier answer, is validated by its header alone: it is the
//    same, or another one lies there by now, and then it is dropped. If READs are not ordered the
//    header may have been read before the bin. The bin names another record by the same slot only
//    if its place was reused a multiple of 1024 times between the two, and a record that was named
//    meanwhile keeps it while the lease is held.
// 4. If READs are not ordered, what was read ahead may be older than the bin: then a record with a
//    version above v, which need not have been whole, is read again.
// 5. A miss: the bin's header came first, then all of its buckets, each after the one that links to
//    it, then the header once more, the same; and then the partition's line, of which `purged` is
//    at most v. An insert that links a free bucket to the chain moves a slot there, and no header
//    counts that: a reader of the new bucket before its link would miss the slot at both places.
// 6. The last of these READs succeeded only while the session's key was good, so the lease was held
//    until then (DESIGN §2.1 rule 4). The get's owner checks that it was the same lease.
//
// All bytes are the node's and may be anything: they lead to a retry, never outside the region, and
// never to an endless loop.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kinds/hash/reading.hpp"
#include "kinds/hash/remote/bin_cache.hpp"
#include "kinds/hash/remote/brought_bytes.hpp"
#include "kinds/hash/remote/hash_target.hpp"
#include "kinds/hash/remote/record_cache.hpp"
#include "reach/read_port.hpp"

namespace espalier::place {

/// Shared by all gets of a map.
struct HashReads {
  ReadPort* port = nullptr;
  const HashTarget* target = nullptr;
  KnownDirectories* directories = nullptr;
  BinCache* cache = nullptr;       // null: nothing is cached
  RecordCache* records = nullptr;  // null: no records are
  /// Bytes to read of a record: the length of the longest recent one.
  std::uint32_t record_bytes = 128;
  std::uint32_t longest = 0;  // of the last few
  /// A get with a longer value ends before it is read.
  std::uint64_t value_bytes_max = hash::kValueBytesMax;
  std::uint32_t few = 0;

  /// Adapts record_bytes to the length of a record that was read.
  void note_record(std::uint64_t bytes) {
    longest = std::max(longest, static_cast<std::uint32_t>(bytes + 15) & ~std::uint32_t{15});
    record_bytes = std::max(record_bytes, longest);
    if (++few != kFew) return;
    record_bytes = std::max<std::uint32_t>(longest, sizeof(hash::VersionLink));
    longest = few = 0;
  }

 private:
  static constexpr std::uint32_t kFew = 256;
};

class RemoteView {
 public:
  /// A view of one get at one version. READs are added to those of `lane`, in this round.
  RemoteView(HashReads& reads, BroughtBytes& brought, LaneReads& lane, std::uint32_t round,
             const hash::KeyHash& hash, std::string_view key, std::uint64_t version, bool twice)
      : reads_(reads),
        brought_(brought),
        lane_(lane),
        round_(round),
        hash_(hash),
        key_(key),
        version_(version),
        twice_(twice) {}

  /// Prefetches what ask_ahead() will look at.
  void prefetch() const;
  /// Requests what the get will look at, as far as the caches know it.
  void ask_ahead();

  // --- for reading.hpp ---------------------------------------------------------------------------
  [[nodiscard]] hash::PlaceWord directory(std::uint32_t partition) const;
  [[nodiscard]] hash::PlaceWord segment(hash::PlaceWord directory, std::uint32_t index) const;
  [[nodiscard]] const std::byte* bucket(hash::PlaceWord segment, std::uint32_t line) const;
  [[nodiscard]] hash::BucketWord bucket_word_now(const std::byte* bin) const;
  [[nodiscard]] hash::RecordView record(hash::Slot slot) const;
  [[nodiscard]] hash::Pair pair(const hash::RecordView& record) const;
  [[nodiscard]] std::uint64_t purged(std::uint32_t partition) const;

  // --- for the get -------------------------------------------------------------------------------
  /// Begins the search of a bin that was located. A miss is checked in the buckets as they were
  /// read after the header by which it was located.
  void enter(hash::BinPlace& place);
  /// Whether the records and pairs that were used were whole when they were read. Requests the
  /// READs that prove it.
  [[nodiscard]] bool is_confirmed();
  /// Whether something was requested: results since then are void.
  [[nodiscard]] bool awaits() const { return awaits_; }
  /// Whether bytes were impossible, or have changed: restart.
  [[nodiscard]] bool is_misled() const { return misled_; }
  /// Whether it would read more bytes than one get may.
  [[nodiscard]] bool wants_too_much() const { return too_much_; }
  /// Whether a miss needs the buckets read once more, from here on.
  [[nodiscard]] bool twice() const { return twice_; }
  /// Caches the buckets that were read, and the record of the answer.
  /// Requires: is_confirmed().
  void learn(const hash::Looked& looked) const;

 private:
  using Part = BroughtBytes::Part;
  using Piece = BroughtBytes::Piece;

  [[nodiscard]] bool stopped() const { return awaits_ || misled_ || too_much_; }
  [[nodiscard]] bool reads_in_order() const { return reads_.port->reads_in_order(); }
  Piece* want(Part part, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] bool may_have_key(const hash::LongRecord& record) const;
  [[nodiscard]] bool is_own_pair(wire::Ref ref) const;
  void want_record(hash::Slot slot, std::uint64_t bytes, bool ahead) const;
  [[nodiscard]] bool take_kept(hash::Slot slot) const;
  void want_last(std::uint64_t bin) const;
  void keep_record(std::uint64_t offset) const;
  void want_line() const;
  /// Whether `piece` was requested after `before`, and so read after it.
  [[nodiscard]] bool is_behind(const Piece& piece, const Piece* before) const;
  [[nodiscard]] const Piece* last_piece(Part part, std::uint64_t offset) const;
  [[nodiscard]] bool has_proof(const Piece& piece) const;
  [[nodiscard]] bool is_directory(const Piece& proof, hash::PlaceWord place) const;
  [[nodiscard]] std::uint64_t bucket_offset(hash::PlaceWord segment, std::uint32_t line) const {
    return segment.offset() + (std::uint64_t{1} + line) * hash::kLineBytes;
  }
  [[nodiscard]] std::uint64_t line_offset() const {
    return reads_.target->partition_line(hash_.partition());
  }

  HashReads& reads_;
  BroughtBytes& brought_;
  LaneReads& lane_;
  const std::uint32_t round_;
  const hash::KeyHash hash_;
  const std::string_view key_;
  const std::uint64_t version_;
  mutable bool twice_;
  bool searching_ = false;
  std::uint64_t bin_ = 0;                // the offset of the bin that is searched
  mutable const Piece* link_ = nullptr;  // after which the next bucket must be read
  mutable bool awaits_ = false;
  mutable bool misled_ = false;
  mutable bool too_much_ = false;
  mutable std::uint32_t records_ = 0;  // that were looked at
};

}  // namespace espalier::place
