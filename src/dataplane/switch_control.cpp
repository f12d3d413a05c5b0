// SPDX-License-Identifier: Apache-2.0
#include "dataplane/switch_control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/system_error.hpp"
#include "base/unix_address.hpp"
#include "dataplane/control_stream.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::size_t kPeersMax = 16;

// A first line of the protocol: a word, and how many bytes follow.
struct Announced {
  std::string_view word;
  std::uint64_t bytes = 0;
};

std::optional<Announced> announced(std::string_view line) {
  const std::size_t blank = line.find(' ');
  Announced result{line.substr(0, blank), 0};
  if (blank == std::string_view::npos) return result;
  const char* const end = line.data() + line.size();
  const auto read = std::from_chars(line.data() + blank + 1, end, result.bytes);
  if (read.ec != std::errc() || read.ptr != end || result.bytes > kControlBytesMax) {
    return std::nullopt;
  }
  return result;
}

std::string in_words(const TextFault& fault) {
  return (fault.line == 0 ? "" : "line " + std::to_string(fault.line) + ": ") + fault.reason;
}

bool answer(ControlStream& stream, const SwitchControl::Answer& answer) {
  const std::string& text = answer ? *answer : answer.error();
  std::string all = answer ? "ok " : "error ";
  all.append(std::to_string(text.size())).append("\n").append(text);
  return stream.send(all, kControlLongestNs);
}

/// Who has connected.
struct Peer {
  Peer(memory::Descriptor connected, int wake)
      : socket(std::move(connected)), stream(socket.number(), wake) {}
  memory::Descriptor socket;
  ControlStream stream;
};

void add_number(std::string& text, std::string_view name, std::uint64_t value) {
  text.append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

SwitchControl::Answer SwitchControl::ask(std::string_view word, std::string_view body) {
  const std::scoped_lock lock(mutex_);
  if (word == "install") return install(body);
  if (word == "change") return change(body);
  if (word == "program") return program_.text();
  if (word == "status") return status();
  return std::unexpected("a request is install, change, program or status");
}

SwitchControl::Answer SwitchControl::install(std::string_view text) {
  auto program = SwitchProgram::parse(text);
  if (!program) return std::unexpected(in_words(program.error()));
  program_ = *std::move(program);
  function_.install(program_.function());
  ++installed_;
  return std::string();
}

SwitchControl::Answer SwitchControl::change(std::string_view text) {
  const auto changes = program_.parse_changes(text);
  if (!changes) return std::unexpected(in_words(changes.error()));
  program_.make(*changes);
  function_.set_addresses(*changes);
  changed_ += changes->size();
  return std::string();
}

std::string SwitchControl::status() const {
  std::string text;
  std::uint64_t ranges = 0;
  std::uint64_t nodes = 0;
  for (const SwitchMap& map : program_.maps()) {
    ranges += map.tables.ways.size();
    nodes += nodes_in_sets(map.tables);
  }
  add_number(text, "maps", program_.maps().size());
  add_number(text, "ranges", ranges);
  add_number(text, "nodes", nodes);
  add_number(text, "generation", function_.generation());
  add_number(text, "programs_installed", installed_);
  add_number(text, "entries_changed", changed_);
  add_status_(text);
  return text;
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(std::string_view path,
                                                           SwitchControl& control) {
  using fabric::shm::ListeningSocket;
  auto listening = ListeningSocket::open(path, S_IRUSR | S_IWUSR, ListeningSocket::Kind::stream);
  if (!listening) return std::unexpected(listening.error());
  memory::Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return base::refused_by_system();
  return std::unique_ptr<ControlServer>(
      new ControlServer(std::move(*listening), std::move(wake), control));
}

void ControlServer::stop() {
  const std::uint64_t one = 1;
  static_cast<void>(write(wake_.number(), &one, sizeof one));
}

// Waits for whoever asks something. A request that has begun is brought to its end before another
// one is looked at.
void ControlServer::run() {
  std::vector<std::unique_ptr<Peer>> peers;
  for (;;) {
    std::vector<pollfd> watched{{wake_.number(), POLLIN, 0}, {listening_.number(), POLLIN, 0}};
    for (const auto& peer : peers) watched.push_back({peer->socket.number(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) return;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (watched[i + 2].revents != 0 && !serve(peers[i]->stream)) peers[i].reset();
    }
    std::erase(peers, nullptr);
    if (watched[1].revents == 0) continue;
    memory::Descriptor socket(
        accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket || peers.size() == kPeersMax) continue;
    peers.push_back(std::make_unique<Peer>(std::move(socket), wake_.number()));
  }
}

// What has come. False: the peer is gone, or is to go.
bool ControlServer::serve(ControlStream& stream) {
  do {
    const auto line = stream.line(kControlLongestNs);
    if (!line) return false;
    const auto request = announced(*line);
    if (!request) {  // nobody knows what belongs to it, so this is the end
      answer(stream, std::unexpected("no request, or one that is too long"));
      return false;
    }
    const auto body = stream.bytes(request->bytes, kControlLongestNs);
    if (!body || !answer(stream, control_.ask(request->word, *body))) return false;
  } while (stream.has_line());
  return true;
}

Result<ControlClient> ControlClient::connect(std::string_view path) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  memory::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::refused_by_system();
  if (::connect(socket.number(), address->get(), address->bytes()) != 0) {
    const bool nobody = errno == ECONNREFUSED || errno == ENOENT;
    return nobody ? fail(Code::connection_lost) : base::refused_by_system();
  }
  return ControlClient(std::move(socket));
}

Result<std::string> ControlClient::ask(std::string_view word, std::string_view body) {
  refused_.clear();
  std::string request(word);
  if (!body.empty()) request.append(" ").append(std::to_string(body.size()));
  request.append("\n").append(body);
  if (!stream_->send(request, kControlLongestNs)) return fail(Code::connection_lost);
  const auto line = stream_->line(kControlLongestNs, kControlLongestNs);
  const auto said = line ? announced(*line) : std::nullopt;
  if (!said) return fail(Code::connection_lost);
  auto answer = stream_->bytes(said->bytes, kControlLongestNs);
  if (!answer || (said->word != "ok" && said->word != "error")) return fail(Code::connection_lost);
  if (said->word == "ok") return *std::move(answer);
  refused_ = *std::move(answer);
  return fail(Code::invalid_argument);
}

}  // namespace espalier::dataplane
