// SPDX-License-Identifier: Apache-2.0
// A process forked from this one, and the pipe between the two.
//
// A fork copies only the calling thread, so a process that makes children must have one thread at
// that moment: locks of other threads would stay held in the child for ever.
//
// Thread: belongs to one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "memory/shared_memory.hpp"

namespace espalier::test {

/// One end of the pipe: messages of any length, each received as it was sent.
class Line {
 public:
  explicit Line(memory::Descriptor end) : end_(std::move(end)) {}

  /// Returns false if the other side is gone.
  bool send(std::string_view message);
  /// Waits for the next message. Returns false if the other side is gone.
  bool receive(std::string& message);
  [[nodiscard]] int descriptor() const { return end_.number(); }

 private:
  memory::Descriptor end_;
};

class Child {
 public:
  /// Runs `body` in a process of its own, which ends with the code that it returns, or with this
  /// process.
  explicit Child(const std::function<int(Line&)>& body);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills it.
  ~Child();

  [[nodiscard]] Line& line() { return line_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Dies as by SIGKILL, wherever it is.
  void kill() const;
  /// Waits until it ends. Returns its exit code, or minus the signal that ended it.
  int wait();

 private:
  pid_t process_ = -1;  // -1: it was reaped
  Line line_;
};

}  // namespace espalier::test
