// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pipeline_recorder.hpp"

#include <algorithm>

namespace espalier::test {
Result<std::unique_ptr<PipelineRecorder>> PipelineRecorder::open(Recorder& recorder,
                                                                 std::uint32_t in_flight) {
  auto pipeline = Pipeline::open(recorder.map_, in_flight);
  if (!pipeline) return std::unexpected(pipeline.error());
  return std::unique_ptr<PipelineRecorder>(new PipelineRecorder(recorder, std::move(*pipeline)));
}

void PipelineRecorder::submit(std::vector<Question> questions) {
  retire_flights();
  auto free = std::find(flights_.begin(), flights_.end(), nullptr);
  if (free == flights_.end()) free = flights_.insert(free, nullptr);
  const auto first_tag = static_cast<std::uint64_t>(free - flights_.begin()) << kIndexBits;
  *free = std::make_unique<Flight>();
  Flight& flight = **free;
  flight.questions = std::move(questions);
  flight.unfinished = flight.questions.size();
  for (const Question& question : flight.questions) {
    flight.requests.push_back(request_of(question, first_tag + flight.requests.size()));
    flight.operations.push_back(recorder_.begin(operation_of(question, recorder_.thread_)));
  }
  pipeline_.submit(flight.requests, *this);
}

void PipelineRecorder::drain(std::size_t unfinished) {
  while (pipeline_.poll() > unfinished) {
  }
  retire_flights();
}

Operation& PipelineRecorder::operation_at(std::uint64_t tag) {
  Flight& flight = *flights_.at(tag >> kIndexBits);
  return flight.operations.at(tag & ((std::uint64_t{1} << kIndexBits) - 1));
}

void PipelineRecorder::done(const Completion& completion) {
  Operation& operation = operation_at(completion.tag);
  --flights_.at(completion.tag >> kIndexBits)->unfinished;
  if (!completion.ok) {
    recorder_.refused(operation, completion.error);
  } else if (!take_answer(operation, completion) && !recorder_.unexpected_) {
    recorder_.unexpected_ = describe(operation) + " ended with another number of items";
  }
  if (!recorder_.map_.options().versions) operation.read_version.reset();
  recorder_.end(std::move(operation));
}

bool PipelineRecorder::items(std::uint64_t tag, std::span<const Item> items) {
  take_items(operation_at(tag), items);
  return true;
}

// Not in done(): the pipeline may still use its requests then.
void PipelineRecorder::retire_flights() {
  for (auto& flight : flights_) {
    if (flight && flight->unfinished == 0) flight.reset();
  }
}

}  // namespace espalier::test
