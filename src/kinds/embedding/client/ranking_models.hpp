// SPDX-License-Identifier: Apache-2.0
// Implementation behind RankingModel: one object, reached by a channel. A model of this process
// runs on the calling thread.
//
// Thread: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/interface.hpp"
#include "channel/reached_object.hpp"
#include "espalier/ranking_model.hpp"

namespace espalier::embedding {
class RankingObject;
struct InferShape;
}  // namespace espalier::embedding

namespace espalier::client {

/// One model. Errors as in RankingModel.
class RankingModelImpl final : public Interface {
 public:
  using Object = channel::Reached<embedding::RankingObject>;

  RankingModelImpl(std::shared_ptr<channel::Channel> channel, Object object,
                   const RankingShape& shape_in)
      : shape(shape_in), channel_(std::move(channel)), object_(std::move(object)) {}
  static RankingModel handle(std::shared_ptr<RankingModelImpl> impl) {
    return RankingModel(std::move(impl));
  }

  [[nodiscard]] const std::string& name() const { return object_.name(); }
  TableResult<std::vector<float>> infer(const RankingQueries& queries);
  TableResult<std::vector<float>> infer_text(std::string_view queries);

  const RankingShape shape;

 private:
  TableResult<std::vector<float>> ask(const embedding::InferShape& shape_asked,
                                      std::string_view bytes);

  const std::shared_ptr<channel::Channel> channel_;  // before the object, whose memory it keeps
  const Object object_;
};

// The models of a store. Returned ones are never null. Errors: see Store.
TableResult<std::shared_ptr<RankingModelImpl>> create_ranking_model(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name, std::string_view file);
Result<std::shared_ptr<RankingModelImpl>> open_ranking_model(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name);

}  // namespace espalier::client
