// SPDX-License-Identifier: Apache-2.0
// espalier chain create, add, status, remove, restore: chains of nodes (docs/chains.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chain/membership.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "fabric/address.hpp"
#include "node/chain_calls.hpp"
#include "node/chain_folder.hpp"
#include "tools/commands.hpp"

namespace espalier::tools {
namespace {

struct ChainOptions {
  std::string place;
  std::vector<std::string> members;
  std::string name;
  std::uint64_t fence_ms = 1000;
  bool serves = false;
  std::string member;
  std::string data;
  bool accept_loss = false;
};

constexpr std::uint64_t kStatusTimeoutNs = 2'000'000'000;

Outcome<std::unique_ptr<chain::Membership>> open_chain_place(const std::string& place) {
  auto membership = chain::open_membership(place);
  if (!membership) return failed(membership.error(), "");
  return std::move(*membership);
}

Outcome<chain::View> read_chain(chain::Membership& membership, const std::string& place) {
  auto view = membership.read();
  if (!view) return failed(view.error(), "");
  if (!*view) {
    return failed(fmt::format("there is no chain at '{}'", place),
                  "espalier chain create makes one.");
  }
  return std::move(**view);
}

/// The member that NAME=ADDRESS says, without a number.
Outcome<chain::MemberEntry> read_member(const std::string& member) {
  const std::size_t at = member.find('=');
  if (at == std::string::npos) {
    return misused(fmt::format("'{}' is no member: a name and an address are wanted", member),
                   "Give NAME=ADDRESS, as a=shm:/tmp/a.");
  }
  chain::MemberEntry entry{0, member.substr(0, at), member.substr(at + 1)};
  const auto address = fabric::parse(entry.address);
  if (address) return entry;
  const auto fault = static_cast<fabric::AddressFault>(address.error().detail);
  return misused(fmt::format("'{}' has no address of the fabric", member),
                 std::string(fabric::explain(fault)));
}

Outcome<chain::View> view_of_options(const ChainOptions& options) {
  chain::View view;
  if (::getrandom(&view.chain, sizeof view.chain, 0) != sizeof view.chain) {
    return failed("the system gives no random number", "");
  }
  view.chain |= 1;  // 0 would be none
  view.epoch = 1;
  view.fence_ms = options.fence_ms;
  for (const std::string& member : options.members) {
    auto entry = read_member(member);
    if (!entry) return std::unexpected(entry.error());
    entry->number = static_cast<std::uint32_t>(view.members.size() + 1);
    view.members.push_back(std::move(*entry));
  }
  if (const auto mistake = chain::mistake_in(view)) {
    return misused(fmt::format("that is no chain: {}", *mistake), "");
  }
  return view;
}

Outcome<int> create_chain(Environment& environment, const ChainOptions& options) {
  const auto view = view_of_options(options);
  if (!view) return std::unexpected(view.error());
  const auto membership = open_chain_place(options.place);
  if (!membership) return std::unexpected(membership.error());
  const auto made = (*membership)->replace(*view);
  if (!made) return failed(made.error(), "");
  if (!*made) {
    return failed(fmt::format("there is a chain at '{}' already", options.place),
                  "espalier chain status shows it.");
  }
  environment.out << fmt::format("made a chain of {} at {}\n", view->members.size(), options.place);
  return kOk;
}

/// What a member says of itself, in lines.
Result<std::string> ask_member(const chain::MemberEntry& member) {
  const auto address = fabric::parse(member.address);
  if (!address) return std::unexpected(address.error());
  client::FabricConnectionOptions options;
  options.response_rings = 1;
  options.timeout_ns = kStatusTimeoutNs;
  auto secret = client::KnownSecret::or_of_process(nullptr);
  if (!secret) return fail(Code::invalid_argument);
  options.secret = std::move(*secret);
  const auto connection = client::FabricConnection::open(*address, options);
  if (!connection) return std::unexpected(connection.error());
  const auto rings = client::ThreadRings::open(*connection);
  if (!rings) return std::unexpected(rings.error());
  client::RemoteRequests requests(**rings, 1);
  const auto reply = requests.ask({.offload = chain_calls::kStatus});
  if (!reply) return std::unexpected(reply.error().error);
  return std::string(reply->payload.begin(), reply->payload.end());
}

std::string ask_status(const chain::MemberEntry& member) {
  const auto status = ask_member(member);
  return status ? *status : fmt::format("state unreachable\nwhy {}\n", reason(status.error()));
}

/// Returns whether it serves.
bool show_member(Environment& environment, const chain::MemberEntry& member) {
  bool serves = false;
  environment.out << fmt::format("{} at {}\n", member.name, member.address);
  const std::string text = ask_status(member);
  for (std::string_view lines = text; !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    serves = serves || lines.substr(0, end) == "state serves";
    environment.out << "  " << lines.substr(0, end) << '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return serves;
}

Outcome<int> show_chain(Environment& environment, const ChainOptions& options) {
  const auto membership = open_chain_place(options.place);
  if (!membership) return std::unexpected(membership.error());
  const auto view = read_chain(**membership, options.place);
  if (!view) return std::unexpected(view.error());
  environment.out << fmt::format("epoch {}, members leave after {} ms of silence\n", view->epoch,
                                 view->fence_ms);
  bool serves = false;
  for (const chain::MemberEntry& member : view->members) {
    serves = show_member(environment, member) || serves;
  }
  if (view->joining) show_member(environment, *view->joining);
  if (options.serves && !serves) return failed("no member of the chain serves", "");
  if (!options.member.empty() && view->find(std::string_view(options.member)) == nullptr) {
    return failed(fmt::format("'{}' is no member of the chain yet, or any more", options.member),
                  "");
  }
  return kOk;
}

std::vector<std::string> names_of(const chain::View& view) {
  std::vector<std::string> names;
  for (const chain::MemberEntry& member : view.members) names.push_back(member.name);
  return names;
}

/// Puts a view in place of the one that it is made of.
Outcome<int> put_next(chain::Membership& membership, const chain::View& next) {
  const auto taken = membership.replace(next);
  if (!taken) return failed(taken.error(), "");
  if (!*taken) return failed("the chain has changed meanwhile", "Try it again.");
  return kOk;
}

Outcome<int> add_member(Environment& environment, const ChainOptions& options) {
  auto entry = read_member(options.name);
  if (!entry) return std::unexpected(entry.error());
  const auto membership = open_chain_place(options.place);
  if (!membership) return std::unexpected(membership.error());
  const auto view = read_chain(**membership, options.place);
  if (!view) return std::unexpected(view.error());
  if (view->joining) {
    return failed(fmt::format("'{}' joins the chain, and one joins at a time", view->joining->name),
                  "Wait until it has, or espalier chain remove it.");
  }
  const chain::View next = view->with_joining(std::move(entry->name), std::move(entry->address));
  if (const auto mistake = chain::mistake_in(next)) {
    return failed(fmt::format("that is no chain: {}", *mistake),
                  "espalier chain status shows its members.");
  }
  if (auto put = put_next(**membership, next); !put) return put;
  environment.out << fmt::format(
      "{} joins behind {}: start it with --chain {}, and espalier chain status shows how far it "
      "is\n",
      next.joining->name, next.members.back().name, next.joining->name);
  return kOk;
}

Outcome<int> remove_member(Environment& environment, const ChainOptions& options) {
  const auto membership = open_chain_place(options.place);
  if (!membership) return std::unexpected(membership.error());
  const auto view = read_chain(**membership, options.place);
  if (!view) return std::unexpected(view.error());
  const bool joins = view->joining && view->joining->name == options.name;
  const chain::MemberEntry* const member =
      joins ? &*view->joining : view->find(std::string_view(options.name));
  if (member == nullptr) {
    return failed(fmt::format("the chain has no member '{}'", options.name),
                  "espalier chain status shows them.");
  }
  if (!joins && view->members.size() == 1) {
    return failed(fmt::format("'{}' is the last member of the chain", options.name), "");
  }
  chain::View next = view->without({member->number});
  next.whole = next.whole || !joins;  // removing a member asserts that the others have all records
  if (auto put = put_next(**membership, next); !put) return put;
  environment.out << fmt::format("removed {}\n", options.name);
  return kOk;
}

/// Whether no process answers there, as far as this machine sees: nothing listens, or is silent.
bool is_silent(const chain::MemberEntry& member) {
  const auto status = ask_member(member);
  if (status || status.error().code == Code::connection_lost) return !status;
  if (status.error().code != Code::system) return false;  // it refuses, so it lives
  constexpr int kSilent[] = {ECONNREFUSED, ECONNRESET,   ETIMEDOUT,
                             ENOENT,       EHOSTUNREACH, ENETUNREACH};
  return std::ranges::find(kSilent, static_cast<int>(status.error().detail)) != std::end(kSilent);
}

/// The folder of a member of this chain that was left out. Errors: why it is none.
Outcome<node::ChainFolder> left_out_folder(const ChainOptions& options, const chain::View& view) {
  const auto found = node::read_chain_folder(options.data);
  if (!found) return failed(found.error(), "");
  if (!*found || (*found)->chain != view.chain) {
    return failed(fmt::format("the data folder '{}' is of no member of this chain", options.data),
                  "--data names the data.dir of a node that was one.");
  }
  node::ChainFolder folder = **found;
  if (folder.begins) {  // it asked to join, and its log is there until it has another
    const auto before = node::read_chain_folder_before(options.data);
    if (!before) return failed(before.error(), "");
    if (*before && (*before)->chain == view.chain) folder = **before;
  }
  if (folder.begins) {
    return failed(
        fmt::format("the data folder '{}' is of a member that had not joined yet", options.data),
        "What is in it does not count.");
  }
  if (view.find(folder.member) != nullptr) {
    return failed(fmt::format("the data folder '{}' is that of a member", options.data),
                  "Start its node; nothing has to be restored.");
  }
  return folder;
}

// Where a member lives the chain has more than a folder that was left out, and goes on by itself.
Outcome<int> restore_chain(Environment& environment, const ChainOptions& options) {
  auto entry = read_member(options.name);
  if (!entry) return std::unexpected(entry.error());
  const auto membership = open_chain_place(options.place);
  if (!membership) return std::unexpected(membership.error());
  const auto view = read_chain(**membership, options.place);
  if (!view) return std::unexpected(view.error());
  const auto folder = left_out_folder(options, *view);
  if (!folder) return std::unexpected(folder.error());
  const auto alive = std::ranges::find_if_not(view->members, is_silent);
  if (alive != view->members.end()) {
    return failed(fmt::format("member '{}' may live, and has what was acknowledged", alive->name),
                  "espalier chain status shows it; espalier chain add has a node join it.");
  }
  if (!options.accept_loss) {
    return failed(
        fmt::format("what the chain has acknowledged since '{}' was left out is lost with its "
                    "members, {} by name",
                    entry->name, fmt::join(names_of(*view), ", ")),
        "If none of their data folders will come back, --accept-loss goes on without.");
  }
  entry->number = folder->member;
  const chain::View next = view->restored(std::move(*entry));
  if (const auto mistake = chain::mistake_in(next)) {
    return failed(fmt::format("that is no chain: {}", *mistake), "");
  }
  if (const auto said = node::write_chain_folder(options.data, *folder); !said) {
    return failed(said.error(), "");
  }
  if (const auto gone = node::forget_chain_folder_before(options.data); !gone) {
    return failed(gone.error(), "");
  }
  if (auto put = put_next(**membership, next); !put) return put;
  environment.out << fmt::format("{} is the chain: start it with --chain {}\n",
                                 next.members[0].name, next.members[0].name);
  return kOk;
}

using ChainWork = Outcome<int> (*)(Environment&, const ChainOptions&);

CLI::App& add_chain_work(CLI::App& chain, std::string name, std::string what, ChainWork work,
                         const std::shared_ptr<ChainOptions>& options, Environment& environment,
                         Action& chosen) {
  CLI::App& command = *chain.add_subcommand(std::move(name), std::move(what));
  command
      .add_option("--members", options->place,
                  "Where the chain is kept: a file, or etcd://HOST:PORT,.../KEY")
      ->type_name("PLACE")
      ->required();
  command.callback([options, work, &environment, &chosen] {
    chosen = reporting(environment,
                       [options, work, &environment] { return work(environment, *options); });
  });
  return command;
}

}  // namespace

void add_chain_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<ChainOptions>();
  CLI::App& chain = *app.add_subcommand("chain", "Make and show chains of nodes");
  chain.require_subcommand(1);
  CLI::App& create = add_chain_work(chain, "create", "Make a chain of nodes, the head first",
                                    create_chain, options, environment, chosen);
  create.add_option("member", options->members, "Name of a member, and where it is reached")
      ->type_name("NAME=ADDRESS")
      ->required();
  create
      .add_option("--fence-ms", options->fence_ms,
                  "A member that is silent for so many milliseconds is left out")
      ->capture_default_str();
  CLI::App& status =
      add_chain_work(chain, "status", "Show the members of a chain, and what they wait for",
                     show_chain, options, environment, chosen);
  status.add_flag("--serves", options->serves, "Fail, with 1, unless a member serves");
  status.add_option("--member", options->member, "Fail, with 1, unless this is a member")
      ->type_name("NAME");
  CLI::App& add = add_chain_work(chain, "add", "Have a node join a chain behind its tail",
                                 add_member, options, environment, chosen);
  add.add_option("member", options->name, "Its name, and where it is reached")
      ->type_name("NAME=ADDRESS")
      ->required();
  CLI::App& remove = add_chain_work(chain, "remove", "Leave a member out of a chain", remove_member,
                                    options, environment, chosen);
  remove.add_option("name", options->name, "The member")->type_name("NAME")->required();
  CLI::App& restore = add_chain_work(
      chain, "restore", "Go on with a node that was left out, where all members are lost",
      restore_chain, options, environment, chosen);
  restore.add_option("member", options->name, "Its name, and where it is reached")
      ->type_name("NAME=ADDRESS")
      ->required();
  restore.add_option("--data", options->data, "The node's data.dir")->type_name("DIR")->required();
  restore.add_flag("--accept-loss", options->accept_loss,
                   "What was acknowledged since it was left out is lost");
}

}  // namespace espalier::tools
