// SPDX-License-Identifier: Apache-2.0
// Of the C API: embedding tables, and ranking models over them.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/c_handles.hpp"
#include "wire/object.hpp"

namespace c = espalier::client::c;
using espalier::EmbeddingTable;
using espalier::EmbeddingType;
using espalier::RankingModel;
using espalier::Reduction;
using espalier::Result;
using espalier::TableResult;

namespace {

// Room for the handle is taken first: a table that was made is not left without one.
template <class Reach>
Result<void> hand_out_embedding(espalier_embedding** handle, const Reach& reach) {
  std::unique_ptr<void, c::FreeRoom> room(::operator new(sizeof(espalier_embedding)));
  const Result<EmbeddingTable> found = reach();
  if (!found) return std::unexpected(found.error());
  *handle = new (room.release()) espalier_embedding{*found};
  return {};
}

/// The same of a model, whose errors come with words.
template <class Reach>
TableResult<void> hand_out_model(espalier_model** handle, const Reach& reach) {
  std::unique_ptr<void, c::FreeRoom> room(::operator new(sizeof(espalier_model)));
  const auto found = reach();
  if (!found) return std::unexpected(found.error());
  *handle = new (room.release()) espalier_model{*found};
  return {};
}

/// As c::run(), of work whose errors come with words.
template <class Work>
espalier_code run_in_words(const char* call, std::initializer_list<c::Check> checks,
                           const Work& work) {
  std::string words;
  const espalier_code code = c::run(call, checks, [&]() -> Result<void> {
    const auto result = work();
    if (result) return {};
    words = result.error().words.empty() ? "" : espalier::message(result.error());
    return std::unexpected(result.error().error);
  });
  if (!words.empty()) c::explain(call, words.c_str());
  return code;
}

template <class T>
c::Check good_run(const T* data, std::size_t count, const char* argument) {
  return {argument, data != nullptr || count == 0 ? nullptr : "is null, but has a count"};
}

c::Check good_kind(std::uint32_t number, const char* argument) {
  return {argument, number <= 255 ? nullptr : "is none"};
}

espalier_bags bags_of(const espalier_bags* given) { return c::taken(given, ESPALIER_BAGS_INIT); }

/// What is wrong with bags and their members.
c::Check good_members(const espalier_bags* given) {
  if (given == nullptr) return {};
  const c::Check size = c::sized(given, sizeof *given, "bags");
  if (size.complaint != nullptr) return size;
  const espalier_bags bags = bags_of(given);
  for (const c::Check& check : {good_run(bags.ids, bags.id_count, "bags->ids"),
                                good_run(bags.offsets, bags.bag_count, "bags->offsets"),
                                good_run(bags.weights, bags.weight_count, "bags->weights"),
                                good_run(bags.vector, bags.vector_count, "bags->vector")}) {
    if (check.complaint != nullptr) return check;
  }
  return {};
}

/// What is wrong with any of them.
c::Check good_bags(const espalier_bags* const* bags, std::size_t count) {
  const c::Check run = good_run(bags, count, "bags");
  if (run.complaint != nullptr) return run;
  for (std::size_t i = 0; i < count; ++i) {
    for (const c::Check& check : {c::given(bags[i], "bags"), good_members(bags[i])}) {
      if (check.complaint != nullptr) return check;
    }
  }
  return {};
}

/// The same of tables with their bags.
c::Check good_tables(const espalier_embedding* const* tables, const espalier_bags* const* bags,
                     std::size_t count) {
  const c::Check run = good_run(tables, count, "tables");
  if (run.complaint != nullptr) return run;
  for (std::size_t i = 0; i < count; ++i) {
    const c::Check check = c::given(tables[i], "a table");
    if (check.complaint != nullptr) return check;
  }
  return good_bags(bags, count);
}

espalier::EmbeddingBags given_bags(const espalier_bags& asked) {
  return {{asked.ids, asked.id_count},
          {asked.offsets, asked.bag_count},
          {asked.weights, asked.weight_count},
          asked.grouping};
}

std::size_t floats_of_bags(const EmbeddingTable& table, Reduction reduction, std::size_t bags) {
  return bags * (reduction == Reduction::inner_product ? 1 : table.options().dimension);
}

std::unexpected<espalier::TableError> wrong_call(std::string words) {
  return std::unexpected(espalier::TableError(
      espalier::Error{espalier::Code::invalid_argument, 0, 0}, std::move(words)));
}

std::unexpected<espalier::TableError> other_count(std::size_t floats) {
  return wrong_call("the bags come to " + std::to_string(floats) + " floats");
}

/// What is wrong with any of many reductions.
c::Check good_reductions(espalier_reduction* const* requests, std::size_t count) {
  const c::Check run = good_run(requests, count, "requests");
  if (run.complaint != nullptr) return run;
  for (std::size_t i = 0; i < count; ++i) {
    const espalier_reduction* const one = requests[i];
    if (one == nullptr) return c::given(one, "a request");
    const c::Check size = c::sized(one, sizeof *one, "a request");
    if (size.complaint != nullptr) return size;
    if (one->struct_bytes < sizeof *one) {
      return {"a request", "is shorter than any version: begin with its *_INIT"};
    }
    for (const c::Check& check :
         {good_kind(one->reduction, "reduction"), c::given(one->bags, "bags"),
          good_members(one->bags), good_run(one->results, one->count, "results")}) {
      if (check.complaint != nullptr) return check;
    }
  }
  return {};
}

/// As the table takes them. Errors: a count is another one than that of its bags.
TableResult<std::vector<espalier::ReduceRequest>> requests_of(
    const EmbeddingTable& table, std::span<espalier_reduction* const> given) {
  std::vector<espalier::ReduceRequest> asked;
  asked.reserve(given.size());
  for (const espalier_reduction* const one : given) {
    const espalier_bags bags = bags_of(one->bags);
    const auto kind = static_cast<Reduction>(one->reduction);
    const std::size_t floats = floats_of_bags(table, kind, bags.bag_count);
    if (one->count != floats) return other_count(floats);
    espalier::ReduceRequest request;
    request.reduction = kind;
    request.bags = given_bags(bags);
    request.vector = {bags.vector, bags.vector_count};
    request.results = {one->results, one->count};
    asked.push_back(std::move(request));
  }
  return asked;
}

/// Tells each how it went. Errors: that of the first one that failed.
TableResult<void> take_codes(std::span<const espalier::ReduceRequest> asked,
                             std::span<espalier_reduction* const> given) {
  TableResult<void> all;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const espalier::TableError& error = asked[i].error;
    given[i]->code = static_cast<espalier_code>(error.error.code);
    given[i]->detail = error.error.detail;
    if (error.error.code == espalier::Code::invalid || !all) continue;
    std::string words = "request " + std::to_string(i);
    if (!error.words.empty()) words += ": " + error.words;
    all = std::unexpected(espalier::TableError(error.error, std::move(words)));
  }
  return all;
}

/// Copies ranks out, if there are so many.
TableResult<void> take_ranks(const TableResult<std::vector<float>>& made, float* ranks,
                             std::size_t count) {
  if (!made) return std::unexpected(made.error());
  if (made->size() != count) {
    return wrong_call("the queries come to " + std::to_string(made->size()) + " floats");
  }
  std::ranges::copy(*made, ranks);
  return {};
}

}  // namespace

espalier_code espalier_embedding_create(espalier_store* store, espalier_bytes name,
                                        const espalier_embedding_options* options,
                                        espalier_embedding** table) {
  const c::Check size = c::sized(options, sizeof *options, "options");
  espalier_embedding_options known = ESPALIER_EMBEDDING_OPTIONS_INIT;
  if (size.complaint == nullptr) known = c::taken(options, known);
  const bool is_durability = known.durability <= ESPALIER_DURABILITY_SYNC;
  return c::run(
      __func__,
      {c::given(store, "store"), c::good(name, "name"), c::given(options, "options"), size,
       good_kind(known.type, "options.type"),
       c::Check{"options.durability", is_durability ? nullptr : "is none of its kinds"},
       c::given(table, "table")},
      [&] {
        const espalier::EmbeddingOptions made_of{
            .dimension = known.dimension,
            .type = static_cast<EmbeddingType>(known.type),
            .durability = espalier::wire::durability_of(known.durability)};
        return hand_out_embedding(
            table, [&] { return store->store.create_embedding_table(c::view(name), made_of); });
      });
}

espalier_code espalier_embedding_open(espalier_store* store, espalier_bytes name,
                                      espalier_embedding** table) {
  return c::run(__func__,
                {c::given(store, "store"), c::good(name, "name"), c::given(table, "table")}, [&] {
                  return hand_out_embedding(
                      table, [&] { return store->store.open_embedding_table(c::view(name)); });
                });
}

void espalier_embedding_close(espalier_embedding* table) { delete table; }

espalier_code espalier_embedding_drop(espalier_store* store, espalier_bytes name) {
  return c::run(__func__, {c::given(store, "store"), c::good(name, "name")},
                [&] { return store->store.drop_embedding_table(c::view(name)); });
}

espalier_code espalier_embedding_rename(espalier_store* store, espalier_bytes name,
                                        espalier_bytes to, uint32_t displaced) {
  return c::run(__func__,
                {c::given(store, "store"), c::good(name, "name"), c::good(to, "to"),
                 c::Check{"displaced", displaced <= 2 ? nullptr : "is not 0, 1 or 2"}},
                [&] {
                  return store->store.rename_embedding_table(
                      c::view(name), c::view(to), static_cast<espalier::Displaced>(displaced));
                });
}

uint32_t espalier_embedding_dimension(const espalier_embedding* table) {
  return table == nullptr ? 0 : table->table.options().dimension;
}

uint32_t espalier_embedding_type(const espalier_embedding* table) {
  return table == nullptr ? 0 : static_cast<uint32_t>(table->table.options().type);
}

uint32_t espalier_embedding_row_bytes(const espalier_embedding* table) {
  return table == nullptr ? 0 : table->table.row_bytes();
}

espalier_code espalier_embedding_append(espalier_embedding* table, const float* values,
                                        size_t count, uint64_t* first) {
  return run_in_words(__func__, {c::given(table, "table"), good_run(values, count, "values")}, [&] {
    const auto appended = table->table.append({values, count});
    if (appended && first != nullptr) *first = *appended;
    return appended;
  });
}

espalier_code espalier_embedding_replace(espalier_embedding* table, uint64_t row,
                                         const float* values, size_t count) {
  return run_in_words(__func__, {c::given(table, "table"), good_run(values, count, "values")},
                      [&] { return table->table.replace(row, {values, count}); });
}

espalier_code espalier_embedding_reduce(const espalier_embedding* table, uint32_t reduction,
                                        const espalier_bags* bags, float* results, size_t count) {
  return run_in_words(
      __func__,
      {c::given(table, "table"), good_kind(reduction, "reduction"), c::given(bags, "bags"),
       good_members(bags), good_run(results, count, "results")},
      [&]() -> TableResult<void> {
        const espalier_bags asked = bags_of(bags);
        const auto kind = static_cast<Reduction>(reduction);
        const std::size_t floats = floats_of_bags(table->table, kind, asked.bag_count);
        if (count != floats) return other_count(floats);
        return table->table.reduce_into({results, count}, kind, given_bags(asked),
                                        {asked.vector, asked.vector_count});
      });
}

espalier_code espalier_embedding_reduce_tables(const espalier_embedding* const* tables,
                                               const espalier_bags* const* bags, size_t table_count,
                                               uint32_t reduction, float* results, size_t count) {
  return run_in_words(
      __func__,
      {good_kind(reduction, "reduction"), good_tables(tables, bags, table_count),
       good_run(results, count, "results")},
      [&]() -> TableResult<void> {
        const auto kind = static_cast<Reduction>(reduction);
        std::vector<espalier::TableBags> asked;
        std::size_t floats = 0;
        for (std::size_t i = 0; i < table_count; ++i) {
          const espalier_bags own = bags_of(bags[i]);
          floats += floats_of_bags(tables[i]->table, kind, own.bag_count);
          asked.push_back({tables[i]->table, given_bags(own), {own.vector, own.vector_count}});
        }
        if (count != floats) return other_count(floats);
        const auto reduced = EmbeddingTable::reduce_tables(kind, asked);
        if (!reduced) return std::unexpected(reduced.error());
        std::ranges::copy(*reduced, results);
        return {};
      });
}

espalier_code espalier_embedding_reduce_many(const espalier_embedding* table,
                                             espalier_reduction* const* requests,
                                             size_t request_count, uint32_t in_flight) {
  return run_in_words(
      __func__, {c::given(table, "table"), good_reductions(requests, request_count)},
      [&]() -> TableResult<void> {
        auto asked = requests_of(table->table, {requests, request_count});
        if (!asked) return std::unexpected(asked.error());
        const auto run = table->table.reduce_many(*asked, in_flight);
        if (!run) return run;
        return take_codes(*asked, {requests, request_count});
      });
}

espalier_code espalier_embedding_group(espalier_embedding* table, const uint8_t* sizes,
                                       size_t size_count, const uint32_t* rows, size_t row_count,
                                       uint32_t* grouping) {
  return run_in_words(__func__,
                      {c::given(table, "table"), good_run(sizes, size_count, "sizes"),
                       good_run(rows, row_count, "rows")},
                      [&] {
                        const auto made =
                            table->table.group({{sizes, size_count}, {rows, row_count}});
                        if (made && grouping != nullptr) *grouping = *made;
                        return made;
                      });
}

espalier_code espalier_embedding_renumber(const espalier_embedding* table, uint32_t* ids,
                                          size_t count, uint32_t* grouping) {
  return run_in_words(
      __func__,
      {c::given(table, "table"), good_run(ids, count, "ids"), c::given(grouping, "grouping")}, [&] {
        const auto numbered = table->table.renumber({ids, count});
        if (numbered) *grouping = *numbered;
        return numbered;
      });
}

espalier_code espalier_embedding_get_stats(const espalier_embedding* table,
                                           espalier_embedding_stats* stats) {
  return c::run(__func__,
                {c::given(table, "table"), c::given(stats, "stats"), c::sized(stats, "stats")},
                [&]() -> Result<void> {
                  const auto now = table->table.stats();
                  if (!now) return std::unexpected(now.error());
                  c::fill(stats, {.struct_bytes = sizeof *stats,
                                  .reserved = 0,
                                  .rows = now->rows,
                                  .pages = now->pages,
                                  .memory_bytes = now->memory_bytes,
                                  .reductions = now->reductions,
                                  .rows_gathered = now->rows_gathered,
                                  .rows_replaced = now->rows_replaced,
                                  .rereads = now->rereads,
                                  .groups = now->groups,
                                  .grouped_rows = now->grouped_rows,
                                  .group_bytes = now->group_bytes,
                                  .sums_gathered = now->sums_gathered,
                                  .rows_saved = now->rows_saved,
                                  .grouping_groups = now->grouping_groups,
                                  .grouping_computed = now->grouping_computed});
                  return {};
                });
}

espalier_code espalier_model_create(espalier_store* store, espalier_bytes name, espalier_bytes file,
                                    espalier_model** model) {
  return run_in_words(__func__,
                      {c::given(store, "store"), c::good(name, "name"), c::good(file, "file"),
                       c::given(model, "model")},
                      [&] {
                        return hand_out_model(model, [&] {
                          return store->store.create_ranking_model(c::view(name), c::view(file));
                        });
                      });
}

espalier_code espalier_model_open(espalier_store* store, espalier_bytes name,
                                  espalier_model** model) {
  return run_in_words(
      __func__, {c::given(store, "store"), c::good(name, "name"), c::given(model, "model")}, [&] {
        return hand_out_model(model, [&]() -> TableResult<RankingModel> {
          const auto opened = store->store.open_ranking_model(c::view(name));
          if (!opened) return std::unexpected(opened.error());
          return *opened;
        });
      });
}

void espalier_model_close(espalier_model* model) { delete model; }

espalier_code espalier_model_drop(espalier_store* store, espalier_bytes name) {
  return c::run(__func__, {c::given(store, "store"), c::good(name, "name")},
                [&] { return store->store.drop_ranking_model(c::view(name)); });
}

uint32_t espalier_model_dense(const espalier_model* model) {
  return model == nullptr ? 0 : model->model.shape().dense;
}

uint32_t espalier_model_tables(const espalier_model* model) {
  return model == nullptr ? 0 : model->model.shape().tables;
}

uint32_t espalier_model_outputs(const espalier_model* model) {
  return model == nullptr ? 0 : model->model.shape().outputs;
}

espalier_code espalier_model_infer(const espalier_model* model, const float* dense,
                                   size_t dense_count, const espalier_bags* const* tables,
                                   size_t table_count, float* ranks, size_t count) {
  return run_in_words(__func__,
                      {c::given(model, "model"), good_run(dense, dense_count, "dense"),
                       good_bags(tables, table_count), good_run(ranks, count, "ranks")},
                      [&]() -> TableResult<void> {
                        std::vector<espalier::EmbeddingBags> bags;
                        for (std::size_t i = 0; i < table_count; ++i) {
                          const espalier_bags own = bags_of(tables[i]);
                          if (own.vector_count != 0) return wrong_call("queries have no vector");
                          bags.push_back(given_bags(own));
                        }
                        return take_ranks(model->model.infer({{dense, dense_count}, bags}), ranks,
                                          count);
                      });
}

espalier_code espalier_model_infer_text(const espalier_model* model, espalier_bytes queries,
                                        float* ranks, size_t count) {
  return run_in_words(
      __func__,
      {c::given(model, "model"), c::good(queries, "queries"), good_run(ranks, count, "ranks")},
      [&] { return take_ranks(model->model.infer_text(c::view(queries)), ranks, count); });
}
