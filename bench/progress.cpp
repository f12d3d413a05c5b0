// SPDX-License-Identifier: Apache-2.0
#include "bench/progress.hpp"

#include <ostream>

namespace espalier::bench {
namespace {

constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

void Progress::show(std::string_view what) {
  if (!on_) return;
  err_ << kEraseLine << what << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  err_ << kEraseLine << std::flush;
  shown_ = false;
}

}  // namespace espalier::bench
