// SPDX-License-Identifier: Apache-2.0
// espalier embedding model, infer: ranking models of a node, made of files, and queries of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/ranking_model.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_format.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/embedding_place.hpp"
#include "tools/embedding_subcommand.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

struct RankingOptions {
  std::optional<std::string> at;
  std::string name;
  std::string file = std::string(kStandardInput);
  bool replaces = false;
  bool json = false;
};

/// Lines of a request: as many queries as it takes, of which lines are not longer than these.
constexpr std::size_t kQueryLinesMax = 256;
constexpr std::size_t kQueryLinesBytesMax = std::size_t{512} << 10;
/// Of a file, and of the queries that wait for their line's end: what a message has room for.
constexpr std::size_t kModelFileBytesMax = std::size_t{30} << 20;

/// Reads more of a source behind what there is; false: that was the end.
Outcome<bool> read_some_text(base::ByteSource& source, const std::string& path, std::string& text) {
  char some[1 << 16];
  const auto bytes = source.read(some);
  if (!bytes) return failed(fmt::format("cannot read {}: {}", path, reason(bytes.error())));
  if (text.size() + *bytes > kModelFileBytesMax)
    return failed(path + ": more than 30 MiB at a time");
  text.append(some, *bytes);
  return *bytes != 0;
}

/// Opens a file; null: standard input.
Outcome<std::unique_ptr<base::ByteSource>> open_query_file(Environment& environment,
                                                           const std::string& path) {
  if (path == kStandardInput) return nullptr;
  auto file = environment.files.open(path);
  if (!file) return failed(fmt::format("cannot read {}: {}", path, reason(file.error())));
  return std::move(*file);
}

std::unexpected<Failure> fail_on_model(const EmbeddingPlace& place, const std::string& what,
                                       const std::string& name, const Error& error) {
  if (error.code == Code::not_found) {
    return failed(fmt::format("the node at {} has no {}", place.address, model_quoted(name)),
                  "espalier list shows what it has; espalier embedding model makes one.");
  }
  if (error.code == Code::wrong_kind) return other_kind(place.address, name, error);
  return call_failed(fmt::format("{} {}", what, model_quoted(name)), error);
}

Outcome<int> make_model(Environment& environment, const RankingOptions& options,
                        EmbeddingPlace& place) {
  auto opened = open_query_file(environment, options.file);
  if (!opened) return std::unexpected(opened.error());
  std::string bytes;
  for (bool more = true; more;) {
    const auto read = read_some_text(*opened ? **opened : environment.input, options.file, bytes);
    if (!read) return std::unexpected(read.error());
    more = *read;
  }
  if (options.replaces) {
    // Validate first, so that an invalid model does not cost the existing one.
    if (const auto plan = embedding::read_model_plan(bytes); !plan) {
      return failed(fmt::format("{}: {}", options.file, plan.error()));
    }
    const auto dropped = place.store.drop_ranking_model(options.name);
    if (!dropped && dropped.error().code != Code::not_found) {
      return fail_on_model(place, "drop", options.name, dropped.error());
    }
  }
  const auto made = place.store.create_ranking_model(options.name, bytes);
  if (!made) return refused(fmt::format("make {}", model_quoted(options.name)), made.error());
  const RankingShape& shape = made->shape();
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "model", options.name);
    object["dense"] = shape.dense;
    object["tables"] = shape.tables;
    object["dimension"] = shape.dimension;
    object["outputs"] = shape.outputs;
    environment.out << object.dump() << '\n';
    return kOk;
  }
  environment.out << fmt::format(
      "made {}: {} dense features, {} embedding tables of {} values, {} outputs\n",
      model_quoted(options.name), shape.dense, shape.tables, shape.dimension, shape.outputs);
  return kOk;
}

/// Lines of a request whose rows and whose answer are not too long.
std::size_t lines_of_request(const RankingShape& shape) {
  const std::uint64_t rows_bytes = std::uint64_t{shape.tables} * shape.dimension * sizeof(float);
  const std::uint64_t ranks_bytes = shape.outputs * sizeof(float);
  const std::uint64_t most = std::min(embedding::kPooledBytesMax / rows_bytes,
                                      model_calls::Inferred::kRanksBytesMax / ranks_bytes);
  return std::clamp<std::uint64_t>(most, 1, kQueryLinesMax);
}

/// Up to so many whole lines in front of a text.
std::string_view some_lines(std::string_view text, std::size_t lines_max, bool is_all) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < lines_max && end < kQueryLinesBytesMax; ++lines) {
    const std::size_t next = text.find('\n', end);
    if (next == std::string_view::npos) return is_all ? text : text.substr(0, end);
    end = next + 1;
  }
  return text.substr(0, end);
}

Outcome<void> rank_lines(Environment& environment, const RankingOptions& options,
                         const RankingModel& model, std::string_view lines, std::uint64_t before) {
  const auto ranks = model.infer_text(lines);
  if (!ranks) {
    return refused(fmt::format("rank queries behind {} lines by {}", format_count(before),
                               model_quoted(options.name)),
                   ranks.error());
  }
  const std::size_t outputs = model.shape().outputs;
  for (std::size_t at = 0; at + outputs <= ranks->size(); at += outputs) {
    const std::span<const float> of_query(ranks->data() + at, outputs);
    if (options.json) {
      environment.out << nlohmann::json(of_query).dump() << '\n';
    } else {
      environment.out << fmt::format("{}\n", fmt::join(of_query, " "));
    }
  }
  return {};
}

Outcome<int> rank_queries(Environment& environment, const RankingOptions& options,
                          EmbeddingPlace& place) {
  const auto model = place.store.open_ranking_model(options.name);
  if (!model) return fail_on_model(place, "open", options.name, model.error());
  auto opened = open_query_file(environment, options.file);
  if (!opened) return std::unexpected(opened.error());
  base::ByteSource& source = *opened ? **opened : environment.input;
  const std::size_t lines_max = lines_of_request(model->shape());
  std::string text;
  std::uint64_t lines = 0;
  for (bool more = true; more;) {
    const auto read = read_some_text(source, options.file, text);
    if (!read) return std::unexpected(read.error());
    more = *read;
    std::string_view left = text;
    for (;;) {
      const std::string_view some = some_lines(left, lines_max, !more);
      const auto count = static_cast<std::uint64_t>(std::ranges::count(some, '\n'));
      // More lines may be on their way: a request has as many as there are.
      if (some.empty() || (more && count < lines_max && some.size() < kQueryLinesBytesMax)) break;
      const auto ranked = rank_lines(environment, options, *model, some, lines);
      if (!ranked) return std::unexpected(ranked.error());
      lines += count;
      left.remove_prefix(some.size());
    }
    text.erase(0, text.size() - left.size());
  }
  return kOk;
}

CLI::App& add_ranking(CLI::App& parent, const std::shared_ptr<RankingOptions>& options,
                      Environment& environment, Action& chosen, const char* name,
                      const char* description, EmbeddingWork<RankingOptions> work) {
  return add_embedding_subcommand(parent, options, environment, chosen, name, "Name of the model",
                                  description, work);
}

}  // namespace

void add_embedding_models(CLI::App& parent, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<RankingOptions>();
  CLI::App& making = add_ranking(parent, options, environment, chosen, "model",
                                 "Make a ranking model of a file", make_model);
  making.add_option("FILE", options->file, "File of a model; - reads standard input")->required();
  making.add_flag("--replace", options->replaces, "In place of the model that has the name");
  CLI::App& ranking = add_ranking(parent, options, environment, chosen, "infer",
                                  "Rank queries by a model, and print their ranks", rank_queries);
  ranking.add_option("QUERIES", options->file,
                     "File of queries, one a line: dense features, and of each table ids, "
                     "separated by bars (standard input)");
}

}  // namespace espalier::tools
