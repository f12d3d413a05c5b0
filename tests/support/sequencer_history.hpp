// SPDX-License-Identifier: Apache-2.0
// Numbers that clients of one sequencer took, and the ends of its epochs, in one order of time:
// checked against a sequencer's guarantees.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kinds/sequencer/answer.hpp"

namespace espalier::test {

/// Numbers that a client has taken.
struct Given {
  sequencer::Range range;
  std::uint64_t begun_ns = 0;
  std::uint64_t told_ns = 0;
};
/// An epoch's end, as its caller knows it.
struct Sealed {
  std::uint64_t told_ns = 0;
  std::uint64_t next = 0;
};

[[nodiscard]] inline std::string text_of(const sequencer::Range& range) {
  return std::to_string(range.first) + " to " + std::to_string(range.end() - 1) + " of epoch " +
         std::to_string(range.epoch);
}

/// Numbers taken, and what is wrong with them.
class SequencerHistory {
 public:
  void give(const Given& given) { given_.push_back(given); }
  void seal(std::uint32_t epoch, const Sealed& sealed) { sealed_.emplace(epoch, sealed); }
  [[nodiscard]] const Sealed* seal_of(std::uint32_t epoch) const {
    const auto found = sealed_.find(epoch);
    return found == sealed_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::string wrong() {
    for (const Given& given : given_) {
      const Sealed* const sealed = seal_of(given.range.epoch);
      if (sealed == nullptr) continue;
      if (given.begun_ns > sealed->told_ns) {
        return text_of(given.range) + " were taken after the seal was acknowledged";
      }
      if (given.range.end() > sealed->next) {
        return text_of(given.range) + " are not below what the seal said";
      }
    }
    std::string twice = wrong_with_numbers();
    return twice.empty() ? wrong_with_time() : twice;
  }

 private:
  // No number twice, and higher numbers have no lower epochs.
  std::string wrong_with_numbers() {
    std::ranges::sort(given_, {}, [](const Given& given) { return given.range.first; });
    for (std::size_t i = 1; i < given_.size(); ++i) {
      const sequencer::Range& before = given_[i - 1].range;
      const sequencer::Range& range = given_[i].range;
      if (before.end() > range.first) return text_of(before) + ", and " + text_of(range);
      if (before.epoch > range.epoch) return text_of(before) + " are below " + text_of(range);
    }
    return "";
  }
  // A number taken after another was returned is above it.
  std::string wrong_with_time() {
    std::vector<Given> by_told = given_;
    std::ranges::sort(by_told, {}, &Given::told_ns);
    std::ranges::sort(given_, {}, &Given::begun_ns);
    std::size_t done = 0;
    std::uint64_t above = 0;
    for (const Given& given : given_) {
      for (; done < by_told.size() && by_told[done].told_ns < given.begun_ns; ++done) {
        above = std::max(above, by_told[done].range.end());
      }
      if (given.range.first < above) return text_of(given.range) + " came too late";
    }
    return "";
  }

  std::vector<Given> given_;
  std::map<std::uint32_t, Sealed> sealed_;
};

}  // namespace espalier::test
