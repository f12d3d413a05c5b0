// SPDX-License-Identifier: Apache-2.0
// espalier seq create, take, seal, advance, describe, list, drop: the sequencers of a node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "espalier/sequencer.hpp"
#include "tools/commands.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

struct SeqOptions {
  std::optional<std::string> at;
  std::string name;
  std::uint64_t first = 0;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> epoch;
  bool one_sided = false;
  bool json = false;
};

/// A node, and what is asked of it.
struct Place {
  std::string address;
  Store store;
};

using SeqWork = Outcome<int> (*)(Environment&, const SeqOptions&, Place&);

std::string quoted(const std::string& name) {
  return fmt::format("sequencer '{}'", cmdline::escaped(name));
}

Outcome<Place> open_place(const Environment& environment, const SeqOptions& options) {
  auto address = required_address(environment, options.at);
  if (!address) return std::unexpected(address.error());
  if (*address == "embedded") {
    return misused(fmt::format("'{}' is no node, and sequencers are on nodes", *address),
                   "Start one: espalier serve --node-socket PATH.");
  }
  auto store = connect(environment, *address, options.one_sided ? Access::one_sided : Access::rpc);
  if (!store) return std::unexpected(store.error());
  return Place{std::move(*address), std::move(*store)};
}

std::unexpected<Failure> fail_named(const Place& place, const std::string& what,
                                    const std::string& name, const Error& error) {
  if (error.code == Code::not_found) {
    return failed(fmt::format("the node at {} has no {}", place.address, quoted(name)),
                  "espalier seq list shows those that it has; espalier seq create makes one.");
  }
  if (error.code == Code::wrong_kind) return other_kind(place.address, name, error);
  if (error.code == Code::sealed) {
    return failed(fmt::format("{} gives no numbers of this epoch any more; its epoch is {}",
                              quoted(name), error.detail),
                  "espalier seq describe shows whether that one is sealed; espalier seq advance "
                  "begins another.");
  }
  if (error == Error{Code::invalid_argument, 0, 1}) {
    return failed(fmt::format("a client wrote over the word of {}, and nobody knows which numbers "
                              "it had given",
                              quoted(name)),
                  "Say above which number all are free: espalier seq advance NAME --first NUMBER.");
  }
  return call_failed(fmt::format("{} {}", what, quoted(name)), error);
}

/// The handle of a sequencer, in the epoch that --epoch names.
Outcome<Sequencer> open_sequencer(const Place& place, const SeqOptions& options,
                                  const std::string& name) {
  auto opened = place.store.open_sequencer(name);
  if (!opened) return fail_named(place, "open", name, opened.error());
  if (options.epoch && opened->epoch() != *options.epoch) {
    return fail_named(place, "open", name, {Code::sealed, 0, opened->epoch()});
  }
  return std::move(*opened);
}

void print_sequencer_json(std::ostream& out, const SequencerDescription& of) {
  nlohmann::ordered_json object;
  set_bytes(object, "sequencer", of.name);
  object["epoch"] = of.epoch;
  object["sealed"] = of.sealed;
  object["overwritten"] = of.overwritten;
  object["first"] = of.first;
  object["next"] = of.next;
  object["requests"] = of.requests;
  object["node_adds"] = of.node_adds;
  out << object.dump() << '\n';
}

void print_sequencer_text(std::ostream& out, const SequencerDescription& of) {
  out << fmt::format("sequencer  {}\n", cmdline::escaped(of.name));
  out << fmt::format("epoch      {}, from {}{}\n", of.epoch, of.first,
                     of.overwritten ? ", sealed until a number is named (advance --first)"
                     : of.sealed    ? ", sealed"
                                    : "");
  out << fmt::format("next       {}\n", of.next);
  out << fmt::format("requests   {}, by {} adds\n", of.requests, of.node_adds);
}

Outcome<int> create_sequencer(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  const auto made = place.store.create_sequencer(name, options.first);
  if (!made && made.error().code == Code::already_exists) {
    return name_taken(place.address, name, made.error());
  }
  if (!made) return fail_named(place, "make", name, made.error());
  if (options.json) {
    const auto now = made->describe();
    if (!now) return fail_named(place, "read", name, now.error());
    print_sequencer_json(environment.out, *now);
  } else {
    environment.out << fmt::format("made {}, from {}\n", quoted(name), options.first);
  }
  return kOk;
}

Outcome<int> take(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  auto opened = open_sequencer(place, options, name);
  if (!opened) return std::unexpected(opened.error());
  const auto taken = opened->take(options.count);
  if (!taken && taken.error().code == Code::unsupported) {
    return failed(fmt::format("the way to {} has no atomic adds", place.address),
                  "Take numbers without --one-sided.");
  }
  if (!taken) return fail_named(place, "take numbers of", name, taken.error());
  if (options.json) {
    nlohmann::ordered_json object;
    object["first"] = taken->first;
    object["count"] = taken->count;
    object["epoch"] = taken->epoch;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << taken->first << '\n';
  }
  return kOk;
}

Outcome<int> print_sequencer(Environment& environment, const SeqOptions& options,
                             const Place& place, const std::string& what, const std::string& name,
                             const Result<SequencerDescription>& now) {
  if (!now) return fail_named(place, what, name, now.error());
  (options.json ? print_sequencer_json : print_sequencer_text)(environment.out, *now);
  return kOk;
}

Outcome<int> seal(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  auto opened = open_sequencer(place, options, name);
  if (!opened) return std::unexpected(opened.error());
  return print_sequencer(environment, options, place, "seal", name, opened->seal());
}

Outcome<int> advance(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  auto opened = open_sequencer(place, options, name);
  if (!opened) return std::unexpected(opened.error());
  return print_sequencer(environment, options, place, "begin an epoch of", name,
                         opened->advance(options.first));
}

Outcome<int> describe_sequencer(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  auto opened = open_sequencer(place, options, name);
  if (!opened) return std::unexpected(opened.error());
  return print_sequencer(environment, options, place, "read", name, opened->describe());
}

Outcome<int> list_sequencers(Environment& environment, const SeqOptions& options, Place& place) {
  const auto all = place.store.sequencers();
  if (!all) return call_failed("list the sequencers", all.error());
  for (const SequencerDescription& each : *all) {
    if (options.json) {
      print_sequencer_json(environment.out, each);
    } else {
      environment.out << cmdline::escaped(each.name) << '\n';
    }
  }
  return kOk;
}

Outcome<int> drop_sequencer(Environment& environment, const SeqOptions& options, Place& place) {
  const std::string& name = options.name;
  const auto dropped = place.store.drop_sequencer(name);
  if (!dropped) return fail_named(place, "drop", name, dropped.error());
  if (options.json) {
    nlohmann::ordered_json object;
    set_bytes(object, "sequencer", name);
    object["dropped"] = true;
    environment.out << object.dump() << '\n';
  } else {
    environment.out << fmt::format("dropped {}\n", quoted(name));
  }
  return kOk;
}

/// Adds a command and what all of them have.
class Adder {
 public:
  Adder(CLI::App& parent, std::shared_ptr<SeqOptions> options, Environment& environment,
        Action& chosen)
      : parent_(parent), options_(std::move(options)), environment_(environment), chosen_(chosen) {}

  CLI::App& add(const std::string& name, const std::string& description, SeqWork work) {
    CLI::App& command = *parent_.add_subcommand(name, description);
    if (work != list_sequencers) {
      command.add_option("NAME", options_->name, "Name of the sequencer")->required();
    }
    add_json_option(command, options_->json);
    add_address_option(command, options_->at);
    command.callback([options = options_, &environment = environment_, &chosen = chosen_, work] {
      chosen = reporting(environment, [options, &environment, work]() -> Outcome<int> {
        auto place = open_place(environment, *options);
        if (!place) return std::unexpected(place.error());
        return work(environment, *options, *place);
      });
    });
    return command;
  }
  CLI::App& add_of_epoch(const std::string& name, const std::string& description, SeqWork work) {
    CLI::App& command = add(name, description, work);
    command
        .add_option("--epoch", options_->epoch,
                    "The epoch that is meant; without it the one that it has now")
        ->option_text("NUMBER");
    return command;
  }

 private:
  CLI::App& parent_;
  const std::shared_ptr<SeqOptions> options_;
  Environment& environment_;
  Action& chosen_;
};

}  // namespace

void add_seq_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<SeqOptions>();
  CLI::App& command =
      *app.add_subcommand("seq", "Sequencers on a node: numbers that are given once");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  export ESPALIER_AT=unix:/run/espalier/espalier.sock\n"
      "  espalier seq create orders --first 1000\n"
      "  first=$(espalier seq take orders 16)\n"
      "  espalier seq seal orders && espalier seq advance orders\n");
  Adder adder(command, options, environment, chosen);
  adder.add("create", "Make a sequencer", create_sequencer)
      .add_option("--first", options->first, "Its first number (0)")
      ->option_text("NUMBER");
  CLI::App& taking = adder.add_of_epoch("take", "Take numbers in a row; prints the first", take);
  taking.add_option("COUNT", options->count, "How many (1)");
  taking.add_flag("--one-sided", options->one_sided,
                  "By an atomic add to the node's memory, not by asking the node");
  adder.add_of_epoch("seal", "End its epoch: nobody is given a number of it any more", seal);
  adder.add_of_epoch("advance", "End its epoch and begin the next one", advance)
      .add_option("--first", options->first, "A number that the new epoch is not to begin below")
      ->option_text("NUMBER");
  adder.add("describe", "Print its epoch, and which number is next", describe_sequencer);
  adder.add("list", "Print the names of all sequencers", list_sequencers);
  adder.add("drop", "Remove a sequencer", drop_sequencer);
}

}  // namespace espalier::tools
