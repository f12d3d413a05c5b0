// SPDX-License-Identifier: Apache-2.0
// espalier fabric serve: memory that others may reach, and messages that come back.
//
// This thread waits for the request to stop; another one serves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>

#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/udp_port.hpp"
#include "memory/shared_memory.hpp"
#include "tools/commands.hpp"
#include "tools/fabric_link.hpp"
#include "tools/fabric_server.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

using fabric::RemoteRights;
using memory::SharedMemory;

constexpr std::uint64_t kDefaultBytes = 1 << 20;
constexpr std::uint64_t kSecondsMax = 365 * 24 * 3600;

struct FabricServeOptions {
  std::string address;
  std::uint64_t bytes = 0;
  bool bytes_given = false;  // else those of the file, or the default
  std::optional<std::string> file;
  bool read_only = false;
  bool spin = false;
  std::optional<std::uint64_t> seconds;
};

std::unexpected<Failure> file_failed(const std::string& path, const Error& error) {
  return failed(fmt::format("cannot read '{}': {}", path, reason(error)));
}

/// How many bytes to offer.
Outcome<std::uint64_t> region_bytes(Environment& environment, const FabricServeOptions& options) {
  if (options.bytes_given && options.bytes == 0) return misused("there is nothing to offer");
  if (options.bytes_given) return options.bytes;
  if (!options.file) return kDefaultBytes;
  const auto info = environment.files.info(*options.file);
  if (!info) return file_failed(*options.file, info.error());
  if (!info->exists) return file_failed(*options.file, Error{Code::system, 0, ENOENT});
  if (!info->size_bytes) {
    return misused(fmt::format("nobody knows how long '{}' is", *options.file),
                   "Say how much to offer: --bytes SIZE.");
  }
  if (*info->size_bytes == 0) {
    return failed(fmt::format("'{}' is empty", *options.file),
                  "Give another file, or --bytes SIZE for zeros behind it.");
  }
  return *info->size_bytes;
}

Outcome<void> fill(Environment& environment, const std::string& path, const SharedMemory& memory) {
  auto source = environment.files.open(path);
  if (!source) return file_failed(path, source.error());
  const std::span<char> all(reinterpret_cast<char*>(memory.at(0)), memory.bytes());
  std::size_t used = 0;
  for (char beyond = 0;;) {
    const bool full = used == all.size();
    const auto count = (*source)->read(full ? std::span(&beyond, 1) : all.subspan(used));
    if (!count) return file_failed(path, count.error());
    if (*count == 0) return {};
    if (full) {
      return failed(fmt::format("'{}' is longer than {} bytes", path, all.size()),
                    "Offer more: --bytes SIZE.");
    }
    used += *count;
  }
}

Outcome<SharedMemory> make_memory(Environment& environment, const FabricServeOptions& options) {
  const auto bytes = region_bytes(environment, options);
  if (!bytes) return std::unexpected(bytes.error());
  auto memory = SharedMemory::create("espalier-fabric", *bytes);
  if (!memory) {
    return failed(
        fmt::format("cannot make {} of memory: {}", format_bytes(*bytes), reason(memory.error())),
        "Offer less: --bytes SIZE.");
  }
  if (options.file) {
    if (auto filled = fill(environment, *options.file, *memory); !filled) {
      return std::unexpected(filled.error());
    }
  }
  return std::move(*memory);
}

void print_counters(Environment& environment, const std::string& why,
                    const FabricServer::Counters& counters, fabric::Endpoint& endpoint) {
  environment.out << fmt::format(
      "stopped ({}): {} connection{}, {} turned away; {} message{} sent back, {}\n",
      why.empty() ? "the time is over" : why, format_count(counters.connections),
      counters.connections == 1 ? "" : "s", format_count(counters.rejected),
      format_count(counters.echoes), counters.echoes == 1 ? "" : "s",
      format_bytes(counters.echo_bytes));
  auto* const roce = dynamic_cast<fabric::roce::RoceEndpoint*>(&endpoint);
  if (roce == nullptr) return;
  const auto& packets = roce->counters();
  environment.out << fmt::format(
      "packets: {} received, {} malformed, {} for nobody here, {} not from the peer, {} out of the "
      "window",
      format_count(packets.packets), format_count(packets.malformed),
      format_count(packets.unknown_peers), format_count(packets.foreign),
      format_count(packets.out_of_window));
  if (const auto* const udp = dynamic_cast<fabric::roce::UdpPort*>(&roce->port())) {
    environment.out << fmt::format(", {} with a wrong ICRC; {} sent, {} found no room",
                                   format_count(udp->counters().wrong_icrc),
                                   format_count(udp->counters().sent),
                                   format_count(udp->counters().unsent));
  }
  environment.out << '\n';
}

Outcome<int> serve_memory(Environment& environment, const FabricServeOptions& options) {
  const auto address = fabric_address(options.address);
  if (!address) return std::unexpected(address.error());
  // Before any thread starts, which would take the signals.
  const auto stop = environment.notice_stop();
  if (stop == nullptr) return failed("nothing can be served here, for nobody could stop it");
  const auto memory = make_memory(environment, options);
  if (!memory) return std::unexpected(memory.error());
  auto regions = fabric::RegionTable::create();
  if (!regions) return failed(fmt::format("cannot offer memory: {}", reason(regions.error())));
  const RemoteRights rights = options.read_only
                                  ? RemoteRights::read
                                  : RemoteRights::read | RemoteRights::write | RemoteRights::atomic;
  const auto region =
      (*regions)->offer({memory->at(0), memory->bytes(), memory->descriptor(), 0}, rights);
  if (!region) return failed(fmt::format("cannot offer memory: {}", reason(region.error())));
  const auto listening = environment.listen_on_fabric(*address, std::move(*regions));
  if (!listening) {
    return cannot_listen(encode(fabric::to_text(*address), Encoding::escaped), listening.error());
  }
  fabric::Endpoint& endpoint = *listening->endpoint;
  FabricServer server(endpoint, region->remote(), rights, options.spin);
  environment.out << fmt::format(
      "listening at {}\noffering {} bytes, {}, to {}; messages of up to {} come back\n",
      encode(fabric::to_text(listening->address), Encoding::escaped), memory->bytes(),
      options.file ? "those of " + encode(*options.file, Encoding::escaped) : "zeroed",
      options.read_only ? "read" : "read, write and add to",
      format_bytes(FabricServer::kEchoBytesMax));
  environment.out.flush();

  std::thread server_thread([&server] { server.run(); });
  std::optional<std::uint64_t> at_most_ns;
  if (options.seconds) at_most_ns = *options.seconds * 1'000'000'000;
  const std::string why = stop->wait(at_most_ns);
  server.stop();
  server_thread.join();
  print_counters(environment, why, server.counters(), endpoint);
  return kOk;
}

}  // namespace

void add_fabric_serve(CLI::App& fabric, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<FabricServeOptions>();
  CLI::App& command =
      *fabric.add_subcommand("serve", "Offer memory to whoever connects, and send messages back");
  add_fabric_address(command, options->address);
  const CLI::Option* const bytes = add_size_option(
      command, "-b,--bytes", "How much to offer, such as 64M (default: the file's length, else 1M)",
      options->bytes);
  command
      .add_option_function<std::string>(
          "-f,--file", [options](const std::string& text) { options->file = text; },
          "File whose bytes to offer, in memory; zeros follow it (default: zeros)")
      ->type_name("FILE");
  command.add_flag("--read-only", options->read_only, "Let nobody write, nor add");
  command
      .add_option_function<std::uint64_t>(
          "--seconds", [options](std::uint64_t seconds) { options->seconds = seconds; },
          "Stop after so long (default: never)")
      ->check(CLI::Range(std::uint64_t{1}, kSecondsMax).description(""))
      ->type_name("N");
  command.add_flag("--spin", options->spin, "Never sleep: answers sooner, and takes a core");
  command.footer(
      "ADDRESS says where to listen; port 0 takes one that is free. Prints the address for the\n"
      "other side, and serves until SIGTERM or SIGINT; a second one ends it at once. Whoever can\n"
      "reach the address can read the memory, and write it unless --read-only is given: nobody is\n"
      "asked who they are.\n"
      "Examples:\n"
      "  espalier fabric serve shm:/tmp/fabric.sock --bytes 1G\n"
      "  espalier fabric serve roce://127.0.0.1:0/1 --file table.bin --read-only\n");
  command.callback([options, bytes, &environment, &chosen] {
    options->bytes_given = bytes->count() != 0;
    chosen = reporting(environment,
                       [options, &environment] { return serve_memory(environment, *options); });
  });
}

}  // namespace espalier::tools
