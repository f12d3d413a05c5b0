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

/// Makes or opens a table; `take(opened)` makes what is returned of it.
template <class Request, class Take>
auto reach_embedding(const std::shared_ptr<channel::Channel>& channel, const Request& request,
                     const Take& take) {
  // Of this process, before it is looked up: a rename that comes between makes it an old one.
  const catalog::Catalog* const own = channel->own_objects();
  const std::uint32_t since = own != nullptr ? own->renames() : 0;
  return channel::reach<embedding::EmbeddingTable>(
      channel, request,
      [&](OpenedEmbedding::Object&& object, const embedding_calls::Opened& opened) {
        const EmbeddingOptions options = embedding::options_of(opened.shape);
        return take(OpenedEmbedding{std::move(object), options,
                                    embedding::row_bytes_of(options.type, options.dimension),
                                    own != nullptr ? since : opened.since()},
                    opened);
      });
}

template <class Request>
Result<std::shared_ptr<EmbeddingTableImpl>> embedding_handle(
    const std::shared_ptr<channel::Channel>& channel, const Request& request) {
  return reach_embedding(
      channel, request, [&](OpenedEmbedding&& opened, const embedding_calls::Opened&) {
        return base::make_shared_until_fork<EmbeddingTableImpl>(channel, std::move(opened));
      });
}

Code code_of(const Error& error) { return error.code; }
Code code_of(const TableError& error) { return error.error.code; }

/// Whether a table of this process is there, under the name by which it was opened.
bool is_there(const OpenedEmbedding& at) {
  const embedding::EmbeddingTable& table = *at.object.own();
  return !table.dropped() && table.has_name(at.named());
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

std::uint32_t OpenedEmbedding::named() const { return embedding_calls::named_since(since); }

EmbeddingTableImpl::EmbeddingTableImpl(std::shared_ptr<channel::Channel> channel,
                                       OpenedEmbedding opened)
    : options(opened.options),
      row_bytes(opened.row_bytes),
      channel_(std::move(channel)),
      name_(opened.object.name()),
      now_(std::move(opened)),
      alone_(sessions_that_read(*channel_)) {}

// It comes to an end: each round is by a later rename than the one before.
template <class Act>
auto EmbeddingTableImpl::follow(const Act& act)
    -> decltype(act(std::declval<const OpenedEmbedding&>())) {
  for (;;) {
    const auto at = now_.use();
    auto done = act(*at);
    if (done || code_of(done.error()) != Code::not_found) return done;
    const auto moved = open_again(*at);
    if (!moved) return std::unexpected(moved.error());
    if (!*moved) return done;
  }
}

// A table that has gone by a rename left its name to whichever has it next. One that was dropped
// did not: a table that is made under its name is another matter, and no handle leads there.
bool EmbeddingTableImpl::has_gone_by_rename(const OpenedEmbedding& before) {
  const auto found = before.object.ask(embedding_calls::Info{before.object.number(), 0});
  return found || found.error().code == Code::not_permitted;  // its name now is for other roles
}

Result<bool> EmbeddingTableImpl::open_again(const OpenedEmbedding& before) {
  std::uint32_t rename = 0;
  auto opened = reach_embedding(channel_, embedding_calls::Open{name_},
                                [&](OpenedEmbedding&& found, const embedding_calls::Opened& reply) {
                                  rename = reply.own();
                                  return std::move(found);
                                });
  if (!opened) {
    const Code code = opened.error().code;
    if (code == Code::not_found || code == Code::wrong_kind) return false;
    return std::unexpected(opened.error());
  }
  if (opened->object.node() != before.object.node()) return false;
  // Asked together with a table that was renamed since, the same one must say that it is known.
  const bool is_same = opened->object.number() == before.object.number();
  const bool renamed = opened->since > before.since;
  const bool is_news = renamed && (is_same || rename > before.since || has_gone_by_rename(before));
  if (!is_news) return false;
  if (opened->options.dimension != options.dimension) {
    return fail(Code::outdated, opened->options.dimension);
  }
  const std::uint32_t since = before.since;
  now_.replace(*std::move(opened),
               [since](const OpenedEmbedding& now) { return now.since <= since; });
  return true;
}

// As the table has them: what a node is sent is what it stores.
TableResult<std::string> EmbeddingTableImpl::stored(const OpenedEmbedding& at,
                                                    std::span<const float> values) const {
  if (values.empty() || values.size() % options.dimension != 0) {
    return refused(Code::invalid_argument, 0,
                   "rows have " + std::to_string(options.dimension) + " values each");
  }
  std::string bytes(values.size() / options.dimension * at.row_bytes, '\0');
  const auto done = embedding::store_rows(at.options.type, options.dimension, values,
                                          std::as_writable_bytes(std::span(bytes)));
  if (done) return bytes;
  const std::uint32_t place = done.error().detail;
  return refused(done.error().code, place,
                 "row " + std::to_string(place / options.dimension) + ", column " +
                     std::to_string(place % options.dimension) +
                     ": int8 rows take finite numbers of at most 65504");
}

TableResult<std::uint64_t> EmbeddingTableImpl::append(std::span<const float> rows) {
  return follow([&](const OpenedEmbedding& at) -> TableResult<std::uint64_t> {
    if (rows.size() / options.dimension > embedding::kAppendBytesMax / at.row_bytes) {
      return refused(Code::invalid_argument, 0, "more rows than one append takes");
    }
    const auto bytes = stored(at, rows);
    if (!bytes) return std::unexpected(bytes.error());
    const embedding_calls::Append asked{at.object.number(), *bytes, at.named()};
    const auto appended = ask_in_words(*channel_, at.object, asked);
    if (!appended) return std::unexpected(appended.error());
    return appended->first;
  });
}

TableResult<void> EmbeddingTableImpl::replace(std::uint64_t row, std::span<const float> values) {
  if (values.size() != options.dimension) {
    return refused(Code::invalid_argument, 0,
                   "a row has " + std::to_string(options.dimension) + " values");
  }
  return follow([&](const OpenedEmbedding& at) -> TableResult<void> {
    const auto bytes = stored(at, values);
    if (!bytes) return std::unexpected(bytes.error());
    const embedding_calls::Replace asked{at.object.number(), row, *bytes, at.named()};
    const auto replaced = ask_in_words(*channel_, at.object, asked);
    if (!replaced) return std::unexpected(replaced.error());
    return {};
  });
}

std::size_t EmbeddingTableImpl::floats_of(Reduction reduction, std::size_t bags) const {
  return bags * embedding::result_width(reduction, options.dimension);
}

TableResult<void> EmbeddingTableImpl::reduce(const ReductionWork& work, std::span<float> results) {
  if (auto fault = embedding::fault_of_work(work, options.dimension)) {
    return refused(Code::invalid_argument, 0, *std::move(fault));
  }
  ESPALIER_ASSERT(results.size() == floats_of(work.reduction, work.bags.offsets.size()));
  return follow([&](const OpenedEmbedding& at) { return reduce_at(at, work, results); });
}

// All of one table: where another one is given the name meanwhile, all is asked of that.
TableResult<void> EmbeddingTableImpl::reduce_at(const OpenedEmbedding& at,
                                                const ReductionWork& work,
                                                std::span<float> results) {
  if (at.object.own() == nullptr) return reduce_far(at, work, results);
  if (!is_there(at)) {
    return std::unexpected(TableError(Error{Code::not_found, 0, at.object.number()}));
  }
  const auto reduced = embedding::reduce(*at.object.own(), work, results);
  if (reduced) return {};
  return std::unexpected(embedding::error_of(reduced.error()));
}

// Renumbered ids mean rows to the node alone.
TableResult<void> EmbeddingTableImpl::reduce_far(const OpenedEmbedding& at,
                                                 const ReductionWork& work,
                                                 std::span<float> results) {
  if (alone_ == nullptr) return reduce_at_node(at, work, results);
  if (work.bags.grouping != 0) {
    tree::WalkTraffic asked;
    asked.by_rings = 1;
    alone_->traffic().add({}, asked);
    return reduce_at_node(at, work, results);
  }
  const auto session = RemoteLease::take_at(*alone_, at.object.node());
  if (!session) return std::unexpected(TableError(session.error()));
  auto& tables = (*session)->parts.of<OneSidedEmbeddings>();
  const tree::WalkTraffic before = tables.traffic();
  auto reduced = tables.reduce(*alone_, at.object.node(), at.object.number(), at.since, at.options,
                               work, results);
  alone_->traffic().add(before, tables.traffic());
  if (reduced) return *std::move(reduced);
  return reduce_at_node(at, work, results);
}

TableResult<void> EmbeddingTableImpl::reduce_at_node(const OpenedEmbedding& at,
                                                     const ReductionWork& work,
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
        ask_for_bags(at, work, bag, end, results.subspan(bag * width, (end - bag) * width));
    if (!asked) return asked;
    bag = end;
  }
  return {};
}

TableResult<void> EmbeddingTableImpl::ask_for_bags(const OpenedEmbedding& at,
                                                   const ReductionWork& work, std::size_t first,
                                                   std::size_t end, std::span<float> results) {
  const EmbeddingBags& bags = work.bags;
  const std::size_t first_id = bags.offsets[first];
  const std::size_t end_id = end < bags.offsets.size() ? bags.offsets[end] : bags.ids.size();
  std::vector<std::uint32_t> offsets(bags.offsets.begin() + static_cast<std::ptrdiff_t>(first),
                                     bags.offsets.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::uint32_t& offset : offsets) offset -= static_cast<std::uint32_t>(first_id);
  ReductionWork some = work;
  some.bags.offsets = offsets;
  some.bags.ids = bags.ids.subspan(first_id, end_id - first_id);
  if (!bags.weights.empty()) {
    some.bags.weights = bags.weights.subspan(first_id, end_id - first_id);
  }
  embedding_calls::Reduce asked = reduce_request(some);
  asked.table = at.object.number();
  asked.named = at.named();
  const auto answer = ask_node(*channel_, at.object, asked);
  if (!answer) return std::unexpected(answer.error());
  const embedding_calls::Reduced reply = answer->get();
  if (reply.results.size() != results.size_bytes()) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  std::memcpy(results.data(), reply.results.data(), results.size_bytes());
  return {};
}

TableResult<std::uint32_t> EmbeddingTableImpl::group(const RowGroups& groups) {
  const bool fits = groups.rows.size() * 4 + groups.sizes.size() <= kBagBytesMax;
  return follow([&](const OpenedEmbedding& at) -> TableResult<std::uint32_t> {
    if (embedding::EmbeddingTable* const table = at.object.own()) {
      if (is_there(at)) return embedding::group_rows(*table, groups);
      return std::unexpected(TableError(Error{Code::not_found, 0, at.object.number()}));
    }
    if (!fits) {
      return refused(Code::invalid_argument, 0, "more groups than a request has room for");
    }
    const embedding_calls::Group asked{at.object.number(),
                                       {static_cast<std::uint32_t>(groups.sizes.size()),
                                        static_cast<std::uint32_t>(groups.rows.size())},
                                       bytes_of_words(groups.rows),
                                       bytes_of_words(groups.sizes),
                                       at.named()};
    const auto grouped = ask_node(*channel_, at.object, asked);
    if (!grouped) return std::unexpected(grouped.error());
    return grouped->get().grouping;
  });
}

TableResult<std::uint32_t> EmbeddingTableImpl::renumber(std::span<std::uint32_t> ids) {
  constexpr std::size_t kIds = embedding::kRenumberBytesMax / sizeof(std::uint32_t);
  std::optional<std::uint32_t> grouping;
  do {
    const std::size_t some = std::min(kIds, ids.size());
    const auto numbered =
        follow([&](const OpenedEmbedding& at) { return renumber_some(at, ids.first(some)); });
    if (!numbered) return numbered;
    if (grouping && *grouping != *numbered) {
      return refused(Code::outdated, *numbered, "the table was given other groups meanwhile");
    }
    grouping = *numbered;
    ids = ids.subspan(some);
  } while (!ids.empty());
  return *grouping;
}

// Ids stay as they are where it is refused.
TableResult<std::uint32_t> EmbeddingTableImpl::renumber_some(const OpenedEmbedding& at,
                                                             std::span<std::uint32_t> ids) {
  if (embedding::EmbeddingTable* const table = at.object.own()) {
    if (is_there(at)) return embedding_calls::renumber(*table, ids);
    return std::unexpected(TableError(Error{Code::not_found, 0, at.object.number()}));
  }
  const embedding_calls::Renumber asked{
      at.object.number(), bytes_of_words(std::span<const std::uint32_t>(ids)), at.named()};
  const auto answer = ask_node(*channel_, at.object, asked);
  if (!answer) return std::unexpected(answer.error());
  const embedding_calls::Renumbered reply = answer->get();
  if (reply.ids.size() != ids.size_bytes()) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  std::memcpy(ids.data(), reply.ids.data(), ids.size_bytes());
  return reply.grouping;
}

Result<EmbeddingStats> EmbeddingTableImpl::stats() {
  const auto reply = follow([](const OpenedEmbedding& at) {
    return at.object.ask(embedding_calls::Info{at.object.number(), at.named()});
  });
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
  return follow([](const OpenedEmbedding& at) -> Result<std::vector<std::string>> {
    if (at.object.own() == nullptr) return fail(Code::unsupported);
    if (!is_there(at)) return fail(Code::not_found, at.object.number());
    return embedding::audit(*at.object.own());
  });
}

Result<std::shared_ptr<EmbeddingTableImpl>> create_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const EmbeddingOptions& options) {
  return embedding_handle(channel, embedding_calls::Create{name, embedding::shape_of(options),
                                                           wire::number_of(options.durability)});
}

Result<std::shared_ptr<EmbeddingTableImpl>> open_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name) {
  return embedding_handle(channel, embedding_calls::Open{name});
}

}  // namespace espalier::client
