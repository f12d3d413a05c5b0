// SPDX-License-Identifier: Apache-2.0
// A scan in parts: one range, cut at some keys, whose parts are walked at the same time and handed
// on as one scan [Fat-B+Tree §IV-C]. Where the cuts are changes only what it costs.
//
//   part   0: in hand        1         2         3         in the order of the scan
//          |-------->.......|#####>...|##full...|##>......
//          handed on         kept until the parts before have ended
//
// A part keeps what it has found until those before it have ended, at most `part_bytes`; then it
// stops, and goes on from there when its turn comes.
//
// Where a part goes on is what a node has sent. What a walk of the part cannot deliver there ends
// the scan with `corrupt`.
//
// Invariants
// 1. Items are handed on in the order of the scan, each once.
// 2. All parts are walked at one read version, which is whoever runs them to see to: here nothing
//    tells versions apart (DESIGN §2.1 rule 10).
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/types.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "memory/held_version.hpp"

namespace espalier::client {

class PartsOfScan final : public Handler {
 public:
  /// Bytes of items that a part keeps.
  static constexpr std::size_t kPartBytes = std::size_t{256} << 10;

  /// `request` is a scan, and it and `to` outlive this. Of `borders`, which may come from anywhere,
  /// those count that ascend and lie in the range.
  PartsOfScan(const Request& request, std::vector<std::string> borders, Handler& to,
              std::size_t part_bytes = kPartBytes);
  PartsOfScan(const PartsOfScan&) = delete;
  PartsOfScan& operator=(const PartsOfScan&) = delete;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(parts_.size()); }
  /// A part that is to be walked now; null: none, until one that is walked has ended. It is to be
  /// run with this as its handler, and its tag is the part's.
  [[nodiscard]] const Request* next_due();
  /// A part that next_due() gave could not be run.
  void refuse(const Request& part, const Error& error);
  /// Nothing is due or walked any more.
  [[nodiscard]] bool is_over() const { return walking_ == 0 && (ended_ || due_.empty()); }
  /// Rises with all that comes: items, and ends of walks.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }
  /// Tells `to` that the scan is over. `read_version`: none is that of the first part.
  /// Requires: is_over().
  void finish(std::optional<Version> read_version = std::nullopt);

  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

 private:
  struct BufferedItem {
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
    Version version;
  };
  struct Part {
    std::string low;   // inclusive
    std::string high;  // exclusive, but that of the scan where it takes its end
    Request request;
    std::string from;      // the last key that was kept
    bool resumed = false;  // the walk begins with that key
    bool walking = false;
    bool stopped = false;  // there was no more room
    bool ended = false;
    std::vector<BufferedItem> kept;
    std::string bytes;  // of these, one after the other
  };

  void prepare(Part& part);
  [[nodiscard]] bool is_wanted(const Part& part, std::string_view key) const;
  [[nodiscard]] bool is_in_turn(const Part& part, std::string_view key) const;
  [[nodiscard]] bool keep(Part& part, std::span<const Item> items);
  [[nodiscard]] bool hand_on(Part& part, std::span<const Item> items);
  [[nodiscard]] bool deliver(std::span<const Item> items);
  void hand_on_kept(Part& part);
  void go_on();

  const Request& request_;
  Handler& to_;
  const std::size_t part_bytes_;
  std::vector<Part> parts_;  // in the order of the scan
  std::size_t first_ = 0;    // the part in hand
  std::vector<std::uint32_t> due_;
  std::size_t walking_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t progress_ = 0;
  bool ended_ = false;  // nothing more is handed on
  Error error_{};
  Version read_version_ = 0;
};

/// As of which version a part is walked, where all are to be walked as of this one.
[[nodiscard]] inline const memory::HeldVersion* version_of(const Request& part,
                                                           const memory::HeldVersion* held) {
  return tree::planted(tree::Bug::parts_of_many_versions) && part.tag != 0 ? nullptr : held;
}

/// Walks all parts; the scan is to be finished then. `submit(part)` begins to walk one; `advance()`
/// lets those that are walked go on, and waits a little where none can.
/// `submit` may throw std::bad_alloc where it takes nothing; nothing else throws.
template <class Submit, class Advance>
void walk_parts(PartsOfScan& scan, const Submit& submit, const Advance& advance) {
  for (;;) {
    while (const Request* const part = scan.next_due()) {
      try {
        submit(*part);
      } catch (const std::bad_alloc&) {  // others are being walked
        scan.refuse(*part, {Code::out_of_memory, 0, 0});
      }
    }
    if (scan.is_over()) break;
    advance();
  }
}

}  // namespace espalier::client
