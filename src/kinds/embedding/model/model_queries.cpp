// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/model_queries.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include "kinds/embedding/model/id_text.hpp"

namespace espalier::embedding {
namespace {

std::string_view query_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

bool is_between(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Numbers separated by blanks; returns the first word that is none, empty: all are.
template <class T>
std::string_view read_query_numbers(std::string_view text, std::vector<T>& into) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    while (at != end && is_between(*at)) ++at;
    if (at == end) return {};
    T value{};
    const auto [behind, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (behind != end && !is_between(*behind))) {
      const char* word_end = at;
      while (word_end != end && !is_between(*word_end)) ++word_end;
      return {at, static_cast<std::size_t>(word_end - at)};
    }
    into.push_back(value);
    at = behind;
  }
}

std::string fault_in_line(std::size_t line, std::string words) {
  return "line " + std::to_string(line) + ": " + std::move(words);
}

/// Adds a query of a line; returns what is wrong with it, or nothing.
std::string add_query(const ModelShape& shape, std::string_view text, ModelQueries& queries) {
  const std::size_t before = queries.dense.size();
  const auto no_number = [](std::string_view word) {
    return "'" + std::string(word.substr(0, 40)) + "' is no number that stands here";
  };
  bool more = text.find('|') != std::string_view::npos;
  if (const auto word = read_query_numbers(query_part(text, '|'), queries.dense); !word.empty()) {
    return no_number(word);
  }
  if (queries.dense.size() - before != shape.dense) {
    return std::to_string(queries.dense.size() - before) + " dense features, and the model takes " +
           std::to_string(shape.dense);
  }
  for (std::uint32_t t = 0; t < shape.tables; ++t) {
    if (!more) {
      return "ids of " + std::to_string(t) + " tables, and the model has " +
             std::to_string(shape.tables);
    }
    more = text.find('|') != std::string_view::npos;
    ModelQueries::Bags& bags = queries.tables[t];
    bags.offsets.push_back(static_cast<std::uint32_t>(bags.ids.size()));
    const std::string_view ids = query_part(text, '|');
    if (read_spaced_ids(ids, bags.ids)) continue;
    if (const auto word = read_query_numbers(ids, bags.ids); !word.empty()) return no_number(word);
  }
  if (more) return "more tables than the model has";
  ++queries.queries;
  return {};
}

}  // namespace

std::expected<ModelQueries, std::string> parse_queries(const ModelShape& shape,
                                                       std::string_view text) {
  ModelQueries queries;
  queries.tables.resize(shape.tables);
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view query = query_part(text, '\n');
    if (query.empty() || query.front() == '#' || query == "\r") continue;
    if (auto fault = add_query(shape, query, queries); !fault.empty()) {
      return std::unexpected(fault_in_line(line, std::move(fault)));
    }
    if (auto fault = fault_of_count(shape, queries.queries)) {
      return std::unexpected(fault_in_line(line, *std::move(fault)));
    }
  }
  return queries;
}

std::optional<std::string> fault_of_count(const ModelShape& shape, std::uint64_t queries) {
  if (queries > kQueriesMax) return "a request has at most 1024 queries";
  const std::uint64_t pooled = queries * shape.tables * shape.dimension * sizeof(float);
  if (pooled > kPooledBytesMax) {
    return "fewer queries: their rows come to more than 16 MiB at a time";
  }
  return std::nullopt;
}

std::expected<ModelQueries, std::string> read_queries(const ModelShape& shape, std::uint32_t count,
                                                      std::string_view words) {
  ModelQueries queries;
  if (auto fault = fault_of_count(shape, count)) return std::unexpected(*std::move(fault));
  const auto take = [&words]<class T>(std::uint64_t numbers, std::vector<T>& into) {
    const std::uint64_t bytes = numbers * sizeof(T);
    if (words.size() < bytes) return false;
    into.resize(numbers);
    if (bytes != 0) std::memcpy(into.data(), words.data(), bytes);
    words.remove_prefix(bytes);
    return true;
  };
  std::vector<std::uint32_t> ids;
  bool good = take(std::uint64_t{count} * shape.dense, queries.dense) && take(shape.tables, ids);
  queries.queries = count;
  queries.tables.resize(good ? shape.tables : 0);
  for (std::size_t t = 0; t < queries.tables.size() && good; ++t) {
    good = take(count, queries.tables[t].offsets) && take(ids[t], queries.tables[t].ids);
  }
  if (!good || !words.empty()) {
    return std::unexpected("the queries have not as many words as their numbers say");
  }
  return queries;
}

std::string words_of(std::span<const float> dense, std::span<const EmbeddingBags> tables) {
  std::string words;
  const auto add = [&words](const void* from, std::size_t bytes) {
    words.append(static_cast<const char*>(from), bytes);
  };
  add(dense.data(), dense.size_bytes());
  for (const EmbeddingBags& of : tables) {
    const auto ids = static_cast<std::uint32_t>(of.ids.size());
    add(&ids, sizeof ids);
  }
  for (const EmbeddingBags& of : tables) {
    add(of.offsets.data(), of.offsets.size_bytes());
    add(of.ids.data(), of.ids.size_bytes());
  }
  return words;
}

}  // namespace espalier::embedding
