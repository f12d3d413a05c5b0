// SPDX-License-Identifier: Apache-2.0
// A program on a pseudo-terminal: it gets a window, keys and signals from the test, which reads its
// output.
//
// Thread: one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "memory/shared_memory.hpp"

namespace espalier::test {

class TerminalProgram {
 public:
  /// Starts `arguments` in a session of its own, on a terminal of this size.
  TerminalProgram(const std::vector<std::string>& arguments, unsigned short columns,
                  unsigned short rows);
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;
  /// Kills it.
  ~TerminalProgram();

  /// Reads until the text has appeared that many times in all. Returns whether it has; else the
  /// program has ended, or printed nothing for a minute.
  [[nodiscard]] bool wait_for(std::string_view text, std::size_t times = 1);
  void type(std::string_view keys) const;
  void resize(unsigned short columns, unsigned short rows) const;
  void send(int signal) const;
  /// Whether its first thread is in this system call. True if the system does not report it.
  [[nodiscard]] bool is_in_call(long number) const;
  /// Whether the terminal is in its initial mode: echo, and input by lines.
  [[nodiscard]] bool reads_lines() const;
  /// Reads to the end and waits. Returns its exit code, or minus the signal that ended it.
  int wait();
  /// All that it has written.
  [[nodiscard]] const std::string& written() const { return written_; }

 private:
  bool read_more();

  pid_t process_ = -1;
  memory::Descriptor terminal_;  // this process's end
  memory::Descriptor other_;     // the program's end, kept open
  std::string written_;
};

}  // namespace espalier::test
