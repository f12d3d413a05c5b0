// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pipeline_recorder.hpp"

#include <algorithm>

namespace espalier::test {
namespace {

Kind kind_of(Op op) {
  switch (op) {
    case Op::put: return Kind::put;
    case Op::insert: return Kind::insert;
    case Op::update: return Kind::update;
    case Op::erase: return Kind::erase;
    case Op::floor: return Kind::floor;
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor: return Kind::scan;
    default: return Kind::get;
  }
}

bool writes(Kind kind) {
  return kind == Kind::put || kind == Kind::insert || kind == Kind::update || kind == Kind::erase;
}

}  // namespace

Result<std::unique_ptr<PipelineRecorder>> PipelineRecorder::open(Recorder& recorder,
                                                                 std::uint32_t in_flight) {
  auto pipeline = Pipeline::open(recorder.map_, in_flight);
  if (!pipeline) return std::unexpected(pipeline.error());
  return std::unique_ptr<PipelineRecorder>(
      new PipelineRecorder(recorder, std::move(*pipeline)));
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
    Operation operation = recorder_.begin(kind_of(question.op), question.key);
    operation.high = question.high;
    if (writes(operation.kind) && operation.kind != Kind::erase) operation.value = question.value;
    operation.options = {question.limit, question.op == Op::scan_reverse,
                         question.op == Op::scan_floor};
    flight.operations.push_back(std::move(operation));
    Request& request = flight.requests.emplace_back();
    request.op = question.op;
    request.limit = question.limit;
    request.tag = first_tag + flight.requests.size() - 1;
    request.key = question.key;
    request.high = question.high;
    request.value = question.value;
  }
  pipeline_.submit(flight.requests, *this);
}

void PipelineRecorder::drain(std::size_t unfinished) {
  while (pipeline_.poll() > unfinished) {
  }
  retire_flights();
}

Operation& PipelineRecorder::operation_of(std::uint64_t tag) {
  Flight& flight = *flights_.at(tag >> kIndexBits);
  return flight.operations.at(tag & ((std::uint64_t{1} << kIndexBits) - 1));
}

void PipelineRecorder::fill_answer(Operation& operation, const Completion& completion) const {
  if (writes(operation.kind)) {
    operation.applied = completion.applied;
    operation.existed = completion.found;
    operation.version = completion.version;
    return;
  }
  if (recorder_.map_.options().versions) operation.read_version = completion.read_version;
  if (operation.kind == Kind::scan || !completion.found) return;
  const std::string_view key =
      operation.kind == Kind::floor ? completion.key : std::string_view(operation.key);
  operation.items.push_back(
      {std::string(key), std::string(completion.value), completion.version});
}

void PipelineRecorder::done(const Completion& completion) {
  Operation& operation = operation_of(completion.tag);
  --flights_.at(completion.tag >> kIndexBits)->unfinished;
  if (completion.ok) {
    fill_answer(operation, completion);
  } else {
    recorder_.refused(operation, completion.error);
  }
  const bool miscounted =
      operation.kind == Kind::scan && completion.ok && completion.items != operation.items.size();
  if (miscounted && !recorder_.unexpected_) {
    recorder_.unexpected_ = describe(operation) + " ended with another number of items";
  }
  recorder_.end(std::move(operation));
}

bool PipelineRecorder::items(std::uint64_t tag, std::span<const Item> items) {
  Operation& operation = operation_of(tag);
  for (const Item& item : items) {
    operation.items.push_back({std::string(item.key), std::string(item.value), item.version});
  }
  return true;
}

// Not in done(): the pipeline may still look at its requests then.
void PipelineRecorder::retire_flights() {
  for (auto& flight : flights_) {
    if (flight && flight->unfinished == 0) flight.reset();
  }
}

}  // namespace espalier::test
