// SPDX-License-Identifier: Apache-2.0
// Sends requests through a Pipeline and records their answers, read versions included.
//
// Requests in flight together are concurrent operations of one thread: each is stamped when it is
// submitted and when it completes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/map.hpp"
#include "tests/support/question.hpp"
#include "tests/support/recorder.hpp"

namespace espalier::test {

/// Requests through a Pipeline, into the log of a Recorder of the same thread.
class PipelineRecorder : private Handler {
 public:
  /// Requires: the recorder outlives it.
  static Result<std::unique_ptr<PipelineRecorder>> open(Recorder& recorder,
                                                        std::uint32_t in_flight);

  /// Submits all, concurrent with each other and with requests in flight.
  void submit(std::vector<Question> questions);
  /// Runs until at most so many are unfinished.
  void drain(std::size_t unfinished = 0);

 private:
  PipelineRecorder(Recorder& recorder, Pipeline pipeline)
      : recorder_(recorder), pipeline_(std::move(pipeline)) {}

  // Requests submitted together; lives until all are done.
  struct Flight {
    std::vector<Question> questions;
    std::vector<Operation> operations;
    std::vector<Request> requests;
    std::size_t unfinished = 0;
  };
  // A tag is a flight's index and, in its low bits, an index into the flight.
  static constexpr std::uint32_t kIndexBits = 16;

  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;
  Operation& operation_at(std::uint64_t tag);
  void retire_flights();

  Recorder& recorder_;
  Pipeline pipeline_;
  std::vector<std::unique_ptr<Flight>> flights_;  // null: free index
};

}  // namespace espalier::test
