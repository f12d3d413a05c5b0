// SPDX-License-Identifier: Apache-2.0
// For tests: the lines that a benchmark of points printed.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/output.hpp"
#include "bench/report.hpp"

namespace espalier::bench {

struct PointLines {
  int exit_code = -1;
  std::vector<Json> runs;
  std::vector<Json> medians;
  Json total;

  /// The runs with this text under this key.
  [[nodiscard]] std::vector<Json> runs_with(const std::string& key, const Json& value) const {
    std::vector<Json> found;
    for (const Json& line : runs) {
      if (line.contains(key) && line.at(key) == value) found.push_back(line);
    }
    return found;
  }
};

/// Runs a benchmark that prints JSON lines, sorts them, and checks what all have in common.
inline PointLines slots_of(const std::string& bench,
                           const std::function<int(const Output& output)>& run) {
  std::ostringstream out;
  std::ostringstream err;
  PointLines result;
  result.exit_code = run({out, err});
  EXPECT_EQ(err.str(), "");
  std::istringstream texts(out.str());
  for (std::string text; std::getline(texts, text);) {
    const Json line = Json::parse(text);
    EXPECT_EQ(line.at("bench"), bench);
    EXPECT_TRUE(result.total.is_null()) << "a line behind the total: " << text;
    if (line.contains("total")) {
      result.total = line;
      continue;
    }
    for (const char* key : {"target", "experiment", "workload", "threads", "cores", "crowded",
                            "seed", "ops_per_s", "ns_per_op", "probe_ns"}) {
      EXPECT_TRUE(line.contains(key)) << key << " in " << text;
    }
    EXPECT_EQ(line.at("crowded"), line.at("threads") > line.at("cores"));
    if (line.contains("median_of")) {
      result.medians.push_back(line);
    } else {
      EXPECT_EQ(line.at("result_hash").get<std::string>().size(), 16u);
      result.runs.push_back(line);
    }
  }
  EXPECT_EQ(result.total.at("runs"), result.runs.size());
  return result;
}

}  // namespace espalier::bench
