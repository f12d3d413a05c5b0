// SPDX-License-Identifier: Apache-2.0
#include "bench/doorbell_forms.hpp"

namespace espalier::bench {

std::vector<DoorbellForm> doorbell_forms() {
  std::vector<DoorbellForm> forms;
  for (const Doorbell doorbell : {Doorbell::tail4, Doorbell::tail8, Doorbell::tail16}) {
    for (const base::Isa isa : {base::Isa::scalar, base::Isa::avx2, base::Isa::avx512}) {
#if defined(ESPALIER_HAVE_X86_KITS)
      if (isa <= base::isa()) forms.push_back({doorbell, isa});
#else
      if (isa == base::Isa::scalar) forms.push_back({doorbell, isa});
#endif
    }
  }
  for (const Doorbell doorbell : {Doorbell::tail64, Doorbell::bitmap, Doorbell::slots}) {
    forms.push_back({doorbell, base::Isa::scalar});
  }
  return forms;
}

std::vector<DoorbellForm> best_doorbell_forms() {
  std::vector<DoorbellForm> best;
  for (const DoorbellForm& form : doorbell_forms()) {
    // Forms of one doorbell stand together, the fastest last.
    if (!best.empty() && best.back().doorbell == form.doorbell) best.pop_back();
    best.push_back(form);
  }
  return best;
}

}  // namespace espalier::bench
