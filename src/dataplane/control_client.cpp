// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control_client.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "base/trusted_server.hpp"
#include "base/unix_address.hpp"
#include "dataplane/control_line.hpp"

namespace espalier::dataplane {

Result<ControlClient> ControlClient::connect(std::string_view path) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  memory::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::refused_by_system();
  if (::connect(socket.number(), address->get(), address->bytes()) != 0) {
    const bool nobody = errno == ECONNREFUSED || errno == ENOENT;
    return nobody ? fail(Code::connection_lost) : base::refused_by_system();
  }
  if (const auto good = base::check_server(socket.number(), path, {}); !good) {
    return std::unexpected(good.error());
  }
  return ControlClient(std::move(socket));
}

Result<std::string> ControlClient::ask(std::string_view word, std::string_view body,
                                       const std::function<void()>& while_waiting,
                                       std::uint64_t longest_ns) {
  refused_.clear();
  const ControlStream::Wait wait{base::monotonic_ns() + longest_ns, while_waiting};
  if (!stream_->send(control_text(word, body), wait)) return fail(Code::connection_lost);
  const auto line = stream_->line(wait);
  const auto said = line ? read_control_line(*line) : std::nullopt;
  if (!said) return fail(Code::connection_lost);
  auto answer = stream_->bytes(said->bytes, wait);
  if (!answer || (said->word != "ok" && said->word != "error")) return fail(Code::connection_lost);
  if (said->word == "ok") return *std::move(answer);
  refused_ = *std::move(answer);
  return fail(Code::invalid_argument);
}

}  // namespace espalier::dataplane
