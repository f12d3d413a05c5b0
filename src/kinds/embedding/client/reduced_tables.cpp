// SPDX-License-Identifier: Apache-2.0
// Bags of several tables: those of this process are reduced where they lie, those of a node asked
// for together, as many as a request and its answer have room for.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/client/ask_node.hpp"
#include "kinds/embedding/client/embedding_tables.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/tables_reducer.hpp"

namespace espalier::client {

/// Tables of one request, and what is asked of each.
class TablesAsked {
 public:
  TablesAsked(Reduction reduction, std::span<const TablePart> parts)
      : reduction_(reduction), parts_(parts) {}

  /// Those that go together with the first one: of one place, and of one request to a node.
  [[nodiscard]] std::size_t together() const {
    const EmbeddingTableImpl& first = *parts_.front().table;
    const OpenedEmbedding& first_at = *parts_.front().at;
    std::size_t results = 0;
    std::size_t data = 0;
    std::size_t count = 0;
    for (const TablePart& part : parts_) {
      const bool own = part.at->object.own() != nullptr;
      if (own != (first_at.object.own() != nullptr)) break;
      if (!own) {
        const bool there = part.table->channel_ == first.channel_ &&
                           part.at->object.node() == first_at.object.node();
        if (!there) break;
        results += part.results.size_bytes();
        data += shape_of(part).bytes();
        if (results > embedding::kResultBytesMax || data > kTablesRequestBytes) break;
      }
      if (++count == embedding::kTablesMax) break;
    }
    return std::max<std::size_t>(count, 1);
  }

  /// Requires: they go together.
  [[nodiscard]] TableResult<void> reduce() const {
    EmbeddingTableImpl& first = *parts_.front().table;
    if (parts_.front().at->object.own() != nullptr) return reduce_own();
    if (parts_.size() > 1 && first.alone_ == nullptr) return ask(first, *parts_.front().at);
    for (const TablePart& part : parts_) {
      const auto done = part.table->reduce_far(*part.at, work_of(part), part.results);
      if (!done) return std::unexpected(embedding::error_at(part.table->name(), done.error()));
    }
    return {};
  }

  [[nodiscard]] std::optional<TableError> fault() const {
    for (const TablePart& part : parts_) {
      auto fault = embedding::fault_of_work(work_of(part), part.table->options.dimension);
      if (!fault) continue;
      return embedding::error_at(part.table->name(),
                                 {Error{Code::invalid_argument, 0, 0}, *std::move(fault)});
    }
    return std::nullopt;
  }

 private:
  /// Of ids, offsets, weights and vectors in one request to a node.
  static constexpr std::size_t kTablesRequestBytes = std::size_t{1} << 20;

  [[nodiscard]] embedding::ReductionWork work_of(const TablePart& part) const {
    return {reduction_, *part.bags, part.vector};
  }
  [[nodiscard]] static embedding::TableShape shape_of(const TablePart& part) {
    const auto count = [](std::size_t size) { return static_cast<std::uint32_t>(size); };
    return {part.at->object.number(),         count(part.vector.size()),
            count(part.bags->offsets.size()), count(part.bags->ids.size()),
            count(part.bags->weights.size()), part.bags->grouping};
  }

  [[nodiscard]] TableResult<void> reduce_own() const {
    std::vector<embedding::TableWork> works;
    for (const TablePart& part : parts_) {
      embedding::EmbeddingTable* const table = part.at->object.own();
      if (table->dropped() || !table->has_name(part.at->named())) {
        return std::unexpected(TableError(Error{Code::not_found, 0, table->id()}));
      }
      works.push_back({table, work_of(part), part.results});
    }
    return embedding::reduce_tables(works);
  }

  [[nodiscard]] TableResult<void> ask(EmbeddingTableImpl& first,
                                      const OpenedEmbedding& first_at) const {
    std::string shapes;
    std::string data;
    std::uint32_t named = first_at.named();
    for (const TablePart& part : parts_) {
      named = std::min(named, part.at->named());
      embedding::TableShape shape = shape_of(part);
      if (&part == &parts_.front()) shape.table = 0;
      shapes += base::bytes_of(shape);
      data += bytes_of_words(part.vector);
      data += bytes_of_words(part.bags->offsets);
      data += bytes_of_words(part.bags->ids);
      data += bytes_of_words(part.bags->weights);
    }
    const embedding_calls::ReduceTables asked{
        first_at.object.number(),
        {static_cast<std::uint8_t>(reduction_), {}, static_cast<std::uint32_t>(parts_.size())},
        shapes,
        data,
        named};
    const auto answer = ask_node(*first.channel_, first_at.object, asked);
    if (!answer) return std::unexpected(answer.error());
    std::string_view results = answer->get().results;
    for (const TablePart& part : parts_) {
      if (results.size() < part.results.size_bytes()) break;
      std::memcpy(part.results.data(), results.data(), part.results.size_bytes());
      results.remove_prefix(part.results.size_bytes());
      if (&part == &parts_.back() && results.empty()) return {};
    }
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }

  const Reduction reduction_;
  const std::span<const TablePart> parts_;
};

// Where one of the tables has lost its name, all is asked once more.
TableResult<void> EmbeddingTableImpl::reduce_parts(Reduction reduction,
                                                   std::span<TablePart> parts) {
  const auto reduce = [&]() -> TableResult<void> {
    for (std::span<const TablePart> rest = parts; !rest.empty();) {
      const std::size_t some = TablesAsked(reduction, rest).together();
      if (auto done = TablesAsked(reduction, rest.first(some)).reduce(); !done) return done;
      rest = rest.subspan(some);
    }
    return {};
  };
  for (;;) {
    std::vector<base::Current<OpenedEmbedding>::Use> uses;
    uses.reserve(parts.size());
    for (TablePart& part : parts) part.at = &*uses.emplace_back(part.table->now_.use());
    auto done = reduce();
    if (done || done.error().error.code != Code::not_found) return done;
    bool moved = false;
    for (const TablePart& part : parts) {
      const auto other = part.table->open_again(*part.at);
      if (!other) return std::unexpected(TableError(other.error()));
      moved = moved || *other;
    }
    if (!moved) return done;
  }
}

TableResult<std::vector<float>> EmbeddingTableImpl::reduce_tables(
    Reduction reduction, std::span<const TableBags> tables) {
  std::vector<TablePart> parts;
  std::size_t floats = 0;
  for (const TableBags& of : tables) {
    parts.push_back({&EmbeddingTableImpl::of(of.table), nullptr, &of.bags, of.vector, {}});
    floats += parts.back().table->floats_of(reduction, of.bags.offsets.size());
  }
  if (auto fault = TablesAsked(reduction, parts).fault()) return std::unexpected(*std::move(fault));
  std::vector<float> results(floats);
  std::span<float> left = results;
  for (TablePart& part : parts) {
    part.results = left.first(part.table->floats_of(reduction, part.bags->offsets.size()));
    left = left.subspan(part.results.size());
  }
  if (auto done = reduce_parts(reduction, parts); !done) return std::unexpected(done.error());
  return results;
}

}  // namespace espalier::client
