// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as records of a ranking model's weights, or of a model that was made: what is
// read lies within them, and a model that has weights has those that the records have, in order.
// What is refused changes nothing.
//
// Input: records, each behind its length in 2 bytes. The model has the id 1 and 34 floats.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "kinds/embedding/model/model_redo.hpp"
#include "kinds/embedding/model/ranking_redo.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::embedding {
namespace {

using base::want;

constexpr std::size_t kFuzzedFloats = 3 * 8 + 10;

/// Two dense features, a layer of 8, a table, and a layer of 1 of 8 values and a product.
ModelPlan fuzzed_plan() {
  ModelPlan plan;
  plan.dense = 2;
  plan.dimension = 8;
  plan.bottom = {{2, 8}};
  plan.top = {{9, 1}};
  plan.tables = {"t"};
  plan.floats_at = 96;
  return plan;
}

void want_fault(const Error& error) {
  want(error.code == Code::corrupt || error.code == Code::out_of_memory,
       "another error than corrupt or out_of_memory");
  if (error.code != Code::corrupt) return;
  want(!text_of(static_cast<catalog::RedoFault>(error.detail)).empty(), "a fault without words");
}

class FuzzedModel {
 public:
  FuzzedModel() { want(model_->plan().file_bytes() == 96 + 4 * kFuzzedFloats, "another plan"); }

  void apply(const std::uint8_t* data, std::size_t size) {
    const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
    if (size != 0) std::memcpy(exact.get(), data, size);
    const std::string_view record(exact.get(), size);
    if (const auto created = catalog::read_created(record)) restore(*created);
    const bool had_weights = model_->has_weights();
    const std::string before = model_->told_file();
    const auto applied = apply_weights(*model_, pool_, record);
    if (!applied) {
      want_fault(applied.error());
      // The first part begins anew, whatever comes of it.
      const auto redo = read_weights_redo(record);
      const bool begins = redo && redo->model == 1 && !had_weights && redo->first == 0;
      want(model_->has_weights() == had_weights, "weights of what was refused");
      want(begins || model_->told_file() == before, "what was refused has changed something");
      if (begins) recorded_.clear();
      return;
    }
    const auto redo = read_weights_redo(record);
    want(redo.has_value() && redo->model == 1, "what is no record was applied");
    if (had_weights) return;
    if (redo->first == 0) recorded_.clear();
    if (recorded_.size() != redo->first * sizeof(float)) {
      want(before.empty() && recorded_.empty(), "a part has been left out");
      return;
    }
    recorded_ += redo->bytes;
    want(recorded_.size() <= 4 * kFuzzedFloats, "there are more floats than the model has");
    want(model_->has_weights() == (recorded_.size() == 4 * kFuzzedFloats),
         "weights come with the end");
    if (model_->has_weights()) want_weights();
  }

 private:
  void want_weights() const {
    std::vector<float> floats;
    ModelWeights::Place place;
    while (model_->weights().add_floats(place, floats)) {
    }
    want(floats.size() * sizeof(float) == recorded_.size() &&
             std::memcmp(floats.data(), recorded_.data(), recorded_.size()) == 0,
         "other weights than were told");
  }
  /// Of a model that was made.
  void restore(const catalog::CreatedObject& created) const {
    catalog::Catalog catalog;
    const auto made = restore_ranking_model(catalog, created);
    if (!made) return want_fault(made.error());
    want((*made)->id() == created.id && (*made)->name() == created.name, "another model");
    want(!(*made)->has_weights(), "weights without a record");
  }

  memory::Region region_ = std::move(
      *memory::Region::reserve({.bytes_max = std::uint64_t{64} << 20, .huge_pages = false}));
  memory::BufferPool pool_{region_};
  // Last, for it gives memory back to the others.
  const std::shared_ptr<RankingObject> model_ =
      std::make_shared<RankingObject>(1, "m", fuzzed_plan(), nullptr);
  std::string recorded_;
};

void apply_all(const std::uint8_t* data, std::size_t size) {
  FuzzedModel model;
  std::uint16_t bytes = 0;
  for (std::size_t at = 0; size - at >= sizeof bytes;) {
    std::memcpy(&bytes, data + at, sizeof bytes);
    at += sizeof bytes;
    const std::size_t record = std::min<std::size_t>(bytes, size - at);
    model.apply(data + at, record);
    at += record;
  }
}

}  // namespace
}  // namespace espalier::embedding

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::embedding::apply_all(data, size);
  return 0;
}
