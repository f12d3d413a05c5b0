// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric_link.hpp"
#include "cmdline/text_codec.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "tools/numbers.hpp"
#include "tools/options.hpp"
#include "wire/fabric_greeting.hpp"

namespace espalier::tools {
namespace {

using fabric::Opcode;
using fabric::RemoteRights;
using fabric::Status;
using PairState = fabric::QueuePair::State;

constexpr std::uint64_t kAnswerNs = 10'000'000'000;  // so long an answer may take
constexpr std::uint64_t kTimeoutNs = 8'000'000;  // doubled each time; before a packet is sent again
constexpr std::uint64_t kLinkLookNs = 10'000'000;
constexpr std::uint32_t kIdlePolls = 10'000;

std::string hint_of(const Error& error) { return std::string(fabric::explain(error)); }

std::unexpected<Failure> no_interface(const std::string& address) {
  return failed(fmt::format("cannot use {}: there is no such network interface", address),
                "ip link show lists those of this machine.");
}

/// Why no end could be opened, or nothing be sent to the other.
std::unexpected<Failure> cannot_connect(const std::string& address, const Error& error) {
  if (error.code == Code::connection_lost) {
    return failed(fmt::format("nobody listens at {}", address),
                  fmt::format("Start one: espalier fabric serve {}", address));
  }
  if (error.code == Code::invalid_argument) {
    return misused(fmt::format("cannot connect to {}", address), hint_of(error));
  }
  if (error.code == Code::unsupported) {
    return failed(fmt::format("cannot connect to {}", address), hint_of(error));
  }
  if (error == Error{Code::system, 0, EADDRNOTAVAIL}) {
    return failed("the address to send from is not of this machine",
                  "Give one that is: --local HOST; or leave --local out.");
  }
  if (error == Error{Code::system, 0, EACCES}) {
    return failed(fmt::format("not allowed to connect to {}", address),
                  "Permissions of the socket and of its folder say who is.");
  }
  if (error == Error{Code::system, 0, ENODEV}) return no_interface(address);
  const bool no_way =
      error == Error{Code::system, 0, ENETUNREACH} || error == Error{Code::system, 0, EHOSTUNREACH};
  return failed(fmt::format("cannot connect to {}: {}", address, reason(error)),
                no_way ? "No network of this machine leads there." : "");
}

}  // namespace

void add_fabric_address(CLI::App& command, std::string& address) {
  command
      .add_option_function<std::string>(
          "ADDRESS", [&address](const std::string& text) { address = text; },
          "shm:PATH, roce://HOST[:PORT]/SERVICE, roce+memif:PATH, "
          "roce+xdp://INTERFACE/HOST[:PORT]/SERVICE or ofi://PROVIDER/HOST[:PORT]")
      ->type_name("")
      ->required();
}

void add_link_options(CLI::App& command, LinkOptions& options) {
  add_fabric_address(command, options.address);
  command
      .add_option_function<std::string>(
          "--local", [&options](const std::string& text) { options.local = text; },
          "roce: address to send from (default: the one that leads there)")
      ->type_name("HOST");
}

std::unexpected<Failure> cannot_listen(const std::string& address, const Error& error) {
  if (error.code == Code::already_exists) {
    return failed(fmt::format("somebody listens at {} already", address),
                  "Stop that, or give another path, port or service.");
  }
  if (error == Error{Code::system, 0, EADDRNOTAVAIL}) {
    return failed(fmt::format("{} is no address of this machine", address),
                  address.starts_with("roce+xdp:")
                      ? "Give one that the interface has; ip address show lists them."
                      : "Give one that is; 127.0.0.1 for others on this machine.");
  }
  if (error == Error{Code::system, 0, ENODEV}) return no_interface(address);
  if (error.code == Code::not_permitted) {
    return failed(
        fmt::format("{} is of a network, and nobody would have to prove who he is", address),
        "Name a file of those who may come, clients.secrets ('espalier secret new' writes its "
        "lines), or, on a network that nobody else reaches, say --clients-open.");
  }
  if (error.code == Code::unsupported) {
    return failed(fmt::format("cannot listen at {}", address), std::string(fabric::explain(error)));
  }
  return failed(fmt::format("cannot listen at {}: {}", address, reason(error)));
}

Outcome<fabric::FabricAddress> fabric_address(const std::string& text) {
  auto address = fabric::parse(text);
  if (address) return std::move(*address);
  return misused(fmt::format("'{}' is no address of the fabric", cmdline::escaped(text)),
                 hint_of(address.error()));
}

Outcome<FabricLink> FabricLink::open(Environment& environment, const LinkOptions& options) {
  const auto target = fabric_address(options.address);
  if (!target) return std::unexpected(target.error());
  std::optional<fabric::roce::IpAddress> local;
  if (!options.local.empty()) {
    const auto host = fabric::parse_host(options.local);
    if (!host || target->transport != fabric::FabricAddress::Transport::roce) {
      return misused(
          fmt::format("--local '{}' is nothing to send from", cmdline::escaped(options.local)),
          host ? "It is for addresses that begin with roce://." : hint_of(host.error()));
    }
    local = *host;
  }
  FabricLink link;
  link.address_ = cmdline::escaped(fabric::to_text(*target));
  auto regions = fabric::RegionTable::create();
  if (!regions) return cannot_connect(link.address_, regions.error());
  auto opened = environment.reach_on_fabric(*target, std::move(*regions), local);
  if (!opened) return cannot_connect(link.address_, opened.error());
  link.endpoint_ = std::move(opened->endpoint);
  link.queue_ = std::make_unique<fabric::CompletionQueue>(*link.endpoint_, 4 * kDepth);
  fabric::QueuePairOptions pair_options;
  pair_options.sends = link.queue_.get();
  pair_options.send_depth = pair_options.receive_depth = kDepth;
  pair_options.mtu_bytes = opened->mtu_bytes;
  // The far side may be a process that has no core of its own.
  pair_options.timeout_ns = kTimeoutNs;
  auto pair = link.endpoint_->connect(opened->target, pair_options, {});
  if (!pair) return cannot_connect(link.address_, pair.error());
  link.pair_ = std::move(*pair);
  if (auto answered = link.await_answer(); !answered) return std::unexpected(answered.error());
  if (auto greeted = link.read_greeting(); !greeted) return std::unexpected(greeted.error());
  return link;
}

FabricLink::~FabricLink() {
  if (pair_ == nullptr) return;
  pair_.reset();
  endpoint_->progress();  // so that the far side hears of it
}

Outcome<void> FabricLink::await_answer() {
  const std::uint64_t begin = base::monotonic_ns();
  for (;;) {
    endpoint_->progress();
    if (pair_->state() == PairState::connected) return {};
    if (pair_->state() == PairState::error) break;
    if (base::monotonic_ns() - begin > kAnswerNs) break;
    endpoint_->wait(kLinkLookNs);
  }
  const bool refused = pair_->ended_by() == Status::remote_operation;
  if (pair_->state() == PairState::error && refused) {
    return failed(fmt::format("whoever is at {} lets nobody in there", address_),
                  "Look whether the service is the one that was told, and is not full.");
  }
  if (endpoint_->properties().transport == "shm") {
    return cannot_connect(address_, Error{Code::connection_lost, 0, 0});
  }
  return failed(fmt::format("nobody answers at {}", address_),
                fmt::format("Start one: espalier fabric serve {}; and look whether a firewall "
                            "stands between.",
                            address_));
}

Outcome<void> FabricLink::read_greeting() {
  wire::FabricGreeting greeting{};
  const auto data = pair_->peer_data();
  if (data.size() >= sizeof greeting) std::memcpy(&greeting, data.data(), sizeof greeting);
  if (greeting.magic != wire::kFabricGreetingMagic) {
    return failed(fmt::format("what listens at {} is no espalier fabric serve", address_));
  }
  if (greeting.version != wire::kFabricGreetingVersion) {
    return failed(fmt::format("{} greets in version {}, and this command knows {}", address_,
                              greeting.version, wire::kFabricGreetingVersion),
                  "Take the same version of espalier on both sides.");
  }
  region_ = {greeting.base, greeting.bytes, greeting.key, 0};
  rights_ = static_cast<RemoteRights>(greeting.rights);
  echo_bytes_max_ = greeting.echo_bytes_max;
  return {};
}

Outcome<fabric::Completion> FabricLink::finish(const fabric::WorkRequest& request) {
  const auto posted = pair_->post(request);
  if (posted.taken == 0) {
    return misused(fmt::format("{} cannot carry such a {}", address_, fabric::name(request.opcode)),
                   fmt::format("At most {} at once.", format_bytes(message_bytes_max())));
  }
  fabric::Completion completion;
  while (queue_->poll({&completion, 1}) == 0) endpoint_->wait(kLinkLookNs);
  return completion;
}

std::size_t FabricLink::poll(std::span<fabric::Completion> into) {
  const std::size_t count = queue_->poll(into);
  idle_ = count == 0 ? idle_ + 1 : 0;
  if (idle_ > kIdlePolls) endpoint_->wait(kLinkLookNs);
  return count;
}

std::unexpected<Failure> FabricLink::no_access(std::uint64_t bytes, Opcode opcode) const {
  if (bytes > region_.bytes) {
    return failed(fmt::format("{} bytes are more than the region of {} has (remote_access)", bytes,
                              region_.bytes),
                  fmt::format("Give --bytes {} or less.", region_.bytes));
  }
  if (!fabric::includes(rights_, fabric::rights_for(opcode))) {
    return failed(fmt::format("the region at {} is read-only (remote_access)", address_),
                  "Start espalier fabric serve without --read-only, if it may be changed.");
  }
  return failed(fmt::format("{} does not offer this region any more (remote_access)", address_),
                "Try again: a new connection tells what is offered now.");
}

std::unexpected<Failure> FabricLink::refused(const fabric::Completion& completion,
                                             std::uint64_t bytes) const {
  switch (completion.status) {
    case Status::remote_access: return no_access(bytes, completion.opcode);
    case Status::remote_invalid:
      return failed(fmt::format("{} could make no sense of a {} (remote_invalid)", address_,
                                fabric::name(completion.opcode)),
                    "Atomics need an aligned word of 8 bytes; a message, a length that is taken.");
    case Status::retry_exceeded:
      if (pair_->undelivered_bytes() != 0) {
        return failed(fmt::format("packets of {} bytes do not get through to {} (retry_exceeded)",
                                  pair_->undelivered_bytes(), address_),
                      "Where shorter ones do, some interface on the way has a smaller MTU: look at "
                      "ip link.");
      }
      return failed(fmt::format("{} does not answer any more (retry_exceeded)", address_),
                    "Look whether espalier fabric serve still runs there.");
    case Status::flushed:
      return failed(fmt::format("the connection to {} is lost (flushed)", address_),
                    "Look whether espalier fabric serve still runs there. What was on its way may "
                    "be done or not.");
    case Status::success:
    case Status::local_length:
    case Status::remote_operation:
    case Status::no_receive: break;
  }
  return failed(fmt::format("a {} to {} failed ({})", fabric::name(completion.opcode), address_,
                            fabric::name(completion.status)),
                "Look at what espalier fabric serve says there.");
}

}  // namespace espalier::tools
