// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/gather.hpp"

#include "kinds/embedding/gather_kits.hpp"

namespace espalier::embedding {

const GatherKit& gather_kit(base::Isa isa) {
#if defined(ESPALIER_HAVE_X86_GATHER)
  static const bool has_fma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!base::kThreadSanitizer && has_fma && isa != base::Isa::scalar) {
    return isa == base::Isa::avx512 ? avx512_gather() : avx2_gather();
  }
#endif
  static_cast<void>(isa);
  return scalar_gather();
}

}  // namespace espalier::embedding
