// SPDX-License-Identifier: Apache-2.0
// OpenBLAS, loaded when a model first wants it: programs are not linked with it.
//
// It is used on the calling thread alone, for a node's helpers are its threads. One that was built
// for OpenMP has a number of threads for each thread that calls, and takes as many as there are
// processors: that one is not used.
//
// Thread: any, once it is made.
#pragma once

#include "base/loaded_library.hpp"
#include "kinds/embedding/model/dense.hpp"

namespace espalier::embedding {

class OpenBlas {
 public:
  /// Cost: that of loading it. It stays loaded.
  explicit OpenBlas(const char* library);

  /// Whether it is there, and runs on the calling thread alone.
  [[nodiscard]] bool usable() const { return multiply_ != nullptr; }
  /// Requires: it is usable; weights of one output lie behind the other.
  void layer(const DenseWork& work) const;

 private:
  using Multiply = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);

  base::LoadedLibrary library_;
  Multiply multiply_ = nullptr;
};

}  // namespace espalier::embedding
