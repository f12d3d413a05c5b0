// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/audit.hpp"

#include <set>
#include <unordered_set>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "memory/shared_clock.hpp"

namespace espalier::hash {
namespace {

class Auditor {
 public:
  explicit Auditor(const HashMap& map) : map_(map) {}
  HashAudit run();

 private:
  void complain(std::string what) { result_.wrong.push_back(std::move(what)); }
  void check(bool good, const char* what, std::uint64_t where) {
    if (!good) complain(std::string(what) + ", " + std::to_string(where));
  }
  void audit_header();
  /// What all buffers begin with, but for values.
  template <class Header>
  void audit_identity(const Header& header, const char* what, std::uint64_t where);
  void audit_pages();
  void audit_segment_header(const Partition& partition, const Segment& segment);
  void audit_partition(const Partition& partition);
  void audit_directory(const Partition& partition);
  void audit_segment(const Partition& partition, const Segment& segment);
  std::uint64_t audit_bin(const Partition& partition, const Segment& segment, std::uint32_t bin,
                          std::set<std::uint32_t>& lines);
  void audit_slot(Slot slot, const Segment& segment, std::uint32_t bin,
                  std::set<std::string_view>& keys);
  void audit_record(Slot slot, std::uint64_t tag, std::string_view key);
  void count_record(Slot slot, bool link);
  void count_long_pair(const RecordView& record);
  void audit_memory();

  const HashMap& map_;
  HashAudit result_;
  std::unordered_set<std::uint64_t> records_;  // offsets of all that are reachable or wait
  std::uint64_t stocked_ = 0;
};

HashAudit Auditor::run() {
  audit_header();
  audit_pages();
  for (const Partition& partition : map_.partitions()) audit_partition(partition);
  audit_memory();
  return std::move(result_);
}

void Auditor::audit_header() {
  const auto header = base::load_plain<HashHeader>(map_.image + map_.header_offset);
  check(header.map_id == map_.id() && header.created == wire::kNoNode,
        "the header is another map's, at", map_.header_offset);
  check(header.superseded == (map_.is_dropped() ? 0 : wire::kLive),
        "the header does not say whether the map is there, at", map_.header_offset);
  check(header.magic == kHashMagic && header.format == kHashFormat,
        "the header is of no hash map, at", map_.header_offset);
  check(header.partitions == map_.partitions().size() &&
            header.versions == (map_.versions ? 1u : 0u) && header.seed[0] == map_.seed.first &&
            header.seed[1] == map_.seed.second,
        "the header says that the map is made otherwise, at", map_.header_offset);
  const memory::SharedClock* const shared = map_.group().clock();
  const std::uint64_t own = map_.header_offset + offsetof(HashHeader, read_version);
  check(header.clock_offset == (shared != nullptr ? shared->place() : own),
        "the header names another clock, at", map_.header_offset);
}

template <class Header>
void Auditor::audit_identity(const Header& header, const char* what, std::uint64_t where) {
  check(header.map_id == map_.id() && header.created == wire::kNoNode &&
            header.superseded == wire::kLive,
        what, where);
}

void Auditor::audit_pages() {
  map_.records().for_each_page([this](std::uint64_t offset, std::uint32_t record_bytes) {
    const auto header = base::load_plain<RecordPageHeader>(map_.image + offset);
    audit_identity(header, "a page of records is not this map's, at", offset);
    check(header.record_bytes == record_bytes, "a page has records of another length, at", offset);
  });
}

void Auditor::audit_segment_header(const Partition& partition, const Segment& segment) {
  const auto header = base::load_plain<SegmentHeader>(map_.image + segment.offset());
  audit_identity(header, "a segment is not this map's, at", segment.offset());
  check(header.partition == partition.number(), "a segment is of another partition, at",
        segment.offset());
  check((header.generation & PlaceWord::kGenerationMask) == segment.word().generation(),
        "a segment has another generation, at", segment.offset());
  // Since it was made its prefix has got a 0 with each split.
  bool same = false;
  for (std::uint32_t splits = 0; splits <= segment.depth(); ++splits) {
    same = same || header.prefix << splits == segment.prefix();
  }
  check(same, "a segment was made for another prefix, at", segment.offset());
  for (std::uint32_t i = 0; i < kBinsPerSegment; ++i) {
    check(segment.header(i).generation() == (header.generation & BucketWord::kGenerationMask),
          "a bin has another generation than its segment, bin", i);
  }
}

void Auditor::audit_partition(const Partition& partition) {
  const std::uint64_t before = result_.items;
  audit_directory(partition);
  for (const auto& segment : partition.all_segments()) audit_segment(partition, *segment);
  check(result_.items - before == partition.items(), "items are counted wrongly in partition",
        partition.number());
  stocked_ += partition.records_in_stock();
  const memory::SizeClass segments = memory::bins_class_of(kSegmentBytes);
  result_.buffers[segments] += partition.all_segments().size();
  if (partition.has_spare_segment()) ++result_.buffers[segments];
  const auto count_directory = [&](std::uint32_t depth) {
    ++result_.buffers[memory::bins_class_of(sizeof(DirectoryHeader) + (std::uint64_t{8} << depth))];
  };
  if (!partition.directory().none()) count_directory(partition.directory().depth());
  if (const auto depth = partition.spare_directory_depth()) count_directory(*depth);
}

void Auditor::audit_directory(const Partition& partition) {
  const PlaceWord directory = map_.directory(partition.number());
  check(directory == partition.directory(), "readers have another directory of partition",
        partition.number());
  if (directory.none()) {
    check(partition.all_segments().empty(), "no directory of partition", partition.number());
    return;
  }
  const std::byte* const head = map_.image + directory.offset();
  const auto header = base::load_plain<DirectoryHeader>(head);
  audit_identity(header, "a directory is not this map's, of partition", partition.number());
  check(header.depth == directory.depth() && header.partition == partition.number() &&
            (header.generation & PlaceWord::kGenerationMask) == directory.generation(),
        "a directory has another depth, partition or generation in partition", partition.number());
  const auto& entries = partition.entries();
  check(entries.size() == std::size_t{1} << directory.depth(),
        "a directory has not all its entries in partition", partition.number());
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const Segment& segment = *partition.all_segments()[entries[i]];
    check(map_.segment(directory, i) == segment.word(), "readers find another segment at entry", i);
    check(i >> (directory.depth() - segment.depth()) == segment.prefix(),
          "a segment is found by another prefix at entry", i);
  }
}

void Auditor::audit_segment(const Partition& partition, const Segment& segment) {
  audit_segment_header(partition, segment);
  std::set<std::uint32_t> lines;
  std::uint64_t slots = 0;
  for (std::uint32_t bin = 0; bin < kBinsPerSegment; ++bin) {
    slots += audit_bin(partition, segment, bin, lines);
  }
  check(slots == segment.slots(), "slots are counted wrongly in the segment at", segment.offset());
  check(lines.size() == segment.used_buckets(), "overflow buckets are lost in the segment at",
        segment.offset());
  result_.overflow_buckets += lines.size();
}

std::uint64_t Auditor::audit_bin(const Partition& partition, const Segment& segment,
                                 std::uint32_t bin, std::set<std::uint32_t>& lines) {
  const BucketWord header = segment.header(bin);
  const Partition::Split* const split = partition.split_of(segment);
  const bool child = split != nullptr && split->child == &segment;
  const bool parent = split != nullptr && split->parent == &segment;
  check(child || !header.pending(), "a bin is pending without a split", bin);
  const bool moved = split == nullptr || !split->child->header(bin).pending();
  check(header.depth() == segment.depth() - (parent && !moved ? 1 : 0), "a bin has another depth",
        bin);
  std::set<std::string_view> keys;
  std::uint64_t count = 0;
  std::uint32_t buckets = 0;
  for (const std::byte* bucket = segment.line(bin);;) {
    ++buckets;
    Slot last;
    bool ended = false;
    for (std::uint32_t i = 0; i < kSlotsPerBucket; ++i) {
      const Slot slot{base::load_shared<std::uint64_t>(bucket + offsetof(Bucket, slots) + 8 * i)};
      check(!(ended && !slot.empty()), "a bucket has a gap in bin", bin);
      ended = slot.empty();
      if (slot.is_overflow()) last = slot;
      check(!slot.is_overflow() || i + 1 == kSlotsPerBucket, "a link is out of place in bin", bin);
      if (slot.empty() || slot.is_overflow()) continue;
      ++count;
      audit_slot(slot, segment, bin, keys);
    }
    if (last.empty() || buckets > kChainMax) break;
    bucket = segment.line(last.line());
    check(lines.insert(last.line()).second, "an overflow bucket is in two chains, line",
          last.line());
    const BucketWord word = load_bucket_word(bucket);
    check(word.changes() == bin && word.generation() == header.generation(),
          "an overflow bucket is another bin's, line", last.line());
  }
  check(buckets <= kChainMax, "a chain is too long in bin", bin);
  check(!header.pending() || count == 0, "a pending bin has slots, bin", bin);
  result_.longest_chain = std::max(result_.longest_chain, buckets);
  return count;
}

void Auditor::audit_slot(Slot slot, const Segment& segment, std::uint32_t bin,
                         std::set<std::string_view>& keys) {
  const Slot any = any_record(map_.image, slot);
  const RecordView record(map_.image, any);
  const std::string_view key = record.pair().key;
  const KeyHash hash = map_.hash(key);
  check(keys.insert(key).second, "a key has two slots in bin", bin);
  check(hash.bin() == bin, "a key lies in another bin than its own", bin);
  const bool unmoved = segment.header(bin).depth() != segment.depth();
  const std::uint32_t depth = segment.header(bin).depth();
  check(hash.prefix(depth) == (unmoved ? segment.prefix() >> 1 : segment.prefix()),
        "a key lies in another segment than its own, bin", bin);
  if (!newest_state(map_.image, slot).record.empty()) ++result_.items;
  std::uint64_t above = kAnyVersion;
  for (Slot at = slot; !at.empty();) {
    const RecordView view(map_.image, at);
    check(at.tag() == hash.tag(), "a slot has the wrong tag in bin", bin);
    check(view.version() < above || !map_.versions, "versions do not fall in bin", bin);
    above = view.version();
    if (!at.is_link()) {
      audit_record(at, hash.tag(), key);
      break;
    }
    ++result_.links;
    check(map_.retirement().has_entry(hash.bits(), view.version()),
          "a link has no entry, its version is", view.version());
    count_record(at, true);
    check(!view.newer().empty() || !view.older().empty(), "a link leads nowhere in bin", bin);
    if (!view.newer().empty()) {
      audit_record(view.newer(), hash.tag(), key);
      check(RecordView(map_.image, view.newer()).version() == view.version(),
            "a link and its record have two versions in bin", bin);
    }
    at = view.older();
  }
}

void Auditor::audit_record(Slot slot, std::uint64_t tag, std::string_view key) {
  const RecordView record(map_.image, slot);
  count_record(slot, false);
  check(slot.tag() == tag, "a record is named by the wrong tag, at", slot.offset());
  check(record.pair().key == key, "a record has another key, at", slot.offset());
  check(record.version() <= map_.clock().released(), "a record is not released, at", slot.offset());
  count_long_pair(record);
}

void Auditor::count_record(Slot slot, bool link) {
  const RecordView view(map_.image, slot);
  check(records_.insert(slot.offset()).second, "a record is reachable twice, at", slot.offset());
  check(view.confirmed(), "a record has another generation, at", slot.offset());
  const RecordClass cls = map_.records().class_at(slot.offset());
  const std::uint64_t bytes =
      link || view.is_long()
          ? sizeof(VersionLink)
          : sizeof(RecordHeader) + view.pair().key.size() + view.pair().value.size();
  check(cls == record_class_of(bytes), "no record of this length is in use, at", slot.offset());
}

void Auditor::count_long_pair(const RecordView& record) {
  if (!record.is_long()) return;
  const Pair pair = record.pair();
  const wire::Ref ref = record.long_pair();
  check(record.long_hash() == map_.hash(pair.key).bits(), "a long pair has another key's hash, at",
        ref.offset());
  ++result_.buffers[memory::BufferPool::class_of(sizeof(LongPairHeader) + pair.key.size() +
                                                 pair.value.size())];
  check(
      map_.store().pool.is_buffer_begin(ref.offset(), memory::BufferKind::value, ref.generation()),
      "a long pair is not there, at", ref.offset());
}

void Auditor::audit_memory() {
  check(map_.retirement().entries().of_links == result_.links,
        "entries are of no link; links that stay:", result_.links);
  map_.retirement().for_each_waiting([&](Slot slot) {
    count_record(slot, slot.is_link());
    if (!slot.is_link()) count_long_pair(RecordView(map_.image, slot));
  });
  const RecordStore::Numbers numbers = map_.records().numbers();
  const std::uint64_t known = records_.size() + stocked_ + map_.spare_links();
  check(known == numbers.records, "records are lost, or known twice: so many are in use",
        numbers.records);
  result_.buffers[memory::kRecordsClass] += numbers.pages;
  const std::uint64_t header =
      sizeof(HashHeader) + map_.partitions().size() * sizeof(PartitionLine);
  ++result_.buffers[memory::bins_class_of(header)];
  for (const memory::Retired& waits : map_.store().reclaimer.waiting(map_, true).buffers) {
    ++result_.buffers[waits.size_class];
  }
}

}  // namespace

HashAudit audit(const HashMap& map) { return Auditor(map).run(); }

void HashMap::add_values(std::span<std::uint64_t> of_classes) const {
  const HashAudit audited = audit(*this);
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls) {
    if (memory::kind_of(cls) == memory::BufferKind::value) of_classes[cls] += audited.buffers[cls];
  }
}

}  // namespace espalier::hash
