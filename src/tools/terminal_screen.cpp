// SPDX-License-Identifier: Apache-2.0
#include "tools/terminal_screen.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::tools {
namespace {

// ECMA-48, and the private modes of xterm that all terminals of today know.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";  // page, cursor, no wrapping
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseRestOfLine = "\x1b[K";
constexpr std::string_view kEraseRest = "\x1b[J";
constexpr std::string_view kReverse = "\x1b[7m";
constexpr std::string_view kPlain = "\x1b[0m";

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Of the only Screen, for the handler below.
termios terminal_before;

// Calls only what may be called in the middle of anything. An escape sequence that was cut short
// before it is no harm: terminals begin anew with the next. A terminal that others have in the
// foreground is theirs (we were stopped), and one that takes nothing (Ctrl-S) is not waited for.
extern "C" void give_back_and_end(int signal) {
  if (::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&room, 1, 0) > 0) {
      [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, kLeave.data(), kLeave.size());
    }
    ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  }
  ::raise(signal);  // which is what it was before the handler, and comes when this returns
}

class TerminalScreen final : public Screen {
 public:
  TerminalScreen(std::ostream& out, const termios& before) : out_(out), before_(before) {
    terminal_before = before;
    for (std::size_t i = 0; i < kEnding.size(); ++i) handle(kEnding[i], actions_before_[i]);
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGWINCH);
    ::sigaddset(&signals_, SIGTSTP);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
    signal_descriptor_ = memory::Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    enter();
  }

  ~TerminalScreen() override {
    leave();
    signal_descriptor_ = {};
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      ::sigaction(kEnding[i], &actions_before_[i], nullptr);
    }
  }

  ScreenSize size() override {
    winsize window{};
    ScreenSize size;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
    if (window.ws_col != 0) size.columns = window.ws_col;
    if (window.ws_row != 0) size.rows = window.ws_row;
    return size;
  }

  void show(std::span<const ScreenLine> lines) override {
    out_ << kHome;
    bool first = true;
    for (const ScreenLine& line : lines) {
      if (!first) out_ << "\r\n";
      first = false;
      if (line.heading) out_ << kReverse;
      out_ << line.text;
      if (line.heading) out_ << kPlain;
      out_ << kEraseRestOfLine;
    }
    out_ << kEraseRest << std::flush;
  }

  ScreenEvent wait(std::uint64_t ns) override {
    const std::uint64_t until_ns = base::monotonic_ns() + ns;
    for (;;) {
      if (!out_ || !signal_descriptor_) return {ScreenEvent::Kind::end, 0};
      std::array<pollfd, 2> news{
          {{STDIN_FILENO, POLLIN, 0}, {signal_descriptor_.number(), POLLIN, 0}}};
      const int found = ::poll(news.data(), news.size(), milliseconds_until(until_ns));
      if (found == 0) return {};
      if (found < 0 && errno != EINTR) return {ScreenEvent::Kind::end, 0};
      if (found < 0) continue;
      if (news[1].revents != 0) {
        if (const auto event = take_signal()) return *event;
      } else if (const auto event = take_key()) {
        return *event;
      }
    }
  }

 private:
  static void handle(int signal, struct sigaction& before) {
    struct sigaction action{};
    action.sa_handler = give_back_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }

  static int milliseconds_until(std::uint64_t until_ns) {
    constexpr std::uint64_t kMillisecondNs = 1'000'000;
    constexpr std::uint64_t kMost = 3'600'000;
    const std::uint64_t now_ns = base::monotonic_ns();
    if (now_ns >= until_ns) return 0;
    return static_cast<int>(
        std::min((until_ns - now_ns + kMillisecondNs - 1) / kMillisecondNs, kMost));
  }

  void enter() {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    out_ << kEnter << std::flush;
  }

  void leave() {
    out_ << kLeave << std::flush;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  /// Restores the terminal, and stops as the signal asked; resumes on SIGCONT.
  void stop() {
    leave();
    sigset_t stopping;
    ::sigemptyset(&stopping);
    ::sigaddset(&stopping, SIGTSTP);
    ::raise(SIGTSTP);  // it is blocked, and comes with the next line
    ::pthread_sigmask(SIG_UNBLOCK, &stopping, nullptr);
    ::pthread_sigmask(SIG_BLOCK, &stopping, nullptr);
    enter();
  }

  std::optional<ScreenEvent> take_signal() {
    signalfd_siginfo info{};
    const ssize_t got = ::read(signal_descriptor_.number(), &info, sizeof info);
    if (got != sizeof info) return std::nullopt;
    if (info.ssi_signo == SIGTSTP) stop();
    return ScreenEvent{ScreenEvent::Kind::resized, 0};
  }

  /// Nothing for keys that come as several bytes, such as those with arrows. Takes one byte at a
  /// time, for what comes behind such a key is another.
  std::optional<ScreenEvent> take_key() {
    constexpr char kEscape = '\x1b';
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
    if (got <= 0) return ScreenEvent{ScreenEvent::Kind::end, 0};
    switch (std::exchange(inside_, Inside::nothing)) {
      case Inside::nothing: break;
      case Inside::escape:
        if (byte == '[' || byte == 'O') inside_ = Inside::sequence;
        return std::nullopt;
      case Inside::sequence:
        if (byte < '@' || byte > '~') inside_ = Inside::sequence;
        return std::nullopt;
    }
    if (byte != kEscape) return ScreenEvent{ScreenEvent::Kind::key, byte};
    pollfd more{STDIN_FILENO, POLLIN, 0};
    if (::poll(&more, 1, 0) > 0) inside_ = Inside::escape;  // else it is the escape key itself
    return std::nullopt;
  }

  /// Of a key that comes as several bytes.
  enum class Inside : std::uint8_t { nothing, escape, sequence };

  std::ostream& out_;
  const termios before_;
  sigset_t signals_{};
  sigset_t mask_before_{};
  memory::Descriptor signal_descriptor_;
  std::array<struct sigaction, kEnding.size()> actions_before_{};
  Inside inside_ = Inside::nothing;
};

}  // namespace

std::unique_ptr<Screen> open_terminal_screen(std::ostream& out) {
  const char* const type = std::getenv("TERM");
  const bool can_place = type != nullptr && *type != '\0' && std::string_view(type) != "dumb";
  termios before{};
  if (!can_place || ::isatty(STDOUT_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &before) != 0) {
    return nullptr;
  }
  return std::make_unique<TerminalScreen>(out, before);
}

}  // namespace espalier::tools
