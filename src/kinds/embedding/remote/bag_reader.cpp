// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/remote/bag_reader.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "kinds/embedding/bag_folder.hpp"
#include "kinds/embedding/planted_embedding_bugs.hpp"

namespace espalier::place {
namespace {

using embedding::Bug;
using embedding::EmbeddingHeader;
using embedding::PageEntry;
using embedding::planted;

enum EmbeddingReadFault : std::uint32_t { kEmbeddingHeaderFault = 3, kEmbeddingCountsFault = 4 };

/// The part of the header that readers use.
constexpr std::size_t kReadHeaderBytes = offsetof(EmbeddingHeader, count_reserved);
/// Limit on unwanted entries that one READ spans to avoid a second one.
constexpr std::uint32_t kEntriesBetween = 8;
constexpr std::size_t kEntryWords = sizeof(PageEntry) / sizeof(std::uint64_t);

}  // namespace

/// Rows of consecutive ids in flight.
struct BagReader::Step {
  enum class Phase : std::uint8_t { fresh, entries, rows, proof, whole };
  /// Entries of consecutive pages, and their offset in `entry_words`.
  struct Run {
    std::uint32_t first;
    std::uint32_t end;
    std::size_t at;
  };

  Step() {
    reads.walk = std::noop_coroutine();
    reads.ready = &ready;
  }
  [[nodiscard]] PageEntry entry(std::uint32_t page) const {
    const auto run = std::ranges::upper_bound(runs, page, {}, &Run::first) - 1;
    PageEntry found;
    std::memcpy(&found, entry_words.data() + run->at + (page - run->first) * kEntryWords,
                sizeof found);
    return found;
  }

  LaneReads reads;
  base::ReadyQueue ready{1};
  Phase phase = Phase::fresh;
  std::size_t first_id = 0;
  std::uint32_t rounds = 0;
  std::uint64_t list = 0;                // from which entries are read
  std::vector<const std::byte*> rows;    // destination of each
  std::vector<std::uint32_t> pending;    // of them, those not known to be whole
  std::vector<std::uint32_t> pages;      // of these rows, ascending
  std::vector<std::uint64_t> expected;   // the sequence of each
  std::vector<bool> confirmed;           // which of them are unchanged
  std::vector<Run> runs;                 // ascending
  std::vector<std::uint64_t> row_words;  // each row with a word to spare
  std::vector<std::uint64_t> entry_words;
  alignas(8) std::byte header[kReadHeaderBytes];
};

/// A reduction in progress: the lease of its rows, and its cleanup if it ends early.
class BagReader::Reading {
 public:
  Reading(BagReader& reader, std::span<const std::uint32_t> ids)
      : reader_(reader), tick_(reader.lease_.begin()) {
    reader_.ids_ = ids;
  }
  ~Reading() {
    reader_.leave();
    reader_.lease_.end(tick_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  BagReader& reader_;
  const std::uint32_t tick_;
};

BagReader::BagReader(ReadPort& port, const EmbeddingTarget& target, Options options)
    : port_(port),
      target_(target),
      divider_(embedding::rows_per_page(target.row_bytes)),
      options_(std::move(options)),
      lease_(options_.terms) {}

BagReader::~BagReader() = default;

TableResult<void> BagReader::reduce(const embedding::ReductionWork& work, std::span<float> results,
                                    const Wait& wait) {
  ESPALIER_ASSERT(work.bags.grouping == 0);
  const Reading reading(*this, work.bags.ids);
  const std::uint64_t term = lease_.term();
  const Result<std::size_t> wrong = find_wrong_id(wait);
  if (!wrong) return std::unexpected(TableError(wrong.error()));
  const bool good = *wrong == ids_.size();
  embedding::BagFolder folder(work, target_.options, results);
  Result<void> read;
  if (good) read = read_steps(folder, wait);
  if (read) read = await_belief(term, wait);
  if (!read) return std::unexpected(TableError(read.error()));
  if (!good) {
    const auto place = static_cast<std::uint32_t>(*wrong);
    return std::unexpected(embedding::error_of({ids_[place], place, rows_, false}));
  }
  folder.finish();
  counts_.bags += work.bags.offsets.size();
  counts_.rows += ids_.size();
  return {};
}

// --- the header ----------------------------------------------------------------------------------

// The place of the first id that is no row's; the end: there is none. Rows never become fewer, so
// the header is read only if an id is not among the known ones.
Result<std::size_t> BagReader::find_wrong_id(const Wait& wait) {
  const auto find = [this] {
    const auto wrong = std::ranges::find_if(ids_, [this](std::uint32_t id) { return id >= rows_; });
    return static_cast<std::size_t>(wrong - ids_.begin());
  };
  if (list_ != 0 && !ids_.empty() && find() == ids_.size()) return ids_.size();
  if (const auto came = read_header(wait); !came) return std::unexpected(came.error());
  return find();
}

Result<void> BagReader::read_header(const Wait& wait) {
  steps_.push_back(take_step());
  Step& step = *steps_.back();
  port_.want(step.reads, target_.header_offset, step.header, kReadHeaderBytes);
  if (auto sent = send(step); !sent) return sent;
  for (port_.poll(); step.reads.waiting; port_.poll()) {
    if (!wait()) port_.fail();
  }
  static_cast<void>(step.ready.pop());
  if (step.reads.failed) return fail(Code::connection_lost);
  auto taken = take_header(step.header);
  spare_.push_back(std::move(steps_.back()));
  steps_.pop_back();
  return taken;
}

Result<void> BagReader::take_header(const std::byte* bytes) {
  EmbeddingHeader header{};
  std::memcpy(&header, bytes, kReadHeaderBytes);
  if (!target_.is_live(header, renames_)) return fail(Code::not_found, target_.id);
  if (header.magic != embedding::kEmbeddingMagic || header.format != embedding::kEmbeddingFormat ||
      header.row_bytes != target_.row_bytes) {
    return fail(Code::corrupt, kEmbeddingHeaderFault);
  }
  const bool counts = header.rows <= embedding::kRowsMax &&
                      header.rows <= embedding::kPagesMax * divider_.rows() &&
                      target_.is_list(header.list);
  if (!counts) return fail(Code::corrupt, kEmbeddingCountsFault);
  rows_ = std::max(rows_, header.rows);
  if (list_ == 0 || !planted(Bug::old_list_believed)) list_ = header.list;
  return {};
}

// --- steps ---------------------------------------------------------------------------------------

std::shared_ptr<BagReader::Step> BagReader::take_step() {
  if (spare_.empty()) return std::make_shared<Step>();
  auto step = std::move(spare_.back());
  spare_.pop_back();
  return step;
}

// READs in flight still write to their destinations.
void BagReader::leave() {
  for (const auto& step : steps_) {
    if (step->reads.waiting) port_.keep_until_done(step->reads, step);
  }
  steps_.clear();
}

std::uint32_t BagReader::page_of(const Step& step, std::uint32_t place) const {
  return divider_.page_of(ids_[step.first_id + place]);
}

bool BagReader::is_page(std::uint64_t ref) const {
  const std::uint64_t offset = wire::Ref{ref}.offset();
  return ref != 0 && target_.holds(offset, embedding::kPageBytes);
}

void BagReader::begin_step(std::size_t first_id) {
  const std::size_t most = std::clamp<std::size_t>(kStepBytesMax / target_.row_bytes, 1,
                                                   std::max(options_.step_rows, 1u));
  steps_.push_back(take_step());
  Step& step = *steps_.back();
  step.phase = Step::Phase::fresh;
  step.first_id = first_id;
  step.rounds = 0;
  step.rows.assign(std::min(most, ids_.size() - first_id), nullptr);
  step.pending.resize(step.rows.size());
  for (std::uint32_t i = 0; i < step.pending.size(); ++i) step.pending[i] = i;
}

Result<void> BagReader::read_steps(embedding::BagFolder& folder, const Wait& wait) {
  for (std::size_t next = 0;;) {
    while (steps_.size() < kStepsAhead && next < ids_.size()) {
      begin_step(next);
      next += steps_.back()->rows.size();
    }
    if (steps_.empty()) return {};
    for (const auto& step : steps_) {
      if (auto gone = go_on(*step); !gone) return gone;
    }
    port_.poll();
    Step& front = *steps_.front();
    if (front.phase == Step::Phase::whole) {
      folder.fold(front.rows);
      spare_.push_back(std::move(steps_.front()));
      steps_.pop_front();
    } else if (front.reads.waiting && !wait()) {
      port_.fail();
    }
  }
}

Result<void> BagReader::go_on(Step& step) {
  if (step.reads.waiting) return {};
  if (!step.ready.empty()) static_cast<void>(step.ready.pop());
  if (step.reads.failed) return fail(Code::connection_lost);
  switch (step.phase) {
    case Step::Phase::fresh: return ask(step);
    case Step::Phase::entries: return take_entries(step);
    case Step::Phase::rows: ask_proof(step); return send(step);
    case Step::Phase::proof: return take_proof(step);
    case Step::Phase::whole: break;
  }
  return {};
}

// --- requests ------------------------------------------------------------------------------------

Result<void> BagReader::ask(Step& step) {
  collect_pages(step);
  const auto unknown = [this](std::uint32_t page) { return !pages_[page].is_known(); };
  if (std::ranges::any_of(step.pages, unknown)) {
    ask_entries(step);
  } else {
    ask_rows(step);
  }
  return send(step);
}

Result<void> BagReader::begin_round(Step& step) {
  if (++step.rounds == kRoundsMax) return fail(Code::contended);
  return ask(step);
}

void BagReader::collect_pages(Step& step) {
  step.pages.clear();
  for (const std::uint32_t place : step.pending) step.pages.push_back(page_of(step, place));
  std::ranges::sort(step.pages);
  step.pages.erase(std::unique(step.pages.begin(), step.pages.end()), step.pages.end());
  // Its rows are counted, so there are as many pages.
  if (pages_.size() <= step.pages.back()) pages_.resize(std::size_t{step.pages.back()} + 1);
}

void BagReader::ask_entries(Step& step) {
  step.phase = Step::Phase::entries;
  want_entries(step, true);
  port_.want(step.reads, target_.header_offset, step.header, kReadHeaderBytes);
}

void BagReader::ask_rows(Step& step) {
  const std::size_t slot_words = (target_.row_bytes + 7) / 8 + 1;
  step.row_words.resize(step.rows.size() * slot_words);
  step.expected.clear();
  for (const std::uint32_t page : step.pages) step.expected.push_back(pages_[page].sequence);
  for (const std::uint32_t place : step.pending) {
    const std::uint32_t id = ids_[step.first_id + place];
    const std::uint32_t page = divider_.page_of(id);
    const std::uint64_t in_page = id - std::uint64_t{page} * divider_.rows();
    const std::uint64_t offset = wire::Ref{pages_[page].ref}.offset() +
                                 sizeof(embedding::PageHeader) + in_page * target_.row_bytes;
    std::byte* const to =
        reinterpret_cast<std::byte*>(step.row_words.data() + place * slot_words) + offset % 8;
    step.rows[place] = to;
    port_.want(step.reads, offset, to, target_.row_bytes);
  }
  step.phase = Step::Phase::rows;
  if (port_.reads_in_order() || planted(Bug::proof_with_rows)) ask_proof(step);
}

void BagReader::ask_proof(Step& step) {
  step.phase = Step::Phase::proof;
  want_entries(step, false);
  port_.want(step.reads, target_.header_offset, step.header, kReadHeaderBytes);
}

// Entries beyond the list's capacity are those of a newer one, which the header names.
void BagReader::want_entries(Step& step, bool unknown_only) {
  step.list = list_;
  step.runs.clear();
  std::size_t words = 0;
  for (const std::uint32_t page : step.pages) {
    if (page >= target_.room_of(step.list)) break;
    if (unknown_only && pages_[page].is_known()) continue;
    if (step.runs.empty() || page - step.runs.back().end > kEntriesBetween) {
      step.runs.push_back({page, page, words});
    }
    Step::Run& run = step.runs.back();
    words += (page + 1 - run.end) * kEntryWords;
    run.end = page + 1;
  }
  step.entry_words.resize(words);
  for (const Step::Run& run : step.runs) {
    port_.want(step.reads, step.list + std::uint64_t{run.first} * sizeof(PageEntry),
               reinterpret_cast<std::byte*>(step.entry_words.data() + run.at),
               std::size_t{run.end - run.first} * sizeof(PageEntry));
  }
}

Result<void> BagReader::send(Step& step) {
  if (step.reads.failed && port_.failed()) return fail(Code::connection_lost);
  ESPALIER_ASSERT(!step.reads.failed);  // all bytes requested were found to lie in the region
  port_.prefetch(step.reads, 0);
  port_.send(step.reads);
  return {};
}

// --- completions ---------------------------------------------------------------------------------

Result<void> BagReader::take_entries(Step& step) {
  if (auto taken = take_header(step.header); !taken) return taken;
  for (const Step::Run& run : step.runs) {
    for (std::uint32_t page = run.first; page < run.end; ++page) {
      const PageEntry entry = step.entry(page);
      if (is_page(entry.page)) pages_[page] = {entry.page, entry.sequence};
    }
  }
  return begin_round(step);
}

Result<void> BagReader::take_proof(Step& step) {
  auto taken = take_header(step.header);
  if (!taken && !planted(Bug::header_not_looked_at)) return taken;
  const bool newest = step.list == list_;
  step.confirmed.assign(step.pages.size(), planted(Bug::torn_row_believed));
  for (std::size_t i = 0; i < step.pages.size(); ++i) {
    const std::uint32_t page = step.pages[i];
    if (page >= target_.room_of(step.list)) break;
    const PageEntry entry = step.entry(page);
    if (newest && entry.page == pages_[page].ref && entry.sequence == step.expected[i]) {
      step.confirmed[i] = true;
    }
    pages_[page].sequence = entry.sequence;
  }
  std::erase_if(step.pending, [&](std::uint32_t place) {
    const auto at = std::ranges::lower_bound(step.pages, page_of(step, place));
    return step.confirmed[static_cast<std::size_t>(at - step.pages.begin())];
  });
  counts_.rereads += step.pending.size();
  if (!step.pending.empty()) return begin_round(step);
  step.phase = Step::Phase::whole;
  return {};
}

// --- the lease -----------------------------------------------------------------------------------

Result<void> BagReader::await_belief(std::uint64_t term, const Wait& wait) {
  while (lease_.term() == term && !lease_.ended() && !port_.failed()) {
    if (!believed_.empty()) {
      static_cast<void>(believed_.pop());
      wants_belief_ = false;
    }
    if (lease_.believed(options_.now_ns())) return {};
    if (!wants_belief_) lease_.wait(std::noop_coroutine(), believed_, true);
    wants_belief_ = true;
    if (!wait()) break;
  }
  return fail(Code::connection_lost);
}

}  // namespace espalier::place
