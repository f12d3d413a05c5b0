// SPDX-License-Identifier: Apache-2.0
#include "tests/support/terminal_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/child_process.hpp"

namespace espalier::test {
namespace {

constexpr int kSilenceMs = 60'000;

/// Runs in the child, where nothing but system calls is safe.
[[noreturn]] void become(int terminal, char* const* arguments, char* const* variables) {
  constexpr int kCannotStart = 127;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::login_tty(terminal) != 0) ::_exit(kCannotStart);
  ::execve(arguments[0], arguments, variables);
  ::_exit(kCannotStart);
}

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& arguments, unsigned short columns,
                                 unsigned short rows) {
  int ours = -1;
  int its = -1;
  const winsize window{rows, columns, 0, 0};
  if (::openpty(&ours, &its, nullptr, nullptr, &window) != 0) {
    throw std::runtime_error("no terminal");
  }
  terminal_ = memory::Descriptor(ours);
  other_ = memory::Descriptor(its);
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  std::vector<std::string> words = arguments;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::string type = "TERM=xterm";
  const std::array<char*, 2> variables{type.data(), nullptr};
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("no process");
  if (process_ == 0) become(its, pointers.data(), variables.data());
}

TerminalProgram::~TerminalProgram() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  base::wait_for_child(process_);
}

bool TerminalProgram::read_more() {
  pollfd news{terminal_.number(), POLLIN, 0};
  int found = 0;
  do {
    found = ::poll(&news, 1, kSilenceMs);
  } while (found < 0 && errno == EINTR);
  if (found <= 0) return false;
  std::array<char, 4096> piece{};
  const ssize_t got = ::read(terminal_.number(), piece.data(), piece.size());
  if (got <= 0) return false;
  written_.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

bool TerminalProgram::wait_for(std::string_view text, std::size_t times) {
  for (;;) {
    std::size_t found = 0;
    for (std::size_t at = written_.find(text); at != std::string::npos;
         at = written_.find(text, at + text.size())) {
      ++found;
    }
    if (found >= times) return true;
    if (!read_more()) return false;
  }
}

void TerminalProgram::type(std::string_view keys) const {
  if (::write(terminal_.number(), keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) {
    throw std::runtime_error("cannot type");
  }
}

void TerminalProgram::resize(unsigned short columns, unsigned short rows) const {
  const winsize window{rows, columns, 0, 0};
  ::ioctl(terminal_.number(), TIOCSWINSZ, &window);
}

void TerminalProgram::send(int signal) const { ::kill(process_, signal); }

bool TerminalProgram::is_in_call(long number) const {
  std::ifstream file("/proc/" + std::to_string(process_) + "/syscall");
  std::string now;
  return !(file >> now) || now == std::to_string(number);
}

bool TerminalProgram::reads_lines() const {
  termios now{};
  ::tcgetattr(other_.number(), &now);
  return (now.c_lflag & ICANON) != 0 && (now.c_lflag & ECHO) != 0;
}

// What it wrote before its end lies in the terminal still.
int TerminalProgram::wait() {
  const int code = base::wait_for_child(std::exchange(process_, -1));
  ::fcntl(terminal_.number(), F_SETFL, O_NONBLOCK);
  std::array<char, 4096> piece{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(terminal_.number(), piece.data(), piece.size());
    if (got > 0) written_.append(piece.data(), static_cast<std::size_t>(got));
  }
  return code;
}

}  // namespace espalier::test
