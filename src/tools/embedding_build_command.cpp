// SPDX-License-Identifier: Apache-2.0
// espalier embedding build: groups of a table's rows, out of lists that queries asked for, or
// given; the node keeps the sums of each group.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/random.hpp"
#include "kinds/embedding/greedy_groups.hpp"
#include "kinds/embedding/review_lists.hpp"
#include "tools/embedding_place.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"
#include "tools/query_list_files.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

using embedding::Communities;
using embedding::GroupLists;
using embedding::QueryLists;

/// Of lists without others that are held out: each fifth, by the seed.
constexpr std::uint64_t kHeldOutOf = 5;

struct BuildOptions {
  std::optional<std::string> at;
  std::string name;
  std::string lists;
  std::string held_out;
  std::string groups;
  std::string partition;
  QueryFormat format = QueryFormat::lists;
  bool generates = false;
  std::uint64_t seed = 1;
  std::uint32_t group_rows = RowGroups::kRowsMax;
  double ratio = 0.25;
  bool json = false;
};

const std::map<std::string, QueryFormat> kFormatNames = {{"lists", QueryFormat::lists},
                                                         {"merci", QueryFormat::merci}};

/// Lists to learn from, lists that are held out, and groups that were given.
struct BuildData {
  QueryLists learned;
  QueryLists held_out;
  GroupLists groups;
};

/// A table that is grouped.
struct BuildTable {
  EmbeddingTable table;
  std::uint64_t rows;
};

/// Reads a file, or standard input, by a function that says what is wrong in words.
template <class Read>
auto read_file(Environment& environment, const std::string& path, const Read& read)
    -> Outcome<typename std::invoke_result_t<Read, ByteSource&>::value_type> {
  std::unique_ptr<ByteSource> opened;
  if (path != kStandardInput) {
    auto file = environment.files.open(path);
    if (!file) return failed(fmt::format("cannot read {}: {}", path, reason(file.error())));
    opened = std::move(*file);
  }
  auto done = read(opened ? *opened : environment.input);
  if (!done) return failed(fmt::format("{}: {}", path, done.error()));
  return std::move(*done);
}

Outcome<QueryFile> read_lists_of(Environment& environment, const BuildOptions& options,
                                 const std::string& path, std::uint64_t rows) {
  Progress progress(environment, "reading lists", std::nullopt);
  return read_file(environment, path, [&](ByteSource& source) {
    return read_query_lists(
        source, options.format, rows,
        [&](std::uint64_t bytes, std::uint64_t lists) { progress.update(bytes, lists); });
  });
}

void hold_some_out(const QueryLists& all, std::uint64_t seed, BuildData& data) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool held_out = base::mix64(seed + i) % kHeldOutOf == 0;
    (held_out ? data.held_out : data.learned).add(all.list(i), all.weight(i));
  }
}

Outcome<BuildData> read_data(Environment& environment, const BuildOptions& options,
                             std::uint64_t rows) {
  BuildData data;
  if (!options.groups.empty()) {
    auto groups = read_file(environment, options.groups,
                            [&](ByteSource& source) { return read_groups(source, rows); });
    if (!groups) return std::unexpected(groups.error());
    data.groups = std::move(*groups);
  }
  if (options.generates) {
    auto made = embedding::review_lists(static_cast<std::uint32_t>(rows), options.seed);
    data.learned = std::move(made.learned);
    data.held_out = std::move(made.held_out);
  }
  if (!options.lists.empty()) {
    auto file = read_lists_of(environment, options, options.lists, rows);
    if (!file) return std::unexpected(file.error());
    if (!file->groups.sizes.empty()) data.groups = std::move(file->groups);
    if (!data.groups.sizes.empty()) {
      data.held_out = std::move(file->lists);  // nothing is learned
    } else if (options.held_out.empty()) {
      hold_some_out(file->lists, options.seed, data);
    } else {
      data.learned = std::move(file->lists);
    }
  }
  if (!options.held_out.empty()) {
    auto file = read_lists_of(environment, options, options.held_out, rows);
    if (!file) return std::unexpected(file.error());
    data.held_out = std::move(file->lists);
  }
  return data;
}

embedding::WorkProgress show_on(Progress& progress) {
  return
      [&progress](std::uint64_t done, std::uint64_t total) { progress.update_items(done, total); };
}

Outcome<Communities> communities_of(Environment& environment, const BuildOptions& options,
                                    const QueryLists& lists, std::uint64_t rows) {
  if (!options.partition.empty()) {
    return read_file(environment, options.partition,
                     [&](ByteSource& source) { return read_partition(source, rows); });
  }
  Progress progress(environment, "finding communities", std::nullopt);
  return embedding::find_communities(lists, rows, {}, show_on(progress));
}

Outcome<GroupLists> make_groups(Environment& environment, const BuildOptions& options,
                                const BuildTable& on, const BuildData& data) {
  if (!data.groups.sizes.empty()) return data.groups;
  const auto communities = communities_of(environment, options, data.learned, on.rows);
  if (!communities) return std::unexpected(communities.error());
  Progress progress(environment, "making groups", std::nullopt);
  const std::uint64_t sums = embedding::sums_for_ratio(on.rows, on.table.row_bytes(),
                                                       on.table.options().dimension, options.ratio);
  return embedding::greedy_groups(data.learned, *communities, {options.group_rows, sums},
                                  show_on(progress));
}

void report_groups(Environment& environment, const BuildOptions& options, const BuildTable& on,
                   const GroupLists& groups, const EmbeddingStats& now,
                   const embedding::ReadRows& read) {
  const std::uint64_t bytes = on.rows * on.table.row_bytes();
  const double of_groups = static_cast<double>(groups.sums()) * on.table.options().dimension +
                           static_cast<double>(on.rows + groups.rows.size());
  const double ratio = bytes == 0 ? 0 : of_groups * 4 / static_cast<double>(bytes);
  const std::uint32_t row_bytes = on.table.row_bytes();
  const std::uint32_t dimension = on.table.options().dimension;
  const auto lines = [&](bool renumbered) { return read.lines(row_bytes, dimension, renumbered); };
  const auto lines_saved = [&](bool renumbered) {
    return read.lines_saved(row_bytes, dimension, renumbered);
  };
  const embedding::ReadRows alone{.ids = read.ids, .rows = read.ids, .sums = 0};
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "embedding", options.name);
    object["rows"] = on.rows;
    object["groups"] = groups.sizes.size();
    object["grouped_rows"] = groups.rows.size();
    object["sums"] = groups.sums();
    object["group_bytes"] = now.group_bytes;
    object["ratio"] = ratio;
    object["held_out_ids"] = read.ids;
    object["held_out_rows"] = read.rows;
    object["saved"] = read.saved();
    object["held_out_lines"] = lines(false);
    object["lines_saved"] = lines_saved(false);
    object["lines_saved_renumbered"] = lines_saved(true);
    object["seed"] = options.seed;
    environment.out << object.dump() << '\n';
    return;
  }
  environment.out << fmt::format(
      "{}: {} groups of {} rows, {} sums in {} bytes, {:.2f} times the rows\n",
      embedding_quoted(options.name), format_count(groups.sizes.size()),
      format_count(groups.rows.size()), format_count(groups.sums()), format_count(now.group_bytes),
      ratio);
  if (read.ids == 0) return;
  environment.out << fmt::format("held out, by seed {}: {} rows read for {} ids, {:.1f} % saved\n",
                                 options.seed, format_count(read.rows), format_count(read.ids),
                                 100 * read.saved());
  environment.out << fmt::format(
      "cache lines: {} read for {}, {:.1f} % saved; of renumbered ids {}, {:.1f} %\n",
      format_count(lines(false)), format_count(alone.lines(row_bytes, dimension, true)),
      100 * lines_saved(false), format_count(lines(true)), 100 * lines_saved(true));
}

Outcome<int> build_groups(Environment& environment, const BuildOptions& options,
                          EmbeddingPlace& place) {
  auto table = place.store.open_embedding_table(options.name);
  if (!table) return fail_on_embedding(place, "open", options.name, table.error());
  const auto now = table->stats();
  if (!now) return fail_on_embedding(place, "read", options.name, now.error());
  BuildTable on{std::move(*table), now->rows};
  if (options.generates && (on.rows < 256 || on.rows > std::uint64_t{1} << 31)) {
    return failed(fmt::format("lists are generated for 256 rows or more, and {} has {}",
                              embedding_quoted(options.name), format_count(on.rows)));
  }
  const auto data = read_data(environment, options, on.rows);
  if (!data) return std::unexpected(data.error());
  const auto groups = make_groups(environment, options, on, *data);
  if (!groups) return std::unexpected(groups.error());
  if (groups->sizes.empty()) {
    return failed(fmt::format("no groups come of it, and {} is left as it is",
                              embedding_quoted(options.name)),
                  "Give a greater --ratio, or lists in which rows stand together.");
  }
  const embedding::ReadRows read = embedding::rows_to_read(data->held_out, groups->get(), on.rows);
  const bool are_given = !data->groups.sizes.empty();
  if (!are_given && read.ids != 0 && read.rows == read.ids) {
    return failed(
        fmt::format("the groups save no row of the held-out lists, and {} is left as it is",
                    embedding_quoted(options.name)),
        "Learn from lists that are like those held out; --groups FILE keeps given groups "
        "whatever they save.");
  }
  const auto grouped = on.table.group(groups->get());
  if (!grouped) {
    return refused(fmt::format("group rows of {}", embedding_quoted(options.name)),
                   grouped.error());
  }
  const auto then = on.table.stats();
  if (!then) return fail_on_embedding(place, "read", options.name, then.error());
  report_groups(environment, options, on, *groups, *then, read);
  return kOk;
}

Outcome<int> check_and_build(Environment& environment, const BuildOptions& options) {
  const int sources = (options.lists.empty() ? 0 : 1) + (options.generates ? 1 : 0);
  if (sources == 2 || (sources == 0 && options.groups.empty())) {
    return misused("groups are made of lists of a file, of generated ones, or given",
                   "Give LISTS, --generate or --groups FILE.");
  }
  if (options.group_rows < RowGroups::kRowsMin || options.group_rows > RowGroups::kRowsMax) {
    return misused("--group-rows is 2 to 8", "");
  }
  if (!(options.ratio >= 0 && options.ratio <= 100)) return misused("--ratio is 0 to 100", "");
  auto place = open_embeddings(environment, options.at);
  if (!place) return std::unexpected(place.error());
  return build_groups(environment, options, *place);
}

}  // namespace

void add_embedding_build(CLI::App& parent, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<BuildOptions>();
  CLI::App& command =
      *parent.add_subcommand("build", "Keep sums of groups of rows that queries ask for together");
  command.add_option("NAME", options->name, "Name of the embedding table")->required();
  command.add_option("LISTS", options->lists,
                     "File of lists that queries asked for; - reads standard input");
  command.add_option("--format", options->format, "Of files of lists (lists: ids of one a line)")
      ->transform(CLI::CheckedTransformer(kFormatNames).description(""))
      ->option_text("lists|merci");
  command
      .add_option("--held-out", options->held_out,
                  "File of lists that are only counted (a fifth of LISTS)")
      ->option_text("FILE");
  command
      .add_option("--groups", options->groups, "File of groups, ids of one a line: none are made")
      ->option_text("FILE");
  command
      .add_option("--partition", options->partition,
                  "File of MERCI's: for each row the part in which groups are made")
      ->option_text("FILE");
  command.add_flag("--generate", options->generates,
                   "In place of a file: lists in the shape of Amazon's reviews");
  command
      .add_option("--seed", options->seed,
                  "Of generated lists, and of which are held out: the same seed, the same (1)")
      ->option_text("NUMBER");
  command.add_option("--group-rows", options->group_rows, "Rows of a group at most, 2 to 8 (8)")
      ->option_text("NUMBER");
  command
      .add_option("--ratio", options->ratio,
                  "Memory of sums and numbering, in parts of the rows' (0.25)")
      ->option_text("RATIO");
  add_json_option(command, options->json);
  add_address_option(command, options->at);
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return check_and_build(environment, *options); });
  });
}

}  // namespace espalier::tools
