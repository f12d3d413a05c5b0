// SPDX-License-Identifier: Apache-2.0
// Does random operations on a map on one thread and compares each answer with a std::map, the
// structure with its audit, and all versions with the version replay.
//
// Two kinds of phases alternate, so that trees grow, shrink and vanish: in one most writes put, in
// the other most erase. Values are all different if they are long enough.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/map.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/pipeline_recorder.hpp"
#include "tests/support/recorder.hpp"
#include "tests/support/reference_map.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

struct ModelOptions {
  KeyPattern pattern = KeyPattern::dense;
  std::size_t keys = 64;
  std::uint64_t steps = 1000;
  std::uint64_t audit_every = 1;  ///< steps
  std::uint64_t steps_per_phase = 300;
  std::uint32_t large_value_bytes = 0;  ///< one value in 50 is so long; 0: none
  std::uint64_t seed = 1;
};

class ModelDriver {
 public:
  ModelDriver(Map map, const ModelOptions& options);

  /// Makes all steps; returns the first error.
  [[nodiscard]] std::optional<std::string> run();
  /// Compares everything: scans both ways, the count, the audit.
  [[nodiscard]] std::optional<std::string> compare_all();
  /// Erases all items, in random order.
  [[nodiscard]] std::optional<std::string> empty();

 private:
  // A snapshot, and the map's content when it was taken.
  struct Held {
    Recorder recorder;
    ReferenceMap then;
  };

  void step();
  void write_one();
  void read_one(Recorder& recorder);
  void scan_one(Recorder& recorder, bool held);
  void batch_one();
  void version_condition();
  void stale_version_condition();
  void snapshot_one();
  void pipeline_writes();
  void pipeline_reads();

  const std::string& random_key();
  std::string random_bound();
  std::string random_value();
  Question random_read();
  // Follows what the recorder has logged; the first difference is kept.
  void follow();
  void fail(std::string what);
  std::optional<std::string> replay();

  Map map_;
  ModelOptions options_;
  Random random_;
  Clock clock_;
  Recorder recorder_;
  std::unique_ptr<PipelineRecorder> pipeline_;
  ReferenceMap reference_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Held>> held_;
  std::vector<ReadItem> remembered_;
  History history_;  // since the last replay
  std::optional<std::string> failure_;
  std::uint64_t values_ = 0;
  std::uint64_t steps_ = 0;
  bool shrinking_ = false;
};

}  // namespace espalier::test
