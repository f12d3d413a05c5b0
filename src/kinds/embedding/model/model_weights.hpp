// SPDX-License-Identifier: Apache-2.0
// The weights of a model, in pages of the store's pool, in the layout of the kernel that reads
// them: layers in slabs of whole panels, each within one page.
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
  /// Adjacent outputs of a layer.
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

  /// For a model that has no number yet. Cost: a copy of the floats. Errors: out_of_memory.
  /// Requires: the file has this plan; pool and kit outlive it.
  static Result<std::unique_ptr<ModelWeights>> create(memory::BufferPool& pool,
                                                      const ModelPlan& plan, std::string_view file,
                                                      const DenseKit& kit);
  /// Frees its pages.
  ~ModelWeights();
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

  /// Stores the owner in the pages, and makes them live. Cost: a line of each. Requires: it is
  /// called once, before other threads find the model.
  void belong_to(std::uint32_t model);

  [[nodiscard]] std::span<const Layer> bottom() const { return bottom_; }
  [[nodiscard]] std::span<const Layer> top() const { return top_; }
  [[nodiscard]] const DenseKit& kit() const { return kit_; }
  [[nodiscard]] std::uint64_t memory_bytes() const;

  /// A position among the floats of a file: a layer, bottom's first, with its outputs and then its
  /// biases.
  struct Place {
    std::size_t layer = 0;
    std::uint32_t output = 0;
  };
  /// Appends the weights of an output, or the biases of a layer, and advances. Returns whether
  /// there were any.
  bool add_floats(Place& place, std::vector<float>& to) const;

  /// Computes one layer for some rows, which have room for whole panels.
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
