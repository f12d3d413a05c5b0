// SPDX-License-Identifier: Apache-2.0
// A scan in parts: splits one range at some keys, walks the parts concurrently, and delivers them
// as one scan [Fat-B+Tree §IV-C]. The borders affect cost only.
//
//   part   0: current       1         2         3         in the order of the scan
//          |-------->.......|#####>...|##full...|##>......
//          delivered         buffered until earlier parts have ended
//
// A part buffers its items, up to `part_bytes`, until earlier parts have ended. When the buffer is
// full it stops, and resumes from there when its turn comes.
//
// A resumed part relies on items that a node has sent. An item that no walk of the part can deliver
// there ends the scan with `corrupt`.
//
// Invariants
// 1. Items are delivered in the order of the scan, each once.
// 2. All parts are walked at one read version. The caller that runs them is responsible for this:
//    nothing here distinguishes versions (DESIGN §2.1 rule 10).
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
  /// Limit on the bytes of items that a part buffers.
  static constexpr std::size_t kPartBytes = std::size_t{256} << 10;

  /// `request` is a scan; it and `to` outlive this. Uses those of the untrusted `borders` that
  /// ascend and lie in the range.
  PartsOfScan(const Request& request, std::vector<std::string> borders, Handler& to,
              std::size_t part_bytes = kPartBytes);
  PartsOfScan(const PartsOfScan&) = delete;
  PartsOfScan& operator=(const PartsOfScan&) = delete;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(parts_.size()); }
  /// A part that should be walked now; null: none, until a walk has ended. Run it with this as its
  /// handler and the part's number as its tag.
  [[nodiscard]] const Request* next_due();
  /// Reports that a part of next_due() could not be run.
  void refuse(const Request& part, const Error& error);
  /// Whether no part is due or being walked.
  [[nodiscard]] bool is_over() const { return walking_ == 0 && (ended_ || due_.empty()); }
  /// Counts arrivals: items, and ends of walks.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }
  /// Completes the scan at `to`. `read_version`: if none, that of the first part.
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
    std::string high;  // exclusive, except the scan's own end if it is included
    Request request;
    std::string from;      // the last buffered key
    bool resumed = false;  // the walk resumes at that key
    bool walking = false;
    bool stopped = false;  // the buffer was full
    bool ended = false;
    std::vector<BufferedItem> kept;
    std::string bytes;  // keys and values of these, concatenated
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
  std::size_t first_ = 0;    // the current part
  std::vector<std::uint32_t> due_;
  std::size_t walking_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t progress_ = 0;
  bool ended_ = false;  // nothing more is delivered
  Error error_{};
  Version read_version_ = 0;
};

/// The version at which to walk a part if all are to be walked at `held`.
[[nodiscard]] inline const memory::HeldVersion* version_of(const Request& part,
                                                           const memory::HeldVersion* held) {
  return tree::planted(tree::Bug::parts_of_many_versions) && part.tag != 0 ? nullptr : held;
}

/// Walks all parts; afterwards the scan must be finished. `submit(part)` starts a walk; `advance()`
/// runs the started walks, and waits a little if none can proceed.
/// `submit` may throw std::bad_alloc without side effects; nothing else throws.
template <class Submit, class Advance>
void walk_parts(PartsOfScan& scan, const Submit& submit, const Advance& advance) {
  for (;;) {
    while (const Request* const part = scan.next_due()) {
      try {
        submit(*part);
      } catch (const std::bad_alloc&) {  // while others are being walked
        scan.refuse(*part, {Code::out_of_memory, 0, 0});
      }
    }
    if (scan.is_over()) break;
    advance();
  }
}

}  // namespace espalier::client
