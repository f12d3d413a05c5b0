// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/ranking_models.hpp"

#include <cstring>
#include <functional>

#include "base/until_fork.hpp"
#include "catalog/await_records.hpp"
#include "channel/objects.hpp"
#include "channel/reached.hpp"
#include "kinds/embedding/client/ask_node.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "store/store_core.hpp"

namespace espalier::client {
namespace {

using embedding::RankingObject;

RankingShape public_shape(const embedding::ModelShape& shape) {
  return {shape.dense, shape.tables, shape.dimension, shape.outputs};
}

std::unexpected<TableError> wrong_queries(std::string words) {
  return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, std::move(words)));
}

}  // namespace

TableResult<std::vector<float>> RankingModelImpl::infer(const RankingQueries& queries) {
  const std::size_t count = queries.dense.size() / shape.dense;
  if (queries.dense.size() % shape.dense != 0) {
    return wrong_queries("a query has " + std::to_string(shape.dense) + " dense features");
  }
  if (queries.tables.size() != shape.tables) {
    return wrong_queries("the model has " + std::to_string(shape.tables) + " tables");
  }
  for (const EmbeddingBags& bags : queries.tables) {
    if (bags.offsets.size() != count) {
      return wrong_queries("of each table there is a bag for each query");
    }
    if (!bags.weights.empty()) return wrong_queries("queries have no weights");
  }
  if (count > embedding::kQueriesMax) return wrong_queries("a request has at most 1024 queries");
  auto ranks = ask({static_cast<std::uint32_t>(count), 0},
                   embedding::words_of(queries.dense, queries.tables));
  if (ranks && ranks->size() != count * shape.outputs) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  return ranks;
}

TableResult<std::vector<float>> RankingModelImpl::infer_text(std::string_view queries) {
  return ask({0, 1}, queries);
}

TableResult<std::vector<float>> RankingModelImpl::ask(const embedding::InferShape& shape_asked,
                                                      std::string_view bytes) {
  if (bytes.size() > embedding::kQueryBytesMax) {
    return wrong_queries("queries of more than 1 MiB at a time");
  }
  if (object_.own() != nullptr) {
    const std::shared_ptr<const RankingObject> model =
        channel_->own_objects()->find<RankingObject>(object_.number());
    if (model == nullptr) return std::unexpected(Error{Code::not_found, 0, object_.number()});
    const catalog::Catalog& own = *channel_->own_objects();
    auto ranks = embedding::infer(model, own, shape_asked, bytes);
    // The answer also reveals which tables have its names.
    if (const auto durable = catalog::await_objects(own); !durable) {
      return std::unexpected(TableError(durable.error()));
    }
    return ranks;
  }
  const auto answer =
      ask_node(*channel_, object_, model_calls::Infer{object_.number(), shape_asked, bytes});
  if (!answer) return std::unexpected(answer.error());
  const std::string_view ranks = answer->get().ranks;
  if (ranks.size() % (sizeof(float) * shape.outputs) != 0) {
    return std::unexpected(TableError(Error{Code::corrupt, 0, 0}));
  }
  std::vector<float> all(ranks.size() / sizeof(float));
  if (!all.empty()) std::memcpy(all.data(), ranks.data(), ranks.size());
  return all;
}

TableResult<std::shared_ptr<RankingModelImpl>> create_ranking_model(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    std::string_view file) {
  if (channel->is_copy()) return std::unexpected(Error{Code::forked, 0, 0});
  if (file.size() > embedding::kModelBytesMax) {
    return wrong_queries("a model has at most 30 MiB");
  }
  if (catalog::Catalog* const own = channel->own_objects()) {
    auto made = embedding::create_ranking_model(*own, own->store()->pool, name, file);
    const auto durable = channel::await_answer(own->redo(), made ? nullptr : &made.error().error);
    if (!durable) return std::unexpected(durable.error());
    if (!made) return std::unexpected(made.error());
    const RankingShape shape = public_shape((*made)->shape());
    return base::make_shared_until_fork<RankingModelImpl>(
        channel, RankingModelImpl::Object(std::string(name), *std::move(made)), shape);
  }
  std::shared_ptr<RankingModelImpl> handle;
  const auto take = [&](channel::Answer&& answer) {
    const auto opened = channel::reply_in<model_calls::Opened>(answer.reply);
    if (!opened) return;
    handle = base::make_shared_until_fork<RankingModelImpl>(
        channel, RankingModelImpl::Object(std::string(name), channel, answer.node, opened->id),
        public_shape(opened->shape));
  };
  const model_calls::Create asked{name, file};
  const wire::RequestMessage<model_calls::Create> message(asked);
  const auto made =
      channel::make_object(*channel, message.get(), name, RankingObject::kKind, std::ref(take));
  if (!made) return std::unexpected(made.error());
  if (handle == nullptr) return std::unexpected(Error{Code::corrupt, 0, 0});
  return handle;
}

Result<std::shared_ptr<RankingModelImpl>> open_ranking_model(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name) {
  return channel::reach<RankingObject>(
      channel, model_calls::Open{name},
      [&](RankingModelImpl::Object&& object, const model_calls::Opened& opened) {
        return base::make_shared_until_fork<RankingModelImpl>(channel, std::move(object),
                                                              public_shape(opened.shape));
      });
}

}  // namespace espalier::client
