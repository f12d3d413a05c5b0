// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/faults.hpp"

namespace espalier::fabric::sim {

Faults Faults::harsh() {
  Faults faults;
  faults.delay_ns = {300, 12'000};
  faults.late = 0.01;
  faults.loss = 0.03;
  faults.duplication = 0.05;
  faults.tear = 0.7;
  faults.tear_ns = {200, 30'000};
  faults.hold_read = 0.3;
  faults.split_atomic_ns = {0, 1'000};
  faults.pause_loss = 0.5;
  return faults;
}

}  // namespace espalier::fabric::sim
