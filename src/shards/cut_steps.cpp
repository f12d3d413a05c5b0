// SPDX-License-Identifier: Apache-2.0
#include "shards/cut_steps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "channel/rings/planted_client_bugs.hpp"

namespace espalier::client {
namespace {

/// Which of the parts.
using Some = std::vector<bool>;

class CutAttempt {
 public:
  CutAttempt(std::span<CutPart* const> parts, const NameError& name) : parts_(parts), name_(name) {}

  [[nodiscard]] Some all() const { return Some(parts_.size(), true); }
  [[nodiscard]] static bool has(const Some& some, bool wanted) {
    return std::ranges::find(some, wanted) != some.end();
  }

  /// Opens those anew whose snapshots are too old.
  Result<void> open(const Some& which) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (which[i]) parts_[i]->close();
    }
    return ask(which, &CutPart::begin_open,
               [](std::size_t, CutPart& part) { return part.finish_open(); });
  }

  /// Whose map has moved on since its snapshot was opened.
  Result<Some> collect() {
    Some moved(parts_.size());
    if (planted(Bug::cut_not_collected_again)) return moved;
    const auto asked = ask(all(), &CutPart::begin_collect, [&](std::size_t i, CutPart& part) {
      const auto version = part.finish_collect();
      if (version) moved[i] = *version != part.held_version();
      return version ? Result<void>() : std::unexpected(version.error());
    });
    if (!asked) return std::unexpected(asked.error());
    return moved;
  }

  /// Whether all snapshots were opened while all nodes held their releases.
  Result<bool> open_held() {
    for (CutPart* const part : parts_) part->close();  // before the time runs
    Some held(parts_.size());
    auto asked = ask(all(), &CutPart::begin_hold, [&](std::size_t i, CutPart& part) {
      const auto granted = part.finish_hold();
      held[i] = granted.has_value();
      return held[i] || granted.error().code == Code::busy ? Result<void>() : granted;
    });
    const bool everywhere = asked && !has(held, false);
    if (everywhere) asked = open(all());
    if (!everywhere && planted(Bug::holds_left_standing)) held.assign(parts_.size(), false);
    // They end now, whatever the others came to.
    Some stood(parts_.size());
    const auto ended = ask(held, &CutPart::begin_confirm, [&](std::size_t i, CutPart& part) {
      const auto version = part.finish_confirm();
      if (!version) return Result<void>(std::unexpected(version.error()));
      const bool same = planted(Bug::hold_version_not_asked) || *version == part.held_version();
      stood[i] = (version->has_value() && same) || planted(Bug::hold_taken_for_granted);
      return Result<void>();
    });
    if (!asked) return std::unexpected(asked.error());
    if (!ended) return std::unexpected(ended.error());
    return everywhere && !has(stood, false);
  }

 private:
  // Asks parts for something together. Returns the first error.
  template <class Finish>
  Result<void> ask(const Some& which, bool (CutPart::*begin)(), const Finish& finish) {
    Result<void> first;
    const auto note = [&](std::size_t i, const Error& error) {
      if (first) first = std::unexpected(name_(error, i));
    };
    Some begun(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!which[i]) continue;
      begun[i] = (parts_[i]->*begin)();
      if (!begun[i]) note(i, {Code::connection_lost, 0, 0});
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!begun[i]) continue;
      const Result<void> finished = finish(i, *parts_[i]);
      if (!finished) note(i, finished.error());
    }
    return first;
  }

  const std::span<CutPart* const> parts_;
  const NameError& name_;
};

}  // namespace

Result<void> cut_all(std::span<CutPart* const> parts, const NameError& name,
                     const std::function<bool()>& go_on) {
  CutAttempt steps(parts, name);
  Some moved = steps.all();
  // Opens those that have moved on. Returns whether none has since.
  const auto free_try = [&]() -> Result<bool> {
    if (const auto opened = steps.open(moved); !opened) return std::unexpected(opened.error());
    if (parts.size() == 1) return true;
    auto now = steps.collect();
    if (!now) return std::unexpected(now.error());
    moved = std::move(*now);
    return !CutAttempt::has(moved, true);
  };
  const auto came = [](const Result<bool>& taken) { return !taken || *taken; };
  const auto end = [](const Result<bool>& taken) {
    return taken ? Result<void>() : std::unexpected(taken.error());
  };
  for (int tries = 0; tries < kFreeTries; ++tries) {
    if (const auto taken = free_try(); came(taken)) return end(taken);
  }
  while (true) {
    if (const auto taken = steps.open_held(); came(taken)) return end(taken);
    if (!go_on()) return fail(Code::busy);
    // Where a round trip takes longer than a hold stands, as on a machine that has too much to do,
    // holds fail; but the writers may have paused.
    moved = steps.all();
    if (const auto taken = free_try(); came(taken)) return end(taken);
  }
}

}  // namespace espalier::client
