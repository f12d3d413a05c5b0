// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/search.hpp"

#include <cstdlib>
#include <string_view>

#include "kinds/map/node/search_kits.hpp"

namespace espalier::tree {
namespace {

template <class Kit>
constexpr SearchKit pointers_of(Isa isa) {
  return {Kit::rank16, Kit::rank32, Kit::match_tags, isa, Kit::kName};
}

constexpr SearchKit kScalar = pointers_of<ScalarKit>(Isa::scalar);
#if defined(ESPALIER_HAVE_X86_KITS)
constexpr SearchKit kAvx2 = pointers_of<Avx2Kit>(Isa::avx2);
constexpr SearchKit kAvx512 = pointers_of<Avx512Kit>(Isa::avx512);
#endif

Isa isa_cap() {
  const char* text = std::getenv("ESPALIER_ISA");
  const std::string_view cap = text == nullptr ? "" : text;
  if (cap == "scalar") return Isa::scalar;
  if (cap == "avx2") return Isa::avx2;
  return Isa::avx512;
}

}  // namespace

const SearchKit* search_kit(Isa isa) {
  if (isa == Isa::scalar) return &kScalar;
#if defined(ESPALIER_HAVE_X86_KITS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("popcnt");
  if (isa == Isa::avx2 && avx2) return &kAvx2;
  if (isa == Isa::avx512 && avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return &kAvx512;
  }
#endif
  return nullptr;
}

const SearchKit& best_search_kit() {
  static const SearchKit* const best = [] {
    const Isa cap = isa_cap();
    for (const Isa isa : {Isa::avx512, Isa::avx2}) {
      if (isa <= cap && search_kit(isa) != nullptr) return search_kit(isa);
    }
    return &kScalar;
  }();
  return *best;
}

}  // namespace espalier::tree
