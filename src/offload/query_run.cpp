// SPDX-License-Identifier: Apache-2.0
#include "offload/query_run.hpp"

#include <utility>

#include "base/clock.hpp"

namespace espalier::offload {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void QueryRun::end_with(Error error, std::string words) {
  ended_ = true;
  failure_ = Failure{error, std::move(words)};
}

// Checking and compiling take a time by the length of the message, so a helper does them too.
bool QueryRun::begin() {
  auto checked =
      table::check_pipeline(bytes_of_text(message_), source_.snapshot().table().schema());
  if (!checked) {
    end_with({Code::invalid_argument, 0, 0}, checked.error().message());
    return false;
  }
  table::RunOptions options;
  options.seed = seed_;
  options.group_bytes = table::GroupTable::kBytesMin;
  if (checked->grouped || checked->distinct) {
    group_bytes_ = limits_.take_group_bytes(table::GroupTable::kBytesMin);
    options.group_bytes = group_bytes_;
  }
  run_.emplace(std::move(*checked), source_, options);
  return true;
}

JobStep QueryRun::step(StepContext& context) {
  const base::Stopwatch watch;
  if (!run_ && !begin()) return JobStep::done;
  JobStep says = JobStep::again;
  while (says == JobStep::again) {
    if (cancelled()) {
      ended_ = true;
      says = JobStep::done;
      break;
    }
    switch (run_->step(run_->step_rows())) {
      case table::RunState::running: break;
      case table::RunState::stalled: says = JobStep::done; break;
      case table::RunState::done:
        ended_ = true;
        says = JobStep::done;
        break;
      case table::RunState::failed:
        end_with(table::error_of(run_->error()), run_->error().message());
        says = JobStep::done;
        break;
    }
    if (context.should_return()) break;
  }
  busy_ns_ += watch.elapsed_ns();
  return says;
}

wire::QueryNumbers QueryRun::numbers() const {
  wire::QueryNumbers numbers{};
  if (run_) numbers = run_->numbers();
  numbers.busy_ns = busy_ns_;
  return numbers;
}

}  // namespace espalier::offload
