// SPDX-License-Identifier: Apache-2.0
#include "cmdline/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <system_error>

#include "base/standard_descriptors.hpp"
#include "cmdline/standard_output.hpp"

namespace espalier::cmdline {
namespace {

/// https://no-color.org: any value but the empty one asks for no colour.
bool colour_wanted(bool terminal) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal_type = std::getenv("TERM");
  return terminal && (no_color == nullptr || *no_color == '\0') && terminal_type != nullptr &&
         std::string_view(terminal_type) != "dumb";
}

}  // namespace

bool err_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

int run_process(std::string_view program,
                const std::function<int(std::ostream&, const Messages&)>& work) {
  base::open_standard_descriptors();
  // A reader that goes away is met as a failing write (EPIPE), whatever the parent process has set.
  std::signal(SIGPIPE, SIG_IGN);
  const Messages messages{program, std::cerr, colour_wanted(err_is_terminal())};
  try {
    DescriptorBuffer out_buffer(STDOUT_FILENO);
    std::ostream out(&out_buffer);
    const int exit_code = work(out, messages);
    out.flush();
    const int error_number = out_buffer.error_number();
    if (error_number == 0 || error_number == EPIPE) return exit_code;
    return print_failure(
        messages,
        {kFailed,
         "cannot write to standard output: " + std::generic_category().message(error_number), ""});
  } catch (const std::exception& error) {
    return print_failure(messages, {kFailed, error.what(), ""});
  }
}

}  // namespace espalier::cmdline
