// SPDX-License-Identifier: Apache-2.0
#include "tests/support/version_replay.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "tests/support/versioned_model.hpp"

namespace espalier::test {
namespace {

using Pointers = std::vector<const Operation*>;

bool writes_something(const Operation& operation) {
  return operation.applied && !operation.refused;
}

// The lowest version of the writes that began after a given moment.
class LaterWrites {
 public:
  explicit LaterWrites(Pointers writes) : by_invocation_(std::move(writes)) {
    std::sort(by_invocation_.begin(), by_invocation_.end(),
              [](const Operation* a, const Operation* b) { return a->invoked < b->invoked; });
    lowest_.resize(by_invocation_.size() + 1, nullptr);
    for (std::size_t i = by_invocation_.size(); i-- > 0;) {
      const Operation* next = lowest_[i + 1];
      const Operation* here = by_invocation_[i];
      lowest_[i] = next == nullptr || here->version < next->version ? here : next;
    }
  }

  /// nullptr if no write began after it.
  [[nodiscard]] const Operation* lowest_after(std::uint64_t responded) const {
    const auto first =
        std::partition_point(by_invocation_.begin(), by_invocation_.end(),
                             [&](const Operation* write) { return write->invoked <= responded; });
    return lowest_[static_cast<std::size_t>(first - by_invocation_.begin())];
  }

 private:
  Pointers by_invocation_;
  Pointers lowest_;  // of by_invocation_[i..]
};

class Replay {
 public:
  explicit Replay(const History& history)
      : history_(history), model_(history), later_(applied_writes(history)) {}

  std::optional<std::string> run() {
    Pointers order;
    for (const Operation& operation : history_.operations) order.push_back(&operation);
    std::sort(order.begin(), order.end(),
              [](const Operation* a, const Operation* b) { return a->invoked < b->invoked; });
    // Operations that have begun, by their end: those that have ended raise the floor.
    const auto ends_later = [](const Placed& a, const Placed& b) {
      return a.operation->responded > b.operation->responded;
    };
    std::vector<Placed> open;
    for (const Operation* operation : order) {
      while (!open.empty() && open.front().operation->responded < operation->invoked) {
        std::pop_heap(open.begin(), open.end(), ends_later);
        if (floor_.operation == nullptr || open.back().moment > floor_.moment) floor_ = open.back();
        open.pop_back();
      }
      if (operation->refused) continue;
      if (auto wrong = place(*operation)) return wrong;
      if (operation->pinned) continue;
      open.push_back({operation, moment_});
      std::push_heap(open.begin(), open.end(), ends_later);
    }
    return std::nullopt;
  }

  static Pointers applied_writes(const History& history) {
    Pointers writes;
    for (const Operation& operation : history.operations) {
      if (writes_something(operation)) writes.push_back(&operation);
    }
    return writes;
  }

 private:
  struct Placed {
    const Operation* operation = nullptr;
    Version moment = 0;
  };

  [[nodiscard]] Version floor() const { return std::max(floor_.moment, history_.initial_version); }
  [[nodiscard]] std::string floor_text() const {
    return floor_.operation == nullptr ? "the beginning" : describe(*floor_.operation);
  }

  // Finds the operation's moment, or returns why it has none.
  std::optional<std::string> place(const Operation& operation) {
    if (writes_something(operation)) return place_write(operation);
    if (operation.read_version) return place_at(operation, *operation.read_version);
    return search(operation);
  }

  std::optional<std::string> place_write(const Operation& write) {
    if (write.version <= floor()) {
      return fmt::format("{}\n  has a version not above {}, where it began after\n  {}",
                         describe(write), floor(), floor_text());
    }
    if (auto wrong = model_.wrong_before(write)) {
      return fmt::format("{}\n  but {}", describe(write), *wrong);
    }
    moment_ = write.version;
    return std::nullopt;
  }

  std::optional<std::string> place_at(const Operation& read, Version version) {
    if (!read.pinned && version < floor()) {
      return fmt::format("{}\n  read below version {}, where it began after\n  {}", describe(read),
                         floor(), floor_text());
    }
    if (const Operation* later = later_.lowest_after(read.responded);
        later != nullptr && version >= later->version) {
      return fmt::format("{}\n  read at the version of a write that began later\n  {}",
                         describe(read), describe(*later));
    }
    if (!model_.fit(read, version).fits) {
      return fmt::format("{}\n  is not what the map held at version {}", describe(read), version);
    }
    moment_ = version;
    return std::nullopt;
  }

  std::optional<std::string> search(const Operation& operation) {
    const Operation* later = later_.lowest_after(operation.responded);
    const Version low = floor();
    // Beyond the newest write there may be versions under which leaves were merged.
    const Version high = later == nullptr ? kNever - 1 : later->version - 1;
    Version version = low;
    while (version <= high) {
      const Fit fit = model_.fit(operation, version);
      if (fit.fits) {
        moment_ = version;
        return std::nullopt;
      }
      version = fit.again;
    }
    return fmt::format("{}\n  is right at no version from {} (after {})\n  to {} (before {})",
                       describe(operation), low, floor_text(), high,
                       later == nullptr ? std::string("the end") : describe(*later));
  }

  const History& history_;
  VersionedModel model_;
  LaterWrites later_;
  Placed floor_;        // of the operations that have ended, one with the highest moment
  Version moment_ = 0;  // of the operation placed last
};

std::optional<std::string> wrong_versions(const History& history) {
  Pointers writes = Replay::applied_writes(history);
  std::sort(writes.begin(), writes.end(),
            [](const Operation* a, const Operation* b) { return a->version < b->version; });
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (writes[i]->version == 0) {
      return fmt::format("{}\n  applied without a version", describe(*writes[i]));
    }
    if (i > 0 && writes[i - 1]->version == writes[i]->version) {
      return fmt::format("two writes have one version:\n  {}\n  {}", describe(*writes[i - 1]),
                         describe(*writes[i]));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> replay_versions(const History& history) {
  for (const Operation& operation : history.operations) {
    if (auto wrong = malformed(operation)) return describe(operation) + "\n  " + *wrong;
  }
  if (auto wrong = wrong_versions(history)) return wrong;
  return Replay(history).run();
}

}  // namespace espalier::test
