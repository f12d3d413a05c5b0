// SPDX-License-Identifier: Apache-2.0
// espalier embedding load, info, reduce, rename, drop: the embedding tables of a node. Groups are
// the matter of embedding_build_command.cpp, models that of ranking_command.cpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "cmdline/number_option.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/kind.hpp"
#include "tools/commands.hpp"
#include "tools/embedding_place.hpp"
#include "tools/embedding_subcommand.hpp"
#include "tools/json_record.hpp"
#include "tools/npy_reader.hpp"
#include "tools/numbers.hpp"
#include "tools/table_options.hpp"
#include "tools/table_place.hpp"

namespace espalier::tools {
namespace {

struct EmbeddingOptionsGiven {
  std::optional<std::string> at;
  std::string name;
  std::string file;
  EmbeddingOptions table;  // of a new one; of a file the dimension is its columns
  std::uint64_t rows = 0;  // to generate
  std::uint64_t seed = 1;
  bool generates = false;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint32_t> ids;
  std::vector<float> weights;  // empty, or one for each id
  std::vector<float> vector;   // of the inner product
  Access access = Access::rpc;
  std::string to;  // of a rename
  bool exchanges = false;
  bool replaces = false;
  bool json = false;
};

const std::map<std::string, EmbeddingType> kTypeNames = {{"fp32", EmbeddingType::fp32},
                                                         {"fp16", EmbeddingType::fp16},
                                                         {"bf16", EmbeddingType::bf16},
                                                         {"int8", EmbeddingType::int8}};
const std::map<std::string, Reduction> kReductionNames = {
    {"sum", Reduction::sum},
    {"mean", Reduction::mean},
    {"max", Reduction::max},
    {"min", Reduction::min},
    {"inner-product", Reduction::inner_product}};

std::string type_name(EmbeddingType type) {
  for (const auto& [text, named] : kTypeNames) {
    if (named == type) return text;
  }
  return "unknown";
}

// --- load ----------------------------------------------------------------------------------------

/// Where rows come from: a file, or a generator.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Fills with as many rows as there are and fit; returns how many, 0 at the end.
  /// Errors: in words.
  virtual std::expected<std::uint64_t, std::string> read(std::span<float> into) = 0;
};

class NpyRows final : public RowSource {
 public:
  explicit NpyRows(NpyReader& reader) : reader_(reader) {}
  std::expected<std::uint64_t, std::string> read(std::span<float> into) override {
    return reader_.read(into);
  }

 private:
  NpyReader& reader_;
};

/// Values from -1 to 1, the same for a seed on every machine.
class GeneratedRows final : public RowSource {
 public:
  GeneratedRows(std::uint64_t rows, std::uint32_t dimension, std::uint64_t seed)
      : left_(rows), dimension_(dimension), random_(seed) {}
  std::expected<std::uint64_t, std::string> read(std::span<float> into) override {
    const std::uint64_t some = std::min<std::uint64_t>(left_, into.size() / dimension_);
    for (float& value : into.first(some * dimension_)) {
      value = static_cast<float>(random_() >> 40) * 0x1p-23F - 1;
    }
    left_ -= some;
    return some;
  }

 private:
  std::uint64_t left_;
  const std::uint32_t dimension_;
  base::Random random_;
};

/// The table of this name, made if there is none.
Outcome<EmbeddingTable> table_to_load(EmbeddingPlace& place, const std::string& name,
                                      const EmbeddingOptions& options) {
  auto opened = place.store.open_embedding_table(name);
  if (!opened && opened.error().code == Code::not_found) {
    opened = place.store.create_embedding_table(name, options);
    if (!opened && opened.error().code == Code::invalid_argument) {
      return failed(fmt::format("no embedding table has rows of {} values", options.dimension),
                    "Their number is a multiple of 8, at most 1024.");
    }
  }
  if (!opened) return fail_on_embedding(place, "make", name, opened.error());
  if (opened->options().dimension != options.dimension) {
    return failed(fmt::format("{} has rows of {} values, and these have {}", embedding_quoted(name),
                              opened->options().dimension, options.dimension));
  }
  return std::move(*opened);
}

Outcome<std::uint64_t> append_all(EmbeddingTable& table, RowSource& source,
                                  const std::string& where) {
  std::vector<float> rows(table.append_rows_max() * table.options().dimension);
  for (std::uint64_t loaded = 0;;) {
    const auto some = source.read(rows);
    if (!some) {
      return failed(fmt::format("{}: {}", where, some.error()),
                    fmt::format("{} rows were appended before.", format_count(loaded)));
    }
    if (*some == 0) return loaded;
    const auto appended = table.append(std::span(rows).first(*some * table.options().dimension));
    if (!appended) {
      return refused(fmt::format("append to {} behind {} rows", embedding_quoted(table.name()),
                                 format_count(loaded)),
                     appended.error());
    }
    loaded += *some;
  }
}

void report_loaded(Environment& environment, const EmbeddingOptionsGiven& options,
                   const EmbeddingTable& table, std::uint64_t rows) {
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "embedding", options.name);
    object["rows"] = rows;
    object["dimension"] = table.options().dimension;
    object["type"] = type_name(table.options().type);
    if (options.generates) object["seed"] = options.seed;
    environment.out << object.dump() << '\n';
    return;
  }
  environment.out << fmt::format(
      "loaded {} rows of {} values into {}{}\n", format_count(rows), table.options().dimension,
      embedding_quoted(options.name),
      options.generates ? fmt::format(", by seed {}", options.seed) : "");
}

Outcome<int> load_from(Environment& environment, const EmbeddingOptionsGiven& options,
                       EmbeddingPlace& place, const EmbeddingOptions& of_table, RowSource& source) {
  auto table = table_to_load(place, options.name, of_table);
  if (!table) return std::unexpected(table.error());
  const auto rows = append_all(*table, source, options.file);
  if (!rows) return std::unexpected(rows.error());
  report_loaded(environment, options, *table, *rows);
  return kOk;
}

Outcome<int> load_embedding(Environment& environment, const EmbeddingOptionsGiven& options,
                            EmbeddingPlace& place) {
  if (options.generates == !options.file.empty()) {
    return misused("rows come from a file, or are generated", "Give FILE or --generate ROWS.");
  }
  if (options.generates) {
    GeneratedRows source(options.rows, std::max(options.table.dimension, 1u), options.seed);
    return load_from(environment, options, place, options.table, source);
  }
  std::unique_ptr<ByteSource> opened;
  if (options.file != kStandardInput) {
    auto file = environment.files.open(options.file);
    if (!file) {
      return failed(fmt::format("cannot read {}: {}", options.file, reason(file.error())));
    }
    opened = std::move(*file);
  }
  NpyReader reader(opened ? *opened : environment.input);
  const auto shape = reader.open();
  if (!shape) return failed(fmt::format("{}: {}", options.file, shape.error()));
  EmbeddingOptions of_table = options.table;
  of_table.dimension =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(shape->columns, ~std::uint32_t{0}));
  NpyRows source(reader);
  return load_from(environment, options, place, of_table, source);
}

// --- info, reduce, drop --------------------------------------------------------------------------

Outcome<int> print_embedding(Environment& environment, const EmbeddingOptionsGiven& options,
                             EmbeddingPlace& place) {
  const auto table = place.store.open_embedding_table(options.name);
  if (!table) return fail_on_embedding(place, "open", options.name, table.error());
  const auto now = table->stats();
  if (!now) return fail_on_embedding(place, "read", options.name, now.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "embedding", options.name);
    object["dimension"] = table->options().dimension;
    object["type"] = type_name(table->options().type);
    object["row_bytes"] = table->row_bytes();
    object["rows"] = now->rows;
    object["memory_bytes"] = now->memory_bytes;
    object["reductions"] = now->reductions;
    object["rows_gathered"] = now->rows_gathered;
    object["rows_replaced"] = now->rows_replaced;
    object["rereads"] = now->rereads;
    object["groups"] = now->groups;
    object["grouped_rows"] = now->grouped_rows;
    object["group_bytes"] = now->group_bytes;
    object["sums_gathered"] = now->sums_gathered;
    object["rows_saved"] = now->rows_saved;
    object["grouping_groups"] = now->grouping_groups;
    object["grouping_computed"] = now->grouping_computed;
    environment.out << object.dump() << '\n';
    return kOk;
  }
  environment.out << fmt::format("embedding   {}\n", cmdline::escaped(options.name));
  environment.out << fmt::format("rows        {}, of {} values of {}: {} bytes each\n",
                                 format_count(now->rows), table->options().dimension,
                                 type_name(table->options().type), table->row_bytes());
  environment.out << fmt::format("memory      {} bytes\n", format_count(now->memory_bytes));
  environment.out << fmt::format("reductions  {}, of {} rows\n", format_count(now->reductions),
                                 format_count(now->rows_gathered));
  environment.out << fmt::format("replaced    {} rows\n", format_count(now->rows_replaced));
  if (now->grouping_groups != 0) {
    environment.out << fmt::format("grouping    {} of {} groups are computed\n",
                                   format_count(now->grouping_computed),
                                   format_count(now->grouping_groups));
  }
  if (now->groups == 0) return kOk;
  environment.out << fmt::format("groups      {}, of {} rows: {} bytes\n",
                                 format_count(now->groups), format_count(now->grouped_rows),
                                 format_count(now->group_bytes));
  environment.out << fmt::format("saved       {} rows, by {} sums\n", format_count(now->rows_saved),
                                 format_count(now->sums_gathered));
  return kOk;
}

Outcome<int> reduce_ids(Environment& environment, const EmbeddingOptionsGiven& options,
                        EmbeddingPlace& place) {
  const auto table = place.store.open_embedding_table(options.name);
  if (!table) return fail_on_embedding(place, "open", options.name, table.error());
  const std::uint32_t first[] = {0};
  const auto found =
      table->reduce(options.reduction, {options.ids, first, options.weights}, options.vector);
  if (!found) {
    return refused(fmt::format("reduce rows of {}", embedding_quoted(options.name)), found.error());
  }
  if (options.json) {
    // JSON has no NaN and no infinity: null.
    environment.out << nlohmann::json(*found).dump() << '\n';
    return kOk;
  }
  for (const float value : *found) environment.out << fmt::format("{}\n", value);
  return kOk;
}

Outcome<int> drop_embedding(Environment& environment, const EmbeddingOptionsGiven& options,
                            EmbeddingPlace& place) {
  auto dropped = place.store.drop_embedding_table(options.name);
  const bool is_model = !dropped && dropped.error() == Error{Code::wrong_kind, 0,
                                                             std::to_underlying(ObjectKind::model)};
  if (is_model) dropped = place.store.drop_ranking_model(options.name);
  if (!dropped) return fail_on_embedding(place, "drop", options.name, dropped.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, is_model ? "model" : "embedding", options.name);
    object["dropped"] = true;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format(
        "dropped {}\n", is_model ? model_quoted(options.name) : embedding_quoted(options.name));
  }
  return kOk;
}

Outcome<int> rename_embedding(Environment& environment, const EmbeddingOptionsGiven& options,
                              EmbeddingPlace& place) {
  const Displaced displaced = options.exchanges  ? Displaced::exchanged
                              : options.replaces ? Displaced::dropped
                                                 : Displaced::refused;
  if (options.name == options.to) {
    return failed(fmt::format("{} has this name already", embedding_quoted(options.name)));
  }
  const auto renamed = place.store.rename_embedding_table(options.name, options.to, displaced);
  if (!renamed) {
    const Error& error = renamed.error();
    if (error.code == Code::already_exists) {
      return failed(fmt::format("the node at {} has an object '{}' already", place.address,
                                cmdline::escaped(options.to)),
                    "--exchange gives it the other name, --replace drops it.");
    }
    const bool of_other = error == Error{Code::not_found, 0, 1};
    return fail_on_embedding(place, "rename", of_other ? options.to : options.name, error);
  }
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "embedding", options.name);
    set_bytes(object, "to", options.to);
    object["exchanged"] = options.exchanges;
    environment.out << object.dump() << '\n';
  } else if (options.exchanges) {
    environment.out << fmt::format("exchanged the names of {} and '{}'\n",
                                   embedding_quoted(options.name), cmdline::escaped(options.to));
  } else {
    environment.out << fmt::format("renamed {} to '{}'\n", embedding_quoted(options.name),
                                   cmdline::escaped(options.to));
  }
  return kOk;
}

/// Adds a command and what all of them have.
CLI::App& add_embedding(CLI::App& parent, const std::shared_ptr<EmbeddingOptionsGiven>& options,
                        Environment& environment, Action& chosen, const char* name,
                        const char* description, EmbeddingWork<EmbeddingOptionsGiven> work) {
  return add_embedding_subcommand(parent, options, environment, chosen, name,
                                  "Name of the embedding table", description, work);
}

void add_load_options(CLI::App& loading, const std::shared_ptr<EmbeddingOptionsGiven>& options) {
  loading.add_option("FILE", options->file,
                     "NumPy file (.npy) of float32, a row of it a row; - reads standard input");
  add_durability_option(loading, options->table.durability);
  loading.add_option("--type", options->table.type, "Of a new table: how values are stored (fp32)")
      ->transform(CLI::CheckedTransformer(kTypeNames).description(""))
      ->option_text("fp32|fp16|bf16|int8");
  cmdline::add_number_function<std::uint64_t>(
      loading, "--generate",
      [options](std::uint64_t rows) {
        options->rows = rows;
        options->generates = true;
      },
      "In place of a file: so many rows of random values from -1 to 1")
      ->option_text("ROWS");
  loading.add_option("--dimension", options->table.dimension, "Of generated rows: values (64)")
      ->option_text("NUMBER");
  loading
      .add_option("--seed", options->seed, "Of generated rows: the same seed, the same rows (1)")
      ->option_text("NUMBER");
}

/// Adds an option of numbers with commas between them, of any sign.
void add_floats(CLI::App& command, const std::string& name,
                std::function<std::vector<float>&()> into, const std::string& description) {
  command
      .add_option_function<std::vector<std::string>>(
          name,
          [name, into = std::move(into)](const std::vector<std::string>& texts) {
            into().clear();
            for (const std::string& text : texts) {
              float number = 0;
              const char* const end = text.data() + text.size();
              const auto [stop, error] = std::from_chars(text.data(), end, number);
              if (error != std::errc() || stop != end) {
                throw cmdline::not_expected(name, text, "a number of single precision");
              }
              into().push_back(number);
            }
          },
          description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NUMBER,...");
}

void add_reduce_options(CLI::App& reducing, const std::shared_ptr<EmbeddingOptionsGiven>& options) {
  reducing.add_option("ID", options->ids, "Numbers of the rows, from 0")->required();
  reducing.add_option("--op", options->reduction, "How (sum)")
      ->transform(CLI::CheckedTransformer(kReductionNames).description(""))
      ->option_text("sum|mean|max|min|inner-product");
  add_floats(
      reducing, "--vector", [options]() -> std::vector<float>& { return options->vector; },
      "Of an inner product: a number for each value of a row");
  add_floats(
      reducing, "--weights", [options]() -> std::vector<float>& { return options->weights; },
      "Of a sum or an inner product: a factor for each ID");
  add_one_sided_flag(reducing, options->access);
}

}  // namespace

void add_embedding_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<EmbeddingOptionsGiven>();
  CLI::App& command = *app.add_subcommand(
      "embedding", "Embedding tables on a node: rows of numbers, reduced beside the memory");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  export ESPALIER_AT=unix:/run/espalier/espalier.sock\n"
      "  espalier embedding load items items.npy --type int8\n"
      "  espalier embedding load random --generate 100000 --dimension 64 --seed 7\n"
      "  espalier embedding reduce items 3 17 99 --op mean\n"
      "  espalier embedding build items queries.txt\n"
      "  espalier embedding rename items.new items --exchange\n"
      "  espalier embedding model ads ads.model\n"
      "  espalier embedding infer ads queries.txt\n");
  const auto add = [&](const char* name, const char* description,
                       EmbeddingWork<EmbeddingOptionsGiven> work) -> CLI::App& {
    return add_embedding(command, options, environment, chosen, name, description, work);
  };
  add_load_options(
      add("load", "Append rows to a table, which is made if there is none", load_embedding),
      options);
  add_embedding_build(command, environment, chosen);
  add("info", "Print what a table has, and what was asked of it", print_embedding);
  add_reduce_options(add("reduce", "Reduce rows to one, and print its values", reduce_ids),
                     options);
  add_embedding_models(command, environment, chosen);
  CLI::App& renaming = add("rename", "Give a table another name, in one step", rename_embedding);
  renaming.add_option("TO", options->to, "Its new name")->required();
  CLI::Option* const exchange = renaming.add_flag("--exchange", options->exchanges,
                                                  "The table that has the name gets the other one");
  renaming
      .add_flag("--replace", options->replaces, "The table that has the name, if any, is dropped")
      ->excludes(exchange);
  add("drop", "Remove a table, and all that is in it, or a model", drop_embedding);
}

}  // namespace espalier::tools
