// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/offload/model_copy.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "kinds/embedding/model/model_redo.hpp"
#include "kinds/embedding/model/ranking.hpp"

namespace espalier::offload {
namespace {

/// Copies the weights of a model, which never change, in the order of its file. An unmade model has
/// none here; one that is being made has: the first of its records may precede the copy.
class ModelCopy final : public ObjectCopy {
 public:
  explicit ModelCopy(std::shared_ptr<embedding::RankingObject> model) : model_(std::move(model)) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    if (model_->is_unmade()) return CopyStep::done;
    while (!model_->dropped()) {
      if (piece.full()) return CopyStep::more;
      if (!add(piece)) return CopyStep::done;
    }
    return CopyStep::done;
  }

 private:
  bool add(CopyPiece& piece) {
    std::vector<float> floats;
    embedding::ModelWeights::Place place = place_;
    while (floats.size() < embedding::kWeightsOfAPart &&
           model_->weights().add_floats(place, floats)) {
    }
    if (floats.empty()) return false;
    const auto room = piece.add(embedding::weights_record_bytes(floats.size()));
    if (room.empty()) return true;  // the piece is full
    embedding::write_weights(
        room, model_->id(), first_,
        {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)});
    place_ = place;
    first_ += floats.size();
    return true;
  }

  const std::shared_ptr<embedding::RankingObject> model_;
  embedding::ModelWeights::Place place_;
  std::uint64_t first_ = 0;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_a_model(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  return std::make_unique<ModelCopy>(
      std::static_pointer_cast<embedding::RankingObject>(entry->object));
}

}  // namespace espalier::offload
