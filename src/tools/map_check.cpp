// SPDX-License-Identifier: Apache-2.0
#include "tools/map_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "cmdline/text_codec.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kStretchBytes = std::uint64_t{8} << 20;  // of values
constexpr int kTriesMax = 8;  // of one stretch, if its version was given up each time

std::string quoted_key(std::string_view key) {
  return fmt::format("key '{}'", encode(key, cmdline::Encoding::escaped));
}

std::string shown_end(std::string_view bound) {
  return bound.empty() ? "an end" : fmt::format("'{}'", encode(bound, cmdline::Encoding::escaped));
}

std::size_t digest_of(std::string_view value) { return std::hash<std::string_view>{}(value); }

/// The least key above `key`; empty: there is none.
std::string key_above(std::string_view key, std::uint32_t max_key_bytes) {
  std::string above(key);
  if (above.size() < max_key_bytes) return above + '\0';
  while (!above.empty() && above.back() == '\xff') above.pop_back();
  if (!above.empty()) ++above.back();
  return above;
}

/// Whether an error says something about the map, and not about the way to it.
bool describes_map(const Error& error) {
  return error.code == Code::corrupt || error.code == Code::key_too_long ||
         error.code == Code::invalid_argument || error.code == Code::value_too_long;
}

template <class Source>
class AnswersOf final : public Answers {
 public:
  explicit AnswersOf(Source source) : source_(std::move(source)) {}
  Result<std::uint64_t> scan(std::string_view low, std::string_view high, const ItemSink& sink,
                             ScanOptions options) override {
    return source_.scan(low, high, sink, options);
  }
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override {
    return source_.count(low, high);
  }
  Result<std::optional<Found>> get(std::string_view key) override { return source_.get(key); }
  Result<std::optional<FoundItem>> floor(std::string_view key) override {
    return source_.floor(key);
  }

 private:
  Source source_;
};

struct Seen {
  std::string key;
  std::size_t digest;  // of its value
};

class MapCheck {
 public:
  MapCheck(const std::function<Result<std::unique_ptr<Answers>>()>& open,
           const MapCheckOptions& options, const std::function<std::uint64_t()>& now_ns)
      : open_(open), options_(options), now_ns_(now_ns), random_(options.seed) {}

  MapCheckReport run(const std::function<void(std::uint64_t)>& progress) {
    while (going() && !at_end_) {
      if (!hold()) break;
      if (!look_at_stretch()) continue;  // again, as of a newer version
      progress(report_.items);
    }
    if (going() && options_.steady) look_at_whole();
    report_.stopped_by = stopped_by_;
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool going() const {
    return !stopped_by_ && report_.faults.size() < MapCheckReport::kFaultsMax;
  }

  template <class... Parts>
  void fault(fmt::format_string<Parts...> text, Parts&&... parts) {
    if (report_.faults.size() == MapCheckReport::kFaultsMax) return;
    report_.faults.push_back(fmt::format(text, std::forward<Parts>(parts)...));
  }

  /// Holds a version, a newer one if the last was held for long. Returns false if it cannot.
  bool hold() {
    if (answers_ && now_ns_() - held_since_ns_ < options_.hold_ns) return true;
    answers_.reset();
    auto opened = open_();
    if (!opened) {
      stopped_by_ = opened.error();
      return false;
    }
    answers_ = std::move(*opened);
    held_since_ns_ = now_ns_();
    ++report_.versions;
    return true;
  }

  /// Notes what a call failed with. Returns whether to go on with this stretch: never.
  bool fails(std::string_view call, const Error& error) {
    if (error.code == Code::snapshot_expired && ++tries_ < kTriesMax) {
      answers_.reset();
    } else if (describes_map(error)) {
      fault("{} fails behind {}: {}", call, shown_end(low_), reason(error));
      at_end_ = true;
    } else {
      stopped_by_ = error;
    }
    return false;
  }

  /// Returns whether the stretch is done. Faults found in one that is begun again are found again.
  bool look_at_stretch() {
    const std::size_t faults_before = report_.faults.size();
    const bool done = scan_up() && (stretch_.empty() || compare_stretch());
    if (!done) {
      if (!answers_) report_.faults.resize(faults_before);
      return false;
    }
    tries_ = 0;
    report_.items += stretch_.size();
    if (!more_) at_end_ = true;
    if (stretch_.empty()) return true;
    last_ = stretch_.back().key;
    low_ = high_;
    if (low_.empty()) at_end_ = true;
    return true;
  }

  bool compare_stretch() {
    high_ = key_above(stretch_.back().key, options_.max_key_bytes);
    if (!scan_down()) return false;
    return !options_.steady || (count_stretch() && ask_for_samples());
  }

  bool scan_up() {
    stretch_.clear();
    more_ = false;
    bool in_order = true;
    std::uint64_t bytes = 0;
    const auto look = [&](std::span<const Item> run) {
      for (const Item& item : run) {
        const std::string_view before =
            stretch_.empty() ? std::string_view(last_) : std::string_view(stretch_.back().key);
        if (!(before < item.key) && (!stretch_.empty() || report_.items != 0)) {
          fault("an ascending scan delivers {} after '{}'", quoted_key(item.key),
                encode(before, cmdline::Encoding::escaped));
          return in_order = false;
        }
        if (stretch_.size() == options_.stretch_items) {
          fault("an ascending scan delivers {}, and more items than it was asked for",
                quoted_key(item.key));
          return in_order = false;
        }
        bytes += item.value.size();
        stretch_.push_back({std::string(item.key), digest_of(item.value)});
        more_ = stretch_.size() == options_.stretch_items || bytes >= kStretchBytes;
        if (bytes >= kStretchBytes) return false;
      }
      return true;
    };
    const auto scanned = answers_->scan(low_, "", look, {options_.stretch_items, false, false});
    if (!scanned) return fails("an ascending scan", scanned.error());
    if (!in_order) at_end_ = true;
    return in_order;
  }

  bool scan_down() {
    std::size_t left = stretch_.size();
    std::string before;
    bool equal = true;
    const auto look = [&](std::span<const Item> run) {
      for (const Item& item : run) {
        equal = options_.steady ? same_as_up(item, left) : in_descending_order(item, before);
        if (!equal) return false;
        before = item.key;
        if (left != 0) --left;
      }
      return true;
    };
    // One more than there may be, so that no answer is longer than the question.
    const auto scanned = answers_->scan(low_, high_, look, {stretch_.size() + 1, true, false});
    if (!scanned) return fails("a descending scan", scanned.error());
    if (equal && left != 0 && options_.steady) {
      fault("a descending scan lacks {}, which an ascending one delivers",
            quoted_key(stretch_[left - 1].key));
    }
    return true;
  }

  bool same_as_up(const Item& item, std::size_t left) {
    if (left == 0 || item.key != stretch_[left - 1].key) {
      fault("a descending scan delivers {} where an ascending one delivers {}",
            quoted_key(item.key), left == 0 ? "nothing" : quoted_key(stretch_[left - 1].key));
      return false;
    }
    if (digest_of(item.value) == stretch_[left - 1].digest) return true;
    fault("scans in the two directions deliver different values for {}", quoted_key(item.key));
    return false;
  }

  bool in_descending_order(const Item& item, std::string_view before) {
    const bool within = item.key >= low_ && (high_.empty() || item.key < high_);
    if (within && (before.empty() || item.key < before)) return true;
    fault("a descending scan delivers {} after {}", quoted_key(item.key), shown_end(before));
    return false;
  }

  bool count_stretch() {
    const auto counted = answers_->count(low_, high_);
    if (!counted) return fails("a count", counted.error());
    if (*counted != stretch_.size()) {
      fault("{} items are counted from {} on, up to {}, where a scan delivers {}", *counted,
            quoted_key(stretch_.front().key), quoted_key(stretch_.back().key), stretch_.size());
    }
    return true;
  }

  // The first and the last one, at which ranges meet, and some between; of few all.
  bool ask_for_samples() {
    const bool all = stretch_.size() <= std::size_t{4} * options_.samples;
    const std::size_t asked = all ? stretch_.size() : options_.samples;
    for (std::size_t i = 0; i < asked && going(); ++i) {
      std::size_t at = all ? i : random_.below(stretch_.size());
      if (!all && i == 0) at = 0;
      if (!all && i == 1) at = stretch_.size() - 1;
      if (!ask_for(at)) return false;
    }
    return true;
  }

  bool ask_for(std::size_t at) {
    const Seen& item = stretch_[at];
    const auto got = answers_->get(item.key);
    if (!got) return fails("a get", got.error());
    ++report_.gets;
    if (!*got) {
      fault("a get does not find {}, which a scan delivers", quoted_key(item.key));
    } else if (digest_of((*got)->value) != item.digest) {
      fault("a get of {} finds another value than a scan", quoted_key(item.key));
    }
    if (!ask_for_floor(item.key, item)) return false;
    // Between an item and the next lie absent keys; after the last one this is unknown yet.
    if (at + 1 == stretch_.size()) return true;
    const std::string absent = key_above(item.key, options_.max_key_bytes);
    if (absent.empty() || absent >= stretch_[at + 1].key) return true;
    const auto nothing = answers_->get(absent);
    if (!nothing) return fails("a get", nothing.error());
    ++report_.gets;
    if (*nothing) fault("a get finds {}, which no scan delivers", quoted_key(absent));
    return ask_for_floor(absent, item);
  }

  bool ask_for_floor(std::string_view key, const Seen& wanted) {
    const auto floor = answers_->floor(key);
    if (!floor) return fails("a floor", floor.error());
    ++report_.floors;
    if (!*floor) {
      fault("there is no floor of {}, where a scan delivers {}", quoted_key(key),
            quoted_key(wanted.key));
    } else if ((*floor)->key != wanted.key) {
      fault("the floor of {} is {} where a scan delivers {}", quoted_key(key),
            quoted_key((*floor)->key), quoted_key(wanted.key));
    } else if (digest_of((*floor)->value) != wanted.digest) {
      fault("the floor of {} has another value than a scan delivers", quoted_key(key));
    }
    return true;
  }

  void look_at_whole() {
    if (!report_.faults.empty()) return;
    if (report_.versions != 1 || !answers_) return;
    const auto counted = answers_->count("", "");
    if (!counted) return stop_at_whole("a count", counted.error());
    const auto last = answers_->floor(std::string(options_.max_key_bytes, '\xff'));
    if (!last) return stop_at_whole("a floor", last.error());
    ++report_.floors;
    report_.counted_in_all = true;
    if (*counted != report_.items) {
      fault("{} items are counted in all where scans deliver {}, up to {}", *counted, report_.items,
            shown_end(last_));
    }
    const bool there = last->has_value();
    if (there != (report_.items != 0) || (there && (*last)->key != last_)) {
      fault("the greatest key is {} by floor and {} by scan",
            there ? quoted_key((*last)->key) : "none",
            report_.items != 0 ? quoted_key(last_) : "none");
    }
  }

  /// The version is no more, which only means that this is not looked at.
  void stop_at_whole(std::string_view call, const Error& error) {
    if (error.code != Code::snapshot_expired) fails(call, error);
  }

  const std::function<Result<std::unique_ptr<Answers>>()>& open_;
  const MapCheckOptions options_;
  const std::function<std::uint64_t()>& now_ns_;
  base::Random random_;
  MapCheckReport report_;
  std::optional<Error> stopped_by_;
  std::unique_ptr<Answers> answers_;
  std::uint64_t held_since_ns_ = 0;
  std::string low_;   // where the stretch begins
  std::string high_;  // and where it ends: right above its last key; empty: above all keys
  std::string last_;  // key of the stretch before
  std::vector<Seen> stretch_;
  bool more_ = false;  // there may be items behind the stretch
  bool at_end_ = false;
  int tries_ = 0;
};

}  // namespace

MapCheckReport check_map(const std::function<Result<std::unique_ptr<Answers>>()>& open,
                         const MapCheckOptions& options,
                         const std::function<std::uint64_t()>& now_ns,
                         const std::function<void(std::uint64_t items)>& progress) {
  return MapCheck(open, options, now_ns).run(progress);
}

std::function<Result<std::unique_ptr<Answers>>()> answers_of(const Map& map) {
  return [map]() -> Result<std::unique_ptr<Answers>> {
    if (!map.options().versions) return std::make_unique<AnswersOf<Map>>(map);
    auto snapshot = map.snapshot();
    if (!snapshot) return std::unexpected(snapshot.error());
    return std::make_unique<AnswersOf<Snapshot>>(std::move(*snapshot));
  };
}

}  // namespace espalier::tools
