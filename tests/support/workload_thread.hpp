// SPDX-License-Identifier: Apache-2.0
// One thread of a workload: seeded random operations, through a Recorder or a Pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/pipeline_recorder.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {

/// Thread: belongs to one.
class WorkloadThread {
 public:
  /// Requires: all outlive it.
  WorkloadThread(const WorkloadOptions& options, const std::vector<std::string>& keys,
                 Recorder& recorder, std::uint64_t seed, std::string value_prefix)
      : options_(options),
        keys_(keys),
        recorder_(recorder),
        random_(seed),
        value_prefix_(std::move(value_prefix)) {}

  /// Makes all operations by synchronous calls.
  void call();
  /// Makes all operations through a Pipeline; no batches, modifies, counts and snapshots there.
  void submit();

 private:
  void step();
  void write();
  void read();
  void scan(bool held);
  void batch();
  void read_snapshot();
  Question question();

  const std::string& key();
  std::string value();

  const WorkloadOptions& options_;
  const std::vector<std::string>& keys_;
  Recorder& recorder_;
  Random random_;
  std::string value_prefix_;
  std::uint64_t values_ = 0;
  std::size_t last_key_ = 0;
  bool shrinking_ = false;
};

}  // namespace espalier::test
