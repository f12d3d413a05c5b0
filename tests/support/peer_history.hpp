// SPDX-License-Identifier: Apache-2.0
// Posts between nodes of a simulated world: what was posted, which completions were reported, and
// the content of the target memory, for the world of tests/support/peer_world.hpp.
//
// Each post has words of its own in its region, where it writes a value of its own: so the content
// shows whether it took effect, in part, or twice. Besides, a region has one word to which all add,
// one that all swap, and one for each posting process, with the progress of its WRITEs.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/peer_posts.hpp"
#include "kinds/region/region_object.hpp"

namespace espalier::test {

enum class PeerVerb : std::uint8_t { read, write, add, swap, count, order };

/// A post on memory, by the process `source` to the region of this number. A process is one life of
/// a node.
struct PeerPost {
  PeerVerb verb = PeerVerb::write;
  std::uint32_t source = 0;
  std::uint32_t region = 0;
  std::uint64_t session = 0;
  fabric::RegionKey key = 0;
  std::uint32_t word = 0;  ///< the first
  std::uint32_t words = 1;
  std::uint64_t value = 0;    ///< the value written; of a READ, the value expected
  std::uint64_t compare = 0;  ///< of a swap
};

/// Counts of events, in one or more worlds.
struct PeerReached {
  std::uint64_t answers = 0;
  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  std::uint64_t unknown = 0;
  std::uint64_t unknown_done = 0;  ///< that took effect, at least in part
  std::uint64_t not_sent = 0;
  std::uint64_t calls = 0;          ///< that were answered
  std::uint64_t far_calls = 0;      ///< of two hops
  std::uint64_t calls_unknown = 0;  ///< that completed as unknown
  std::uint64_t given_up = 0;       ///< of these, by a timeout
  std::uint64_t cancelled = 0;      ///< of these, before they were over
  std::uint64_t sessions = 0;       ///< beyond the first of each link
  std::uint64_t crashes = 0;
  std::uint64_t cuts = 0;
  std::uint64_t pauses = 0;
  std::uint64_t drops = 0;       ///< of regions
  std::uint64_t other_keys = 0;  ///< keys that were replaced
  std::uint64_t never_told = 0;  ///< posts of processes that crashed before
  std::uint64_t refusals = 0;    ///< times in which a node had no room for pairs
  std::uint64_t gone_clients = 0;
};

class PeerHistory {
 public:
  static constexpr std::uint32_t kWords = 1 << 15;
  static constexpr std::uint32_t kCountWord = 0;
  static constexpr std::uint32_t kSwapWord = 1;
  static constexpr std::uint32_t kOrderWords = 8;  ///< one for each process
  static constexpr std::uint32_t kOwnWords = 128;  ///< of posts, from here on
  static constexpr std::uint32_t kSourcesMax = kOwnWords - kOrderWords;

  explicit PeerHistory(PeerReached& reached) : reached_(reached) {}

  // --- regions -----------------------------------------------------------------------------------

  /// The size of the next region, which identifies it to nodes that open it.
  [[nodiscard]] std::uint64_t bytes_of_next() const { return (kWords + regions_.size()) * 8; }
  [[nodiscard]] static std::uint32_t number_of(std::uint64_t bytes) {
    return static_cast<std::uint32_t>(bytes / 8 - kWords);
  }
  /// `peer`: the node that has it. Requires: it has bytes_of_next(), and is written only by posts.
  std::uint32_t add_region(std::uint32_t peer, std::shared_ptr<region::RegionObject> object);
  /// From now on nothing may change in it.
  void region_dropped(std::uint32_t number);
  /// Its memory is freed.
  void region_gone(std::uint32_t number);
  /// Checks the progress of ordered WRITEs.
  void observe(std::uint32_t number);

  // --- posts -------------------------------------------------------------------------------------

  /// Words of its own for a post; nothing: there are no more.
  std::optional<std::uint32_t> take_words(std::uint32_t region, std::uint32_t count);
  /// A value that no other post writes.
  std::uint64_t next_value() { return ++values_; }
  /// A completed WRITE to a region, which a READ must see; null: there is none.
  [[nodiscard]] const PeerPost* done_write(std::uint32_t region, std::uint64_t draw) const;
  /// The last known value of a region's swapped word.
  [[nodiscard]] std::uint64_t known_swap(std::uint32_t region) const;
  /// Records a post before it is posted, after all earlier ones of its process there. Returns its
  /// number. Sets the value of a PeerVerb::order.
  std::size_t posted(PeerPost& post);
  /// Records its completion. `old`: the word that an atomic or a READ returned.
  void ended(std::size_t number, fabric::PostEnd how, const std::uint64_t* old);
  /// Nothing that left through earlier sessions of a process with this peer may take effect any
  /// more. `peer`: a node's number.
  void session_began(std::uint32_t source, std::uint32_t peer, std::uint64_t session);
  /// Nor anything that left with this key.
  void key_revoked(fabric::RegionKey key);
  /// Its process, or its request's client, is gone: its completion will not be reported.
  void never_told(std::size_t number);
  void source_ended(std::uint32_t source);

  // --- calls -------------------------------------------------------------------------------------

  /// Records a call. Returns its number, which is the expected answer.
  std::uint32_t called(std::uint32_t source, std::uint32_t peer, std::uint64_t session);
  void call_begun(std::uint32_t number);
  void call_ended(std::uint32_t number, fabric::PostEnd how);
  /// Records that its peer ended it early.
  void call_cancelled(std::uint32_t number);

  // --- what is wrong -----------------------------------------------------------------------------

  /// Checks all posts. Requires: nothing is in flight.
  void check_all();
  /// The first error; empty: none.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  void set_wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

 private:
  struct Posted {
    PeerPost post;
    std::optional<fabric::PostEnd> how;
    bool never_told = false;
    bool overtaken = false;               // had not arrived when a later one of its session had
    std::optional<std::uint32_t> frozen;  // words with its value, which may not change any more
  };
  /// The posts of one process to one region, in order.
  struct Ordered {
    std::vector<std::size_t> posts;
    std::uint64_t seen = 0;  // the value of their progress word
  };
  struct Region {
    std::uint32_t peer = 0;
    std::shared_ptr<region::RegionObject> object;  // null: it is gone
    const std::byte* bytes = nullptr;              // null: likewise
    std::vector<std::uint64_t> last;               // its final content
    std::uint32_t used = kOwnWords;
    std::vector<std::size_t> posts;
    std::vector<std::size_t> writes_done;
    std::map<std::uint32_t, Ordered> by_source;
    std::set<std::uint64_t> counts;                     // reported results
    std::map<std::uint64_t, std::size_t> swapped_from;  // the post that swapped a value
    std::uint64_t known_swap = 0;
  };
  struct CalledPeer {
    std::uint32_t source = 0;
    std::uint32_t peer = 0;
    std::uint64_t session = 0;
    std::uint32_t begun = 0;
    std::optional<fabric::PostEnd> how;
    bool cancelled = false;
    bool over = false;  // it may not start any more
  };

  [[nodiscard]] static std::uint64_t word_at(const Region& region, std::uint32_t word);
  [[nodiscard]] std::uint32_t words_with_value(const PeerPost& post) const;
  [[nodiscard]] static bool shows(const PeerPost& post);
  [[nodiscard]] std::string name(std::size_t number) const;
  void freeze(Posted& posted);
  void check_old(Region& region, std::size_t number, std::uint64_t old);
  void check_post(std::size_t number);
  void check_counts(const Region& region);

  PeerReached& reached_;
  std::vector<Region> regions_;
  std::vector<Posted> posts_;
  std::vector<CalledPeer> calls_;
  std::uint64_t values_ = 0;
  std::string wrong_;
};

}  // namespace espalier::test
