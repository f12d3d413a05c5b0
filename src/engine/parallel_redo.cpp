// SPDX-License-Identifier: Apache-2.0
#include "engine/parallel_redo.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/cpu.hpp"
#include "catalog/redo_record.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "store/clock_groups.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

/// Before each record of a piece; the record follows, up to a multiple of 8.
struct PieceEntry {
  std::uint64_t index;
  std::uint64_t bytes;
};

std::string_view text_of_record(std::span<const std::byte> record) {
  return {reinterpret_cast<const char*>(record.data()), record.size()};
}

/// Whether others must stand still for it: names and ids are of all objects. What is no record is
/// refused in its turn as well.
bool is_of_catalog(const Result<catalog::RedoHead>& head) {
  return !head || head->type < catalog::kOwnRedoTypes;
}

}  // namespace

/// Pieces of records on their way to one thread, and that thread.
class ParallelRedo::Queue {
 public:
  /// Throws std::system_error, std::bad_alloc.
  Queue(const Terms& terms, std::uint32_t index, std::atomic<bool>& failed)
      : target_(terms.services, terms.own, index),
        piece_bytes_(terms.piece_bytes),
        failed_(failed) {
    for (auto& piece : pieces_) piece.reserve(piece_bytes_ + piece_bytes_ / 8);
    thread_ = std::thread([this] { run(); });
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  /// Throws std::bad_alloc, and then has added nothing.
  void add(std::uint64_t index, std::span<const std::byte> record) {
    if (!begun_) wait_for_done(given_ + 1 - std::min<std::uint64_t>(given_ + 1, kPieces));
    begun_ = true;
    Piece& piece = pieces_[given_ % kPieces];
    const PieceEntry entry{index, record.size()};
    const std::size_t at = piece.size();
    piece.resize(at + sizeof entry + base::round_up(record.size(), 8));
    std::memcpy(piece.data() + at, &entry, sizeof entry);
    std::memcpy(piece.data() + at + sizeof entry, record.data(), record.size());
    if (piece.size() >= piece_bytes_) give();
  }
  /// Has its thread apply a record where it lies, behind what was added; waits for that.
  void apply_in_place(std::uint64_t index, std::span<const std::byte> record) {
    give();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == given_; });
    in_place_ = InPlace{index, record};
    changed_.notify_all();
    changed_.wait(lock, [this] { return !in_place_; });
  }
  [[nodiscard]] bool is_long(std::span<const std::byte> record) const {
    return record.size() > kLongPieces * piece_bytes_;
  }
  /// Has its thread apply what was added.
  void give() {
    if (!std::exchange(begun_, false)) return;
    const std::scoped_lock lock(mutex_);
    ++given_;
    changed_.notify_all();
  }
  /// Waits until all that was given is applied.
  void wait() { wait_for_done(given_); }
  /// The first of its records that was refused. Requires: as after wait().
  [[nodiscard]] const std::optional<Refused>& refused() const { return refused_; }

 private:
  /// The caller fills one, the thread empties another.
  static constexpr std::size_t kPieces = 4;
  /// What is longer than so many full pieces is not copied, so that what waits has a bound.
  static constexpr std::size_t kLongPieces = 4;
  using Piece = std::vector<std::byte>;
  struct InPlace {
    std::uint64_t index;
    std::span<const std::byte> record;
  };

  void wait_for_done(std::uint64_t pieces) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= pieces; });
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopped_ || in_place_ || done_ != given_; });
      if (stopped_) return;
      lock.unlock();
      // This thread alone changes done_, and the caller waits for what is in place.
      const bool is_in_place = in_place_.has_value();
      is_in_place ? apply(in_place_->index, in_place_->record) : empty(pieces_[done_ % kPieces]);
      lock.lock();
      if (is_in_place) {
        in_place_.reset();
      } else {
        ++done_;
      }
      changed_.notify_all();
    }
  }
  void empty(Piece& piece) {
    if (!refused_) apply_all(piece);
    piece.clear();
    if (piece.capacity() > 4 * piece_bytes_) piece = Piece();  // a long value was in it
  }
  void apply_all(const Piece& piece) {
    records_.clear();
    indices_.clear();
    try {
      for (std::size_t at = 0; at < piece.size();) {
        PieceEntry entry{};
        std::memcpy(&entry, piece.data() + at, sizeof entry);
        at += sizeof entry;
        indices_.push_back(entry.index);
        records_.push_back(text_of_record(std::span(piece).subspan(at, entry.bytes)));
        at += base::round_up(entry.bytes, std::uint64_t{8});
      }
    } catch (const std::bad_alloc&) {
      return refuse(indices_.empty() ? 0 : indices_.front(), {Code::out_of_memory, 0, 0});
    }
    std::size_t applied = 0;
    if (const auto done = target_.apply_all(records_, applied); !done) {
      refuse(indices_[applied], done.error());
    }
  }
  void apply(std::uint64_t index, std::span<const std::byte> record) {
    if (refused_) return;
    const auto applied = target_.apply(text_of_record(record));
    if (!applied) refuse(index, applied.error());
  }
  void refuse(std::uint64_t index, const Error& error) {
    refused_ = Refused{index, error};
    failed_ = true;
  }

  RedoTarget target_;  // the thread's
  const std::size_t piece_bytes_;
  std::atomic<bool>& failed_;
  std::optional<Refused> refused_;     // the thread's until a piece is done
  std::array<Piece, kPieces> pieces_;  // [done_, given_) are the thread's, the others the caller's
  std::optional<InPlace> in_place_;    // the thread's until it is gone; set when all is done
  std::vector<std::string_view> records_;  // the thread's, of the piece that it applies
  std::vector<std::uint64_t> indices_;     // of them
  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;       // the caller fills the piece behind those that it gave
  std::uint64_t given_ = 0;  // pieces; the caller's, who changes it with the lock held
  std::uint64_t done_ = 0;   // of them; the thread's, likewise
  bool stopped_ = false;
  std::thread thread_;
};

std::uint32_t ParallelRedo::usual_threads() {
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(base::usable_cores().size()), 1,
                                   kThreadsMax);
}

ParallelRedo::ParallelRedo(const Terms& terms) : alone_(terms.services, terms.own) {}
ParallelRedo::~ParallelRedo() = default;

Result<std::unique_ptr<ParallelRedo>> ParallelRedo::start(const Terms& terms) {
  ESPALIER_ASSERT(terms.threads >= 1 && terms.threads <= kThreadsMax);
  std::unique_ptr<ParallelRedo> redo(new ParallelRedo(terms));
  redo->forget_queues();
  try {
    for (std::uint32_t i = 0; i < terms.threads; ++i) {
      redo->queues_.push_back(std::make_unique<Queue>(terms, i, redo->failed_));
    }
  } catch (const std::system_error& error) {
    return fail(Code::system, static_cast<std::uint32_t>(error.code().value()));
  }
  return redo;
}

Result<void> ParallelRedo::apply(std::span<const std::byte> record) {
  if (refused_) return std::unexpected(refused_->error);
  if (failed_) return finish();
  const auto head = catalog::read_redo_head(text_of_record(record));
  const bool is_barrier = is_of_catalog(head) && !(head && planted(Bug::redo_barrier_passed));
  auto taken = is_barrier ? apply_alone(record) : add(head->object, record);
  ++next_;
  return taken;
}

Result<void> ParallelRedo::apply_alone(std::span<const std::byte> record) {
  if (auto before = finish(); !before) return before;
  const auto applied = alone_.apply(text_of_record(record));
  forget_queues();
  return applied ? applied : refuse({next_, applied.error()});
}

// All queues are empty.
void ParallelRedo::forget_queues() {
  queue_by_object_.clear();
  queue_by_clock_.clear();
  clocks_are_shared_ = alone_.services().store.groups->any();
}

// A clock's records are of the queue of that object which had the first of them.
std::size_t ParallelRedo::queue_of(std::uint32_t object) {
  const std::size_t own = object % queues_.size();
  if (!clocks_are_shared_) return own;
  const auto known = queue_by_object_.find(object);
  if (known != queue_by_object_.end()) return known->second;
  const auto entry = alone_.services().catalog().find_any(object);
  const memory::VersionClock* const clock =
      entry != nullptr ? entry->object->transaction_clock() : nullptr;
  const std::size_t queue =
      clock != nullptr ? queue_by_clock_.try_emplace(clock, own).first->second : own;
  queue_by_object_.emplace(object, queue);
  return queue;
}

Result<void> ParallelRedo::add(std::uint32_t object, std::span<const std::byte> record) {
  try {
    Queue& queue = *queues_[queue_of(object)];
    if (queue.is_long(record)) {
      queue.apply_in_place(next_, record);
    } else {
      queue.add(next_, record);
    }
    return {};
  } catch (const std::bad_alloc&) {
    static_cast<void>(finish());  // one before it may have been refused
    return refused_ ? std::unexpected(refused_->error)
                    : refuse({next_, {Code::out_of_memory, 0, 0}});
  }
}

// What was refused first is so after all that was queued was tried: another queue may be behind.
Result<void> ParallelRedo::finish() {
  for (const auto& queue : queues_) queue->give();
  for (const auto& queue : queues_) queue->wait();
  if (refused_) return std::unexpected(refused_->error);
  std::optional<Refused> first;
  for (const auto& queue : queues_) {
    const auto& refused = queue->refused();
    if (refused && (!first || refused->index < first->index)) first = refused;
  }
  return first ? refuse(*first) : Result<void>();
}

Result<void> ParallelRedo::refuse(const Refused& refused) {
  refused_ = refused;
  return std::unexpected(refused.error);
}

}  // namespace espalier::offload
