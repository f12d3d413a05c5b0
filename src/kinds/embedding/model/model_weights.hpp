// SPDX-License-Identifier: Apache-2.0
// The weights of a model, in pages of the store's pool, as the kernel that is to read them wants
// them: layers in slabs of whole panels, each of which lies in one page.
//
// Thread: any, once they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/embedding/model/dense.hpp"
#include "kinds/embedding/model/model_format.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::embedding {

class ModelWeights {
 public:
  /// Outputs of a layer that lie together.
  struct Slab {
    const float* weights;
    std::uint32_t first;
    std::uint32_t outputs;
  };
  struct Layer {
    LayerShape shape;
    bool rectify;
    std::vector<Slab> slabs;
    std::vector<float> biases;  // whole panels
  };

  /// Of a model that has no number yet. Cost: the floats are copied. Errors: out_of_memory.
  /// Requires: the file is one that has this plan; pool and kit outlive it.
  static Result<std::unique_ptr<ModelWeights>> create(memory::BufferPool& pool,
                                                      const ModelPlan& plan, std::string_view file,
                                                      const DenseKit& kit);
  /// Gives its pages back.
  ~ModelWeights();
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

  /// Says in the pages whose they are, and makes them live. Cost: a line of each. Requires: it is
  /// called once, before the model is found by others.
  void belong_to(std::uint32_t model);

  [[nodiscard]] std::span<const Layer> bottom() const { return bottom_; }
  [[nodiscard]] std::span<const Layer> top() const { return top_; }
  [[nodiscard]] const DenseKit& kit() const { return kit_; }
  [[nodiscard]] std::uint64_t memory_bytes() const;

  /// A place among the floats as a file has them: of a layer, bottom's first, its outputs and then
  /// its biases.
  struct Place {
    std::size_t layer = 0;
    std::uint32_t output = 0;
  };
  /// Adds the weights of an output, or the biases of a layer, and goes on to what follows. Returns
  /// whether there were any.
  bool add_floats(Place& place, std::vector<float>& to) const;

  /// Puts out one layer of some rows, which have room for whole panels.
  void run_layer(const Layer& layer, const float* inputs, std::size_t input_stride, float* outputs,
                 std::uint32_t rows) const;

 private:
  ModelWeights(memory::BufferPool& pool, const DenseKit& kit) : pool_(pool), kit_(kit) {}
  Result<std::byte*> room(std::size_t bytes);
  Result<Layer> load(const LayerShape& shape, bool rectify, const char*& floats);
  void store(const LayerShape& shape, Slab slab, const char* floats, float* to) const;

  memory::BufferPool& pool_;
  const DenseKit& kit_;
  std::vector<Layer> bottom_;
  std::vector<Layer> top_;
  std::vector<std::uint64_t> pages_;
  std::size_t used_ = 0;  // of the last page
};

}  // namespace espalier::embedding
