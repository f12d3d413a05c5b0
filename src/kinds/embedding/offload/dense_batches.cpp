// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/offload/dense_batches.hpp"

#include <algorithm>
#include <utility>

#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/ranking.hpp"

namespace espalier::offload {

void DenseBatch::add(std::shared_ptr<embedding::Inference> inference) {
  if (inferences_.size() == inferences_.capacity()) inferences_.reserve(2 * inferences_.size() + 4);
  items_.reserve(inferences_.capacity());
  items_.push_back(inference->item());
  queries_ += inference->queries();
  inferences_.push_back(std::move(inference));
}

void DenseBatch::leave() {
  if (state() == State::running) state_.store(State::left, std::memory_order_release);
}

// A batch that was left continues where it was: its networks know the next query.
bool DenseBatch::step() {
  if (networks_ == nullptr) {
    networks_ =
        std::make_unique<embedding::Networks>(model_->weights(), model_->shape().tables, items_);
  }
  if (networks_->step()) return true;
  model_->count(queries_, 1);
  state_.store(State::ranked, std::memory_order_release);
  return false;
}

std::shared_ptr<DenseBatch> DenseBatches::join(
    const std::shared_ptr<embedding::Inference>& inference, std::uint64_t now_ns) {
  drop_abandoned();
  const auto found = std::ranges::find(gathering_, inference->model(), &DenseBatch::model);
  if (found != gathering_.end()) {
    (*found)->add(inference);
    return *found;
  }
  const auto batch = std::make_shared<DenseBatch>(inference->model(), now_ns + DenseBatch::kWaitNs);
  batch->add(inference);
  gathering_.push_back(batch);
  return batch;
}

void DenseBatches::close(const std::shared_ptr<DenseBatch>& batch) {
  std::erase(gathering_, batch);
  batch->run();
}

// Only requests of this thread hold a gathering batch.
void DenseBatches::drop_abandoned() {
  std::erase_if(gathering_, [](const auto& batch) { return batch.use_count() == 1; });
}

}  // namespace espalier::offload
