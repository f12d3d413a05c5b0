// SPDX-License-Identifier: Apache-2.0
// espalier fabric ping: how long one verb takes to the other side and back.
//
// What is asked changes nothing there: a WRITE brings the bytes that a READ has found before, and
// an atomic adds 0.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cmdline/number_option.hpp"
#include "tools/commands.hpp"
#include "tools/fabric_link.hpp"
#include "tools/numbers.hpp"
#include "tools/round_trips.hpp"

namespace espalier::tools {
namespace {

using fabric::Completion;
using fabric::Opcode;
using fabric::WorkRequest;

constexpr std::uint64_t kFabricPingsMax = 1'000'000;

struct FabricPingOptions {
  LinkOptions link;
  std::uint64_t count = 1000;
  std::uint64_t bytes = 8;
  std::uint32_t in_flight = 1;
  std::string verb = "read";
  bool json = false;
};

Opcode opcode_of(const std::string& verb) {
  if (verb == "write") return Opcode::write;
  if (verb == "send") return Opcode::send;
  return verb == "read" ? Opcode::read : Opcode::fetch_add;
}

/// Keeps so many requests on their way. What comes back does so in the order in which it left.
class Pinger {
 public:
  Pinger(Environment& environment, FabricLink& link, Opcode opcode, std::uint64_t bytes,
         std::uint32_t in_flight)
      : environment_(environment),
        link_(link),
        opcode_(opcode),
        bytes_(bytes),
        room_(bytes * in_flight),
        begun_ns_(in_flight) {}

  /// What must be so before the first round trip.
  Outcome<void> prepare() {
    if (opcode_ == Opcode::send) {
      for (std::uint64_t slot = 0; slot < begun_ns_.size(); ++slot) post_receive(slot);
    }
    if (opcode_ != Opcode::write) return {};
    for (std::uint64_t slot = 0; slot < begun_ns_.size(); ++slot) {
      const auto read = link_.finish(
          WorkRequest::read(slot, bytes_of(slot), link_.region().key, link_.region().at(0)));
      if (!read) return std::unexpected(read.error());
      if (read->status != fabric::Status::success) return link_.refused(*read, bytes_);
    }
    return {};
  }

  Outcome<std::vector<std::uint64_t>> measure(std::uint64_t count) {
    std::vector<std::uint64_t> times;
    times.reserve(count);
    std::uint64_t posted = 0;
    std::array<Completion, FabricLink::kDepth> some;
    while (times.size() < count) {
      while (posted < count && posted - times.size() < begun_ns_.size()) {
        begun_ns_[posted % begun_ns_.size()] = environment_.now_ns();
        if (link_.pair().post(request(posted % begun_ns_.size())).taken == 0) {
          return failed("the link takes no request of this kind");
        }
        ++posted;
      }
      const std::size_t ended = link_.poll(some);
      for (std::size_t i = 0; i < ended; ++i) {
        if (some[i].status != fabric::Status::success) return link_.refused(some[i], bytes_);
        times.push_back(environment_.now_ns() - begun_ns_[times.size() % begun_ns_.size()]);
        if (opcode_ == Opcode::send) post_receive(some[i].work_id);
      }
    }
    return times;
  }

 private:
  [[nodiscard]] std::span<std::byte> bytes_of(std::uint64_t slot) {
    return std::span(room_).subspan(slot * bytes_, bytes_);
  }
  void post_receive(std::uint64_t slot) {
    const fabric::Receive receive{slot, bytes_of(slot)};
    link_.pair().post_receives({&receive, 1});
  }
  [[nodiscard]] WorkRequest request(std::uint64_t slot) {
    const std::uint64_t at = link_.region().at(0);
    switch (opcode_) {
      case Opcode::write: return WorkRequest::write(slot, bytes_of(slot), link_.region().key, at);
      case Opcode::fetch_add: return WorkRequest::fetch_add(slot, link_.region().key, at, 0);
      // Its echo confirms it, and is never longer, so both may use the same bytes.
      case Opcode::send: return WorkRequest::send(slot, bytes_of(slot)).unsignalled();
      default: return WorkRequest::read(slot, bytes_of(slot), link_.region().key, at);
    }
  }

  Environment& environment_;
  FabricLink& link_;
  Opcode opcode_;
  std::uint64_t bytes_;
  std::vector<std::byte> room_;
  std::vector<std::uint64_t> begun_ns_;  // by slot
};

Outcome<void> check_bytes(const FabricLink& link, Opcode opcode, std::uint64_t bytes) {
  if (opcode == Opcode::fetch_add && bytes != fabric::kAtomicBytes) {
    return misused("fetch-add works on 8 bytes", "Leave --bytes out.");
  }
  if (opcode == Opcode::send && bytes > link.echo_bytes_max()) {
    return failed(fmt::format("{} sends back no message of {} bytes", link.address(), bytes),
                  fmt::format("Give --bytes {} or less.", link.echo_bytes_max()));
  }
  if (bytes > link.message_bytes_max()) {
    return misused(fmt::format("no message of {} bytes can go to {}", bytes, link.address()),
                   fmt::format("Give --bytes {} or less.", link.message_bytes_max()));
  }
  return {};
}

void print_trips(Environment& environment, const FabricPingOptions& options, const FabricLink& link,
                 const RoundTrips& times) {
  if (options.json) {
    nlohmann::ordered_json object;
    object["at"] = link.address();
    object["verb"] = options.verb;
    object["bytes"] = options.bytes;
    object["in_flight"] = options.in_flight;
    object["count"] = options.count;
    times.add_to(object);
    environment.out << object.dump() << '\n';
    return;
  }
  environment.out << fmt::format("{}: {} round trip{}, {} of {} byte{}: {}\n", link.address(),
                                 format_count(options.count), options.count == 1 ? "" : "s",
                                 options.verb, options.bytes, options.bytes == 1 ? "" : "s",
                                 times.text());
}

Outcome<int> ping_memory(Environment& environment, const FabricPingOptions& options) {
  if (options.bytes == 0) return misused("there is nothing to send", "Give --bytes 1 or more.");
  auto link = FabricLink::open(environment, options.link);
  if (!link) return std::unexpected(link.error());
  const Opcode opcode = opcode_of(options.verb);
  if (auto checked = check_bytes(*link, opcode, options.bytes); !checked) {
    return std::unexpected(checked.error());
  }
  Pinger pinger(environment, *link, opcode, options.bytes, options.in_flight);
  if (auto prepared = pinger.prepare(); !prepared) return std::unexpected(prepared.error());
  // The first one makes what later ones find made, and is not counted.
  if (auto first = pinger.measure(1); !first) return std::unexpected(first.error());
  auto times = pinger.measure(options.count);
  if (!times) return std::unexpected(times.error());
  print_trips(environment, options, *link, RoundTrips(std::move(*times)));
  return kOk;
}

}  // namespace

void add_fabric_ping(CLI::App& fabric, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<FabricPingOptions>();
  CLI::App& command = *fabric.add_subcommand("ping", "Measure how long a verb takes");
  add_link_options(command, options->link);
  cmdline::add_number(command, "-c,--count", options->count, "Round trips to measure",
                      {1, kFabricPingsMax});
  add_size_option(command, "-b,--bytes", "Bytes of each (default: 8)", options->bytes);
  cmdline::add_number(command, "--in-flight", options->in_flight,
                      "Requests that are on their way at once", {1, FabricLink::kDepth});
  command.add_option("--verb", options->verb, "What is asked; send goes there and comes back")
      ->check(CLI::IsMember({"read", "write", "send", "fetch-add"}).description(""))
      ->type_name("read|write|send|fetch-add")
      ->capture_default_str();
  add_json_option(command, options->json);
  command.footer(
      "Changes nothing there, as long as nobody else writes: write brings what was read before,\n"
      "and fetch-add adds 0. Exits with 1 if nobody answers.\n"
      "Examples:\n"
      "  espalier fabric ping roce://127.0.0.1/1\n"
      "  espalier fabric ping shm:/tmp/fabric.sock --verb send --bytes 1K --in-flight 16 --json\n");
  command.callback([options, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, &environment] { return ping_memory(environment, *options); });
  });
}

}  // namespace espalier::tools
