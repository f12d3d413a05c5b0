// SPDX-License-Identifier: Apache-2.0
// Gets of a hash map whose READs share doorbells: in each round one doorbell posts the READs of all
// of them, preceded by one READ of the map's header for those that begin. When all have arrived
// each get repeats its look (remote_view.hpp), and is answered, or requests more.
//
// If a READ is complete when it is posted, one lane has many gets; otherwise each get has its own
// lane, and continues when its READs have arrived.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/task.hpp"
#include "espalier/types.hpp"
#include "kinds/hash/remote/remote_view.hpp"
#include "reach/lease_guard.hpp"

namespace espalier::place {

/// Statistics of gets by READ.
struct HashGetCounts {
  std::uint64_t answers = 0;
  std::uint64_t found = 0;
  std::uint64_t grouped = 0;   // of the answers: those of groups (hash_get_group.hpp)
  std::uint64_t kept = 0;      // of the answers: those of cached records
  std::uint64_t restarts = 0;  // restarted attempts: something had changed
  std::uint64_t changed = 0;   // of these: a bin, or what it named
  std::uint64_t too_late = 0;  // of these: the state at the version may be gone
};

/// Shared by the lanes of one map.
struct HashGetShared {
  HashReads reads;
  LeaseGuard* lease = nullptr;
  std::function<std::uint64_t()> now_ns;
  HashGetCounts counts;
  std::size_t busy = 0;  // gets in lanes
};

/// A queued get.
struct QueuedHashGet {
  const Request* request;
  Handler* handler;
};

/// The map's header as READ: its identity, and its read version.
class HashHeaderRead {
 public:
  /// Adds its READ, before those that depend on it. Errors: std::bad_alloc.
  void want(ReadPort& port, LaneReads& reads, const HashTarget& target) {
    if (!target.shares_clock() || hash::planted(hash::Bug::own_clock_read)) {
      port.want(reads, target.header_offset, bytes_, sizeof bytes_);
      return;
    }
    constexpr std::size_t kVersion = offsetof(hash::HashHeader, read_version);
    port.want(reads, target.header_offset, bytes_, sizeof(wire::BufferHeader));
    port.want(reads, target.clock_offset, bytes_ + kVersion, sizeof(std::uint64_t));
  }
  /// Whether the map is still this one, and not dropped.
  [[nodiscard]] bool is_of(const HashTarget& target) const {
    return target.same_map(word(offsetof(hash::HashHeader, map_id), std::uint32_t{}),
                           word(offsetof(hash::HashHeader, generation), std::uint32_t{}),
                           word(offsetof(hash::HashHeader, superseded), std::uint64_t{}));
  }
  [[nodiscard]] std::uint64_t read_version() const {
    return word(offsetof(hash::HashHeader, read_version), std::uint64_t{});
  }

 private:
  template <class T>
  [[nodiscard]] T word(std::size_t at, T) const {
    return base::load_plain<T>(bytes_ + at);
  }
  alignas(
      8) std::byte bytes_[offsetof(hash::HashHeader, read_version) + sizeof(std::uint64_t)] = {};
};

class HashGetLane {
 public:
  /// Limit on attempts of a get; then it fails with `contended`.
  static constexpr std::uint32_t kAttemptsMax = 16;

  /// `shared` outlives it.
  HashGetLane(HashGetShared& shared, std::uint32_t places);
  HashGetLane(const HashGetLane&) = delete;
  HashGetLane& operator=(const HashGetLane&) = delete;

  [[nodiscard]] bool has_room() const { return !free_.empty(); }
  /// Takes a get. Requires: has_room(), a key that maps may have. Errors: std::bad_alloc, and it is
  /// not taken.
  void take(const Request& request, Handler& handler);
  /// Processes what has arrived. Returns whether anything has. Errors: exceptions of handlers, each
  /// of which was called all the same.
  bool turn();
  /// Whether READs are in flight.
  [[nodiscard]] bool waits() const { return reads_.waiting; }

 private:
  enum class State : std::uint8_t {
    free,
    fresh,     // to begin, or to restart
    begun,     // waits for its read version
    looking,   // has it
    answered,  // has its answer, and waits until the lease is valid
  };
  struct Get {
    State state = State::free;
    const Request* request = nullptr;
    Handler* handler = nullptr;
    std::optional<hash::KeyHash> hash;
    std::uint64_t version = 0;
    std::uint64_t term = 0;  // of the lease under which it began
    std::uint32_t tick = 0;
    std::uint32_t attempts = 0;
    bool twice = false;      // its buckets are read again, for a miss
    bool no_memory = false;  // for its next READs: it fails when those in flight arrive
    hash::Looked looked{};
    BroughtBytes brought;
  };

  /// The result of a look: Look::changed also for impossible bytes.
  struct Outcome {
    bool waits = false;     // for READs that it requested
    bool too_much = false;  // READs cannot serve it
    hash::Looked looked{};
  };

  [[nodiscard]] RemoteView view_of(Get& get);
  void arrive();
  void arrive_one(Get& get, bool lost, bool dropped);
  void refuse_stuck();
  bool begin_fresh();
  void ask_ahead(Get& get) noexcept;
  void look(Get& get);
  [[nodiscard]] Outcome look_again(Get& get);
  void answer_with(Get& get, const hash::Looked& looked);
  void answer(Get& get);
  void begin_again(Get& get, hash::Look why);
  void refuse(Get& get, Code code);
  void complete(Get& get, Completion& completion);
  void free_place(Get& get);
  [[nodiscard]] bool want_header() noexcept;
  void want_belief() noexcept;
  /// The time, read once in a turn: after all that the turn found has arrived.
  [[nodiscard]] std::uint64_t now_ns();

  HashGetShared& shared_;
  std::vector<Get> gets_;
  std::vector<std::uint32_t> free_;  // of them, with room for all
  std::uint64_t now_ns_ = 0;         // of this turn; 0: not read yet
  std::uint32_t round_ = 1;
  bool reads_header_ = false;  // in this round
  bool sent_ = false;
  bool wants_belief_ = false;
  HashHeaderRead header_;
  base::ReadyQueue ready_{1};
  base::ReadyQueue believed_{1};
  LaneReads reads_;
};

}  // namespace espalier::place
