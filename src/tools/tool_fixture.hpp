// SPDX-License-Identifier: Apache-2.0
// For tests: the whole command on files in memory, with its output caught.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tools/memory_files.hpp"
#include "tools/run.hpp"

namespace espalier::tools {

/// Runs commands and keeps what the last one said.
class Tool {
 public:
  MemoryFiles files;
  std::string input;  ///< standard input of the next command
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;
  std::uint64_t tick_ns = 1'000'000;  ///< how far the clock goes at each reading

  int run(const std::vector<std::string>& arguments, std::span<const Mount> mounts = {}) {
    constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
    MemorySource source(input, files.piece_bytes);
    out_.str("");
    err_.str("");
    Environment environment{.input = source,
                            .out = out_,
                            .err = err_,
                            .files = files,
                            .out_is_terminal = out_is_terminal,
                            .err_is_terminal = err_is_terminal,
                            .colour = colour,
                            .now_ns = [this] { return clock_ns_ += tick_ns; },
                            .memory_bytes_max = kMemoryBytes};
    return tools::run(arguments, environment, mounts);
  }
  [[nodiscard]] std::string out() const { return out_.str(); }
  [[nodiscard]] std::string err() const { return err_.str(); }

 private:
  std::ostringstream out_;
  std::ostringstream err_;
  std::uint64_t clock_ns_ = 0;
};

}  // namespace espalier::tools
