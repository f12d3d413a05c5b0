// SPDX-License-Identifier: Apache-2.0
#include "base/process_id.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

#include "base/system_error.hpp"

namespace espalier::base {
namespace {

constexpr unsigned kStartBits = 42;
constexpr std::uint64_t kStartMask = (std::uint64_t{1} << kStartBits) - 1;

Result<ProcessStat> read_stat(std::uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refused_by_system();
  std::array<char, 1024> text;  // the fields up to the start time fit by far
  const ssize_t bytes = ::read(file, text.data(), text.size());
  const int error = errno;
  ::close(file);
  if (bytes < 0) return refused_by_system(error);
  return parse_process_stat({text.data(), static_cast<std::size_t>(bytes)});
}

ProcessId make(std::uint32_t pid, std::uint64_t start_ticks) {
  return {(std::uint64_t{pid} << kStartBits) | (start_ticks & kStartMask)};
}

}  // namespace

Result<ProcessStat> parse_process_stat(std::string_view line) {
  // The name stands in parentheses and may contain some itself: the last one counts.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return fail(Code::corrupt, 1);
  line.remove_prefix(name_end + 1);

  constexpr int kState = 3;
  constexpr int kStartTime = 22;
  ProcessStat stat;
  for (int field = kState; field <= kStartTime; ++field) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return fail(Code::corrupt, 2);
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    if (field == kState) stat.state = word.front();
    if (field != kStartTime) continue;
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), stat.start_ticks);
    if (error != std::errc{}) return fail(Code::corrupt, 3);
  }
  return stat;
}

Result<ProcessId> this_process() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const auto stat = read_stat(pid);
  if (!stat) return std::unexpected(stat.error());
  return make(pid, stat->start_ticks);
}

bool has_ended(ProcessId process) {
  const auto stat = read_stat(process.pid());
  if (!stat) {
    const bool gone = stat.error().detail == ENOENT || stat.error().detail == ESRCH;
    return stat.error().code == Code::system && gone;
  }
  if (make(process.pid(), stat->start_ticks) != process) return true;
  return stat->state == 'Z' || stat->state == 'X';
}

}  // namespace espalier::base
