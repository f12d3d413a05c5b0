// SPDX-License-Identifier: Apache-2.0
// The program `espalier serve` as a process of its own, which ends with the test that started it,
// even if that crashes.
//
// Thread: one, which must live as long as this does: the process is killed when the thread ends.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"

namespace espalier::test {

class NodeProgram {
 public:
  /// Starts `arguments` in `folder`, with its standard error in the file `log` there.
  NodeProgram(const std::filesystem::path& folder, const std::vector<std::string>& arguments);
  NodeProgram(const NodeProgram&) = delete;
  NodeProgram& operator=(const NodeProgram&) = delete;
  /// Kills it.
  ~NodeProgram();

  /// Waits for its next message, such as "READY=1". Nothing: it has ended.
  std::optional<std::string> next_message();
  /// Fills the socket's queue with messages, so the node blocks at its next one.
  void fill_messages() const;
  void send(int signal) const;
  /// Stops the process (SIGSTOP); returns when it has stopped.
  void stop() const;
  /// Waits until it ends. Returns its exit code, or minus the signal that ended it.
  int wait();

 private:
  std::filesystem::path socket_;  // NOTIFY_SOCKET
  pid_t process_ = -1;
  memory::Descriptor ended_;     // readable once it has ended
  memory::Descriptor messages_;  // received by socket_
};

}  // namespace espalier::test
