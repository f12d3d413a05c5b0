// SPDX-License-Identifier: Apache-2.0
#include "tools/hash_check.hpp"

#include <fmt/format.h>

#include <utility>

#include "cmdline/text_codec.hpp"

namespace espalier::tools {
namespace {

std::string shown_key(std::string_view key) {
  return fmt::format("'{}'", cmdline::encode(key, cmdline::Encoding::escaped));
}

class HashCheck {
 public:
  HashCheck(const HashMap& map, const HashCheckOptions& options,
            const std::function<void(std::uint64_t)>& progress)
      : map_(map), options_(options), progress_(progress) {}

  HashCheckReport run() {
    const auto before = map_.stats();
    if (!before) return stopped(before.error());
    const auto walked = map_.walk([this](std::span<const Item> items) { return look(items); });
    if (report_.stopped_by) return std::move(report_);
    if (!walked) return stopped(walked.error());
    const auto after = map_.stats();
    if (!after) return stopped(after.error());
    const bool unwritten = map_.options().versions && before->write_version == after->write_version;
    report_.quiet = options_.steady || unwritten;
    if (report_.quiet) compare_all(after->items);
    return std::move(report_);
  }

 private:
  HashCheckReport stopped(const Error& error) {
    report_.stopped_by = error;
    return std::move(report_);
  }
  void fault(std::string words) {
    if (report_.faults.size() < HashCheckReport::kFaultsMax) {
      report_.faults.push_back(std::move(words));
    }
  }

  bool look(std::span<const Item> items) {
    for (const Item& item : items) {
      const std::uint64_t number = report_.items++;
      const bool asked = number < options_.all_of_first || number % 16 == 0;
      if (asked && !ask_for(item)) return false;
    }
    progress_(report_.items);
    return report_.faults.size() < HashCheckReport::kFaultsMax;
  }

  bool ask_for(const Item& item) {
    const auto got = map_.get(item.key);
    if (!got) {
      report_.stopped_by = got.error();
      return false;
    }
    ++report_.gets;
    if (!*got) {
      differing_.push_back(
          fmt::format("a get does not find {}, which a walk delivers", shown_key(item.key)));
    } else if ((*got)->version < item.version) {
      fault(fmt::format("a get of {} finds version {}, and a walk before it version {}",
                        shown_key(item.key), (*got)->version, item.version));
    } else if ((*got)->value != item.value) {
      auto words = fmt::format("a get of {} finds another value than a walk", shown_key(item.key));
      const bool same = map_.options().versions && (*got)->version == item.version;
      if (same) {
        fault(std::move(words));
      } else {
        differing_.push_back(std::move(words));
      }
    }
    if (differing_.size() > HashCheckReport::kFaultsMax) differing_.pop_back();
    return true;
  }

  // What was written meanwhile would explain all this.
  void compare_all(std::uint64_t items) {
    for (std::string& words : differing_) fault(std::move(words));
    if (report_.faults.empty() && report_.items != items) {
      fault(fmt::format("a walk delivers {} items where the map's own number is {}", report_.items,
                        items));
    }
  }

  const HashMap& map_;
  const HashCheckOptions options_;
  const std::function<void(std::uint64_t)>& progress_;
  HashCheckReport report_;
  std::vector<std::string> differing_;
};

}  // namespace

HashCheckReport check_hash_map(const HashMap& map, const HashCheckOptions& options,
                               const std::function<void(std::uint64_t items)>& progress) {
  return HashCheck(map, options, progress).run();
}

}  // namespace espalier::tools
