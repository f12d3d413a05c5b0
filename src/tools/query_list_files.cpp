// SPDX-License-Identifier: Apache-2.0
#include "tools/query_list_files.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kinds/embedding/community_merges.hpp"
#include "kinds/embedding/memo_numbering.hpp"
#include "tools/number_lines.hpp"

namespace espalier::tools {
namespace {

constexpr std::int64_t kWeightMax = std::numeric_limits<std::uint32_t>::max();

using ListedNumbers = std::span<const std::int64_t>;
using Read = std::expected<void, std::string>;

class QueryListReader {
 public:
  QueryListReader(base::ByteSource& source, std::uint64_t rows, const ReadProgress& progress)
      : lines_(source), rows_(rows), progress_(progress) {}

  std::expected<QueryFile, std::string> read(QueryFormat format) {
    Read done = format == QueryFormat::lists ? read_lists() : read_merci();
    if (!done) return std::unexpected(std::move(done.error()));
    return std::move(file_);
  }

 private:
  // Lists up to the end. `weighted`: in front of each stands its weight. Ids begin with `first`.
  Read read_lists(bool weighted = false, std::int64_t first = 0) {
    for (;;) {
      const auto more = lines_.next();
      if (!more) return std::unexpected(more.error());
      if (!*more) return {};
      ListedNumbers numbers = lines_.numbers();
      if (numbers.empty()) continue;
      std::int64_t weight = 1;
      if (weighted) {
        weight = numbers.front();
        if (weight < 1 || weight > kWeightMax) return lines_.wrong("a weight is 1 to 2^32 - 1");
        numbers = numbers.subspan(1);
      }
      ids_.clear();
      for (const std::int64_t number : numbers) {
        const std::int64_t id = number - first;
        if (number == NumberLines::kMark || id < 0 || static_cast<std::uint64_t>(id) >= rows_) {
          return no_row(number);
        }
        ids_.push_back(static_cast<std::uint32_t>(id));
      }
      file_.lists.add(ids_, static_cast<std::uint32_t>(weight));
      if (progress_) progress_(lines_.bytes(), file_.lists.size());
    }
  }

  [[nodiscard]] Read no_row(std::int64_t number) const {
    if (number == NumberLines::kMark) return lines_.wrong("there is a '#' in place of an id");
    return lines_.wrong(std::to_string(number) + " is no id of the table's " +
                        std::to_string(rows_) + " rows");
  }

  Read read_merci() {
    const auto more = lines_.next();
    if (!more) return std::unexpected(more.error());
    const std::vector<std::int64_t> head(lines_.numbers().begin(), lines_.numbers().end());
    const auto has = [&head](std::size_t at, std::int64_t number) { return head[at] == number; };
    constexpr std::int64_t kMark = NumberLines::kMark;
    if (head.size() == 5 && has(0, 1) && has(4, 2)) return read_train(head);
    if (head.size() == 2 && has(0, kMark)) {
      if (auto items = check_items(head[1]); !items) return items;
      return read_lists(true, 1);
    }
    if (head.size() == 5 && has(0, kMark) && has(3, kMark)) {
      if (auto items = check_items(head[1]); !items) return items;
      return read_evaluation();
    }
    if (head.size() == 5 && has(0, kMark) && has(1, 2) && has(2, 0) && has(3, 1)) {
      return read_evaluation();
    }
    return lines_.wrong("this is no file of MERCI's");
  }

  [[nodiscard]] Read check_items(std::int64_t items) const {
    if (items >= 0 && static_cast<std::uint64_t>(items) <= rows_) return {};
    return lines_.wrong("the file is of " + std::to_string(items) + " items, and the table has " +
                        std::to_string(rows_) + " rows");
  }

  Read read_train(const std::vector<std::int64_t>& head) {
    if (auto items = check_items(head[1]); !items) return items;
    if (auto read = read_lists(true, 1); !read) return read;
    if (std::cmp_not_equal(head[2], file_.lists.size()) ||
        std::cmp_not_equal(head[3], file_.lists.ids().size())) {
      return std::unexpected("there are " + std::to_string(file_.lists.size()) + " lists of " +
                             std::to_string(file_.lists.ids().size()) +
                             " ids, not as many as the first line says");
    }
    return {};
  }

  // Clusters of each size, from the first id of one class to that of the next.
  Read read_evaluation() {
    std::optional<std::pair<std::int64_t, std::int64_t>> before;  // first id and size
    for (;;) {
      const auto more = lines_.next();
      if (!more) return std::unexpected(more.error());
      const ListedNumbers numbers = lines_.numbers();
      if (!*more || numbers.size() != 3) return lines_.wrong("a class has three numbers");
      const std::int64_t first = numbers[0];
      const std::int64_t size = numbers[1];
      if (first < 0 || static_cast<std::uint64_t>(first) > rows_) return no_row(first);
      if (before) {
        if (auto added = add_clusters(before->first, first, before->second); !added) return added;
      }
      if (size == -1 && numbers[2] == -1) return read_lists();
      if (size < 1 || size > RowGroups::kRowsMax) {
        return lines_.wrong(
            "clusters have 1 to 8 rows here: give the lists to train with, of which groups are "
            "made");
      }
      before = {first, size};
    }
  }

  Read add_clusters(std::int64_t first, std::int64_t end, std::int64_t size) {
    if (end < first || (end - first) % size != 0) {
      return lines_.wrong("the class before has no whole clusters");
    }
    if (size < RowGroups::kRowsMin) return {};
    for (; first != end; first += size) {
      ids_.resize(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        ids_[i] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i);
      }
      file_.groups.add(ids_);
    }
    return {};
  }

  NumberLines lines_;
  const std::uint64_t rows_;
  const ReadProgress& progress_;
  QueryFile file_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace

std::expected<QueryFile, std::string> read_query_lists(base::ByteSource& source, QueryFormat format,
                                                       std::uint64_t rows,
                                                       const ReadProgress& progress) {
  return QueryListReader(source, rows, progress).read(format);
}

std::expected<embedding::GroupLists, std::string> read_groups(base::ByteSource& source,
                                                              std::uint64_t rows) {
  NumberLines lines(source);
  embedding::GroupLists groups;
  std::vector<std::uint32_t> ids;
  for (;;) {
    const auto more = lines.next();
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    const ListedNumbers numbers = lines.numbers();
    if (numbers.empty()) continue;
    if (numbers.size() < RowGroups::kRowsMin || numbers.size() > RowGroups::kRowsMax) {
      return lines.wrong("a group has 2 to 8 rows");
    }
    ids.clear();
    for (const std::int64_t number : numbers) {
      if (number < 0 || static_cast<std::uint64_t>(number) >= rows) {
        return lines.wrong("there is an id that is none of the table's " + std::to_string(rows) +
                           " rows");
      }
      ids.push_back(static_cast<std::uint32_t>(number));
    }
    groups.add(ids);
  }
  if (auto fault = embedding::fault_of_groups(groups.get(), rows)) {
    return std::unexpected(std::move(*fault));
  }
  return groups;
}

std::expected<embedding::Communities, std::string> read_partition(base::ByteSource& source,
                                                                  std::uint64_t rows) {
  NumberLines lines(source);
  embedding::Communities parts;
  parts.of_item.assign(rows, embedding::Communities::kNone);
  std::vector<std::uint32_t> sizes;
  std::uint64_t item = 0;
  for (;;) {
    const auto more = lines.next();
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    for (const std::int64_t part : lines.numbers()) {
      if (item == rows) return lines.wrong("there are more items than rows of the table");
      if (part < 0 || static_cast<std::uint64_t>(part) >= rows) {
        return lines.wrong("a part has a number of 0 to one below the table's rows");
      }
      if (static_cast<std::uint64_t>(part) >= sizes.size()) {
        sizes.resize(static_cast<std::size_t>(part) + 1);
      }
      if (++sizes[static_cast<std::size_t>(part)] > embedding::kCommunityItemsMax) {
        return lines.wrong("part " + std::to_string(part) + " has more than 128 items");
      }
      parts.of_item[item++] = static_cast<std::uint32_t>(part);
    }
  }
  parts.count = static_cast<std::uint32_t>(sizes.size());
  return parts;
}

}  // namespace espalier::tools
