// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/embedding_tables.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/assert.hpp"
#include "channel/reached.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/client/ask_node.hpp"
#include "kinds/embedding/client/one_sided_embeddings.hpp"
#include "kinds/embedding/execute.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/reducer.hpp"
#include "kinds/embedding/row_codec.hpp"

namespace espalier::client {
namespace {

using embedding::ReductionWork;

static_assert(EmbeddingTable::kAppendBytesMax == embedding::kAppendBytesMax);

/// Of ids, offsets and weights in one request to a node, if it has several bags.
constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
/// Of one bag: what a message has room for beside its vector and header.
constexpr std::size_t kBagBytesMax = wire::kMessageBytesMax - (std::size_t{64} << 10);

std::unexpected<TableError> refused(Code code, std::uint32_t detail, std::string words) {
  return std::unexpected(TableError(Error{code, 0, detail}, std::move(words)));
}

/// Makes a handle of an object that was reached.
struct MakeEmbeddingHandle {
  const std::shared_ptr<channel::Channel>& by;

  std::shared_ptr<EmbeddingTableImpl> operator()(EmbeddingTableImpl::Object&& object,
                                                 const embedding_calls::Opened& opened) const {
    return base::make_shared_until_fork<EmbeddingTableImpl>(by, std::move(object),
                                                            embedding::options_of(opened.shape));
  }
};

template <class Request>
Result<std::shared_ptr<EmbeddingTableImpl>> reach_embedding(
    const std::shared_ptr<channel::Channel>& channel, const Request& request) {
  return channel::reach<embedding::EmbeddingTable>(channel, request, MakeEmbeddingHandle{channel});
}

/// Asks for something, and keeps the words of a refusal.
template <class Request>
TableResult<typename Request::Reply> ask_in_words(channel::Channel& channel,
                                                  const EmbeddingTableImpl::Object& object,
                                                  const Request& request) {
  if (embedding::EmbeddingTable* const own = object.own()) {
    auto done = embedding_calls::execute(*own, request);
    const Error* const refusal = done ? nullptr : &done.error().error;
    if (auto durable = channel::await_answer(own->redo(), refusal); !durable) {
      return std::unexpected(TableError(durable.error()));
    }
    return done;
  }
  const auto answer = ask_node(channel, object, request);
  if (!answer) return std::unexpected(answer.error());
  return answer->get();
}

RemoteSessions* sessions_that_read(channel::Channel& channel) {
  auto* const sessions = dynamic_cast<RemoteSessions*>(&channel);
  return sessions != nullptr && sessions->reads_alone() ? sessions : nullptr;
}

}  // namespace

EmbeddingTableImpl::EmbeddingTableImpl(std::shared_ptr<channel::Channel> channel, Object object,
                                       const EmbeddingOptions& options_in)
    : options(options_in),
      row_bytes(embedding::row_bytes_of(options_in.type, options_in.dimension)),
      channel_(std::move(channel)),
      object_(std::move(object)),
      alone_(sessions_that_read(*channel_)) {}

// As the table has them: what a node is sent is what it stores.
TableResult<std::string> EmbeddingTableImpl::stored(std::span<const float> values) const {
  if (values.empty() || values.size() % options.dimension != 0) {
    return refused(Code::invalid_argument, 0,
                   "rows have " + std::to_string(options.dimension) + " values each");
  }
  std::string bytes(values.size() / options.dimension * row_bytes, '\0');
  const auto done = embedding::store_rows(options.type, options.dimension, values,
                                          std::as_writable_bytes(std::span(bytes)));
  if (done) return bytes;
  const std::uint32_t place = done.error().detail;
  return refused(done.error().code, place,
                 "row " + std::to_string(place / options.dimension) + ", column " +
                     std::to_string(place % options.dimension) +
                     ": int8 rows take finite numbers of at most 65504");
}

TableResult<std::uint64_t> EmbeddingTableImpl::append(std::span<const float> rows) {
  if (rows.size() / options.dimension > embedding::kAppendBytesMax / row_bytes) {
    return refused(Code::invalid_argument, 0, "more rows than one append takes");
  }
  const auto bytes = stored(rows);
  if (!bytes) return std::unexpected(bytes.error());
  const embedding_calls::Append asked{object_.number(), *bytes};
  const auto appended = ask_in_words(*channel_, object_, asked);
  if (!appended) return std::unexpected(appended.error());
  return appended->first;
}

TableResult<void> EmbeddingTableImpl::replace(std::uint64_t row, std::span<const float> values) {
  if (values.size() != options.dimension) {
    return refused(Code::invalid_argument, 0,
                   "a row has " + std::to_string(options.dimension) + " values");
  }
  const auto bytes = stored(values);
  if (!bytes) return std::unexpected(bytes.error());
  const embedding_calls::Replace asked{object_.number(), row, *bytes};
  const auto replaced = ask_in_words(*channel_, object_, asked);
  if (!replaced) return std::unexpected(replaced.error());
  return {};
}

std::size_t EmbeddingTableImpl::floats_of(Reduction reduction, std::size_t bags) const {
  return bags * embedding::result_width(reduction, options.dimension);
}

TableResult<void> EmbeddingTableImpl::reduce(const ReductionWork& work, std::span<float> results) {
  if (auto fault = embedding::fault_of_work(work, options.dimension)) {
    return refused(Code::invalid_argument, 0, *std::move(fault));
  }
  ESPALIER_ASSERT(results.size() == floats_of(work.reduction, work.bags.offsets.size()));
  if (object_.own() == nullptr) return reduce_far(work, results);
  const embedding::EmbeddingTable& table = *object_.own();
  if (table.dropped()) return std::unexpected(TableError(Error{Code::not_found, 0, table.id()}));
  const auto reduced = embedding::reduce(table, work, results);
  if (reduced) return {};
  return std::unexpected(embedding::error_of(reduced.error()));
}

// Renumbered ids mean rows to the node alone.
TableResult<void> EmbeddingTableImpl::reduce_far(const ReductionWork& work,
                                                 std::span<float> results) {
  if (alone_ == nullptr) return reduce_at_node(work, results);
  if (work.bags.grouping != 0) {
    tree::WalkTraffic asked;
    asked.by_rings = 1;
    alone_->traffic().add({}, asked);
    return reduce_at_node(work, results);
  }
  const auto session = RemoteLease::take_at(*alone_, object_.node());
  if (!session) return std::unexpected(TableError(session.error()));
  auto& tables = (*session)->parts.of<OneSidedEmbeddings>();
  const tree::WalkTraffic before = tables.traffic();
  auto reduced = tables.reduce(*alone_, object_.node(), object_.number(), options, work, results);
  alone_->traffic().add(before, tables.traffic());
  if (reduced) return *std::move(reduced);
  return reduce_at_node(work, results);
}

TableResult<void> EmbeddingTableImpl::reduce_at_node(const ReductionWork& work,
                                                     std::span<float> results) {
  const EmbeddingBags& bags = work.bags;
  const std::size_t width = floats_of(work.reduction, 1);
  const std::size_t most = embedding::kResultBytesMax / (width * sizeof(float));
  const std::size_t of_an_id = bags.weights.empty() ? 4 : 8;
  const auto end_of = [&](std::size_t bag) -> std::size_t {
    return bag + 1 < bags.offsets.size() ? bags.offsets[bag + 1] : bags.ids.size();
  };
  for (std::size_t bag = 0; bag < bags.offsets.size();) {
    std::size_t end = bag + 1;
    const std::size_t first_id = bags.offsets[bag];
    if ((end_of(bag) - first_id) * of_an_id > kBagBytesMax) {
      return refused(Code::invalid_argument, 0,
                     "bag " + std::to_string(bag) + " is too long for a request");
    }
    while (end < bags.offsets.size() && end - bag < most &&
           (end_of(end) - first_id) * of_an_id <= kRequestBytes) {
      ++end;
    }
    const auto asked =
        ask_for_bags(work, bag, end, results.subspan(bag * width, (end - bag) * width));
    if (!asked) return asked;
    bag = end;
  }
  return {};
}

TableResult<void> EmbeddingTableImpl::ask_for_bags(const ReductionWork& work, std::size_t first,
                                                   std::size_t end, std::span<float> results) {
  const EmbeddingBags& bags = work.bags;
  const std::size_t first_id = bags.offsets[first];
  const std::size_t end_id = end < bags.offsets.size() ? bags.offsets[end] : bags.ids.size();
  std::vector<std::uint32_t> offsets(bags.offsets.begin() + static_cast<std::ptrdiff_t>(first),
                                     bags.offsets.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::uint32_t& offset : offsets) offset -= static_cast<std::uint32_t>(first_id);
  embedding_calls::Reduce asked;
  asked.table = object_.number();
  asked.shape.reduction = static_cast<std::uint8_t>(work.reduction);
  asked.shape.vector = static_cast<std::uint32_t>(work.vector.size());
  asked.shape.bags = static_cast<std::uint32_t>(offsets.size());
  asked.shape.ids = static_cast<std::uint32_t>(end_id - first_id);
  asked.shape.grouping = bags.grouping;
  asked.vector = bytes_of_words(work.vector);
  asked.offsets = bytes_of_words(std::span<const std::uint32_t>(offsets));
  asked.ids = bytes_of_words(bags.ids.subspan(first_id, end_id - first_id));
  if (!bags.weights.empty()) {
    asked.shape.weights = asked.shape.ids;
    asked.weights = bytes_of_words(bags.weights.subspan(first_id, end_id - first_id));
  }
  const auto answer = ask_node(*channel_, object_, asked);
  if (!answer) return std::unexpected(answer.error());
  const embedding_calls::Reduced reply = answer->get();
  if (reply.results.size() != results.size_bytes()) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  std::memcpy(results.data(), reply.results.data(), results.size_bytes());
  return {};
}

TableResult<std::uint32_t> EmbeddingTableImpl::group(const RowGroups& groups) {
  if (embedding::EmbeddingTable* const table = object_.own()) {
    return embedding::group_rows(*table, groups);
  }
  if (groups.rows.size() * 4 + groups.sizes.size() > kBagBytesMax) {
    return refused(Code::invalid_argument, 0, "more groups than a request has room for");
  }
  const embedding_calls::Group asked{object_.number(),
                                     {static_cast<std::uint32_t>(groups.sizes.size()),
                                      static_cast<std::uint32_t>(groups.rows.size())},
                                     bytes_of_words(groups.rows),
                                     bytes_of_words(groups.sizes)};
  const auto grouped = ask_node(*channel_, object_, asked);
  if (!grouped) return std::unexpected(grouped.error());
  return grouped->get().grouping;
}

TableResult<std::uint32_t> EmbeddingTableImpl::renumber(std::span<std::uint32_t> ids) {
  if (object_.own() != nullptr) return embedding_calls::renumber(*object_.own(), ids);
  constexpr std::size_t kIds = embedding::kRenumberBytesMax / sizeof(std::uint32_t);
  std::optional<std::uint32_t> grouping;
  do {
    const std::size_t some = std::min(kIds, ids.size());
    const auto numbered = renumber_some(ids.first(some));
    if (!numbered) return numbered;
    if (grouping && *grouping != *numbered) {
      return refused(Code::outdated, *numbered, "the table was given other groups meanwhile");
    }
    grouping = *numbered;
    ids = ids.subspan(some);
  } while (!ids.empty());
  return *grouping;
}

TableResult<std::uint32_t> EmbeddingTableImpl::renumber_some(std::span<std::uint32_t> ids) {
  const embedding_calls::Renumber asked{object_.number(),
                                        bytes_of_words(std::span<const std::uint32_t>(ids))};
  const auto answer = ask_node(*channel_, object_, asked);
  if (!answer) return std::unexpected(answer.error());
  const embedding_calls::Renumbered reply = answer->get();
  if (reply.ids.size() != ids.size_bytes()) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  std::memcpy(ids.data(), reply.ids.data(), ids.size_bytes());
  return reply.grouping;
}

Result<EmbeddingStats> EmbeddingTableImpl::stats() {
  const auto reply = object_.ask(embedding_calls::Info{object_.number()});
  if (!reply) return std::unexpected(reply.error());
  const embedding::EmbeddingNumbers& now = reply->numbers;
  return EmbeddingStats{now.rows,
                        now.pages,
                        now.memory_bytes,
                        now.reductions,
                        now.rows_gathered,
                        now.rows_replaced,
                        now.rereads,
                        now.groups,
                        now.grouped_rows,
                        now.group_bytes,
                        now.sums_gathered,
                        now.rows_saved,
                        now.grouping_groups,
                        now.grouping_computed};
}

Result<std::vector<std::string>> EmbeddingTableImpl::audit() {
  if (object_.own() == nullptr) return fail(Code::unsupported);
  if (object_.own()->dropped()) return fail(Code::not_found, object_.number());
  return embedding::audit(*object_.own());
}

Result<std::shared_ptr<EmbeddingTableImpl>> create_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const EmbeddingOptions& options) {
  return reach_embedding(channel, embedding_calls::Create{name, embedding::shape_of(options),
                                                          wire::number_of(options.durability)});
}

Result<std::shared_ptr<EmbeddingTableImpl>> open_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name) {
  return reach_embedding(channel, embedding_calls::Open{name});
}

}  // namespace espalier::client
