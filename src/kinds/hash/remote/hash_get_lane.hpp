// SPDX-License-Identifier: Apache-2.0
// Gets of a hash map whose READs go together: each round what all of them want is posted by one
// doorbell, with one READ of the map's header, for those that begin, before all that these want.
// When all of it has come each get looks again (remote_view.hpp), and is answered, or wants more.
//
// Where a READ is done when it has been posted, one lane has many gets; elsewhere each has its own,
// and goes on when its READs have come.
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

/// What became of gets by READ.
struct HashGetCounts {
  std::uint64_t answers = 0;
  std::uint64_t found = 0;
  std::uint64_t grouped = 0;   // of the answers: those of groups (hash_get_group.hpp)
  std::uint64_t kept = 0;      // of the answers: those of records that were remembered
  std::uint64_t restarts = 0;  // attempts that began again: something had changed
  std::uint64_t changed = 0;   // of these: a bin, or what it named
  std::uint64_t too_late = 0;  // of these: what there was at the version may be gone
};

/// What the lanes of one map share.
struct HashGetShared {
  HashReads reads;
  LeaseGuard* lease = nullptr;
  std::function<std::uint64_t()> now_ns;
  HashGetCounts counts;
  std::size_t busy = 0;  // gets that lanes have
};

/// A get that waits for its turn.
struct QueuedHashGet {
  const Request* request;
  Handler* handler;
};

/// The map's header as a READ brings it: whose it is, and its read version.
class HashHeaderRead {
 public:
  /// Asks for it, for what is asked for behind it. Errors: std::bad_alloc.
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
  /// A get begins again so often at most; then it is `contended`.
  static constexpr std::uint32_t kAttemptsMax = 16;

  /// `shared` outlives it.
  HashGetLane(HashGetShared& shared, std::uint32_t places);
  HashGetLane(const HashGetLane&) = delete;
  HashGetLane& operator=(const HashGetLane&) = delete;

  [[nodiscard]] bool has_room() const { return !free_.empty(); }
  /// Takes a get. Requires: has_room(), a key that maps may have. Errors: std::bad_alloc, and it is
  /// not taken.
  void take(const Request& request, Handler& handler);
  /// Goes on with what has come. Returns whether anything did. Errors: what handlers throw, each of
  /// whom has been told all the same.
  bool turn();
  /// Whether READs are on their way.
  [[nodiscard]] bool waits() const { return reads_.waiting; }

 private:
  enum class State : std::uint8_t {
    free,
    fresh,     // is to begin, or to begin again
    begun,     // waits for its read version
    looking,   // has it
    answered,  // has its answer, and waits until the lease is believed
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
    bool twice = false;      // its buckets are read twice, for a miss
    bool no_memory = false;  // for what it would have asked for: it ends when its READs have come
    hash::Looked looked{};
    BroughtBytes brought;
  };

  /// What a look came to: Look::changed, too, where bytes were met that cannot be.
  struct Outcome {
    bool waits = false;     // for what it has asked for
    bool too_much = false;  // it is not to be done by READs
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
  /// The time, asked for once in a turn: after all that the turn has found come.
  [[nodiscard]] std::uint64_t now_ns();

  HashGetShared& shared_;
  std::vector<Get> gets_;
  std::vector<std::uint32_t> free_;  // of them, with room for all
  std::uint64_t now_ns_ = 0;         // of this turn; 0: not asked for yet
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
